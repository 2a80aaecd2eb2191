"""A payload is three messages, each behind its length: two headers, then a request, an answer, or an exception.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from dataproxy._core.base.protobuf cimport (
    FK_BYTES, FK_VARINT, Field, Fields, bytes_size, fields_next, fields_open, put_bytes, put_head, put_number,
    put_varint, take_delimited, varint_size,
)
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK, ST_PROTOCOL
from dataproxy._core.wire.tubemq.const cimport (
    ANSWER_DATA, ANSWER_METHOD, CALL_METHOD, CALL_REQUEST, CALL_TIMEOUT, CONN_FLAG, EXCEPTION_NAME, EXCEPTION_TRACE,
    PROTOCOL_VERSION, REQUEST_SERVICE, REQUEST_VERSION, RESPONSE_STATUS, RESPONSE_VERSION, RPC_FATAL, RPC_SUCCESS,
)


cdef bint _read_conn_header(Slice* rest, int32_t* flag) noexcept nogil:
    cdef Slice message
    cdef Fields fields
    cdef Field field
    cdef bint found = False
    if not take_delimited(rest, &message):
        return False
    fields_open(&fields, message)
    while fields_next(&fields, &field):
        if field.number == CONN_FLAG and field.kind == FK_VARINT:
            flag[0] = <int32_t>field.value
            found = True
    return found and not fields.broken


cdef bint _read_request_header(Slice* rest, Call* out) noexcept nogil:
    cdef Slice message
    cdef Fields fields
    cdef Field field
    if not take_delimited(rest, &message):
        return False
    fields_open(&fields, message)
    while fields_next(&fields, &field):
        if field.kind != FK_VARINT:
            continue
        if field.number == REQUEST_SERVICE:
            out.service = <int32_t>field.value
        elif field.number == REQUEST_VERSION:
            out.version = <int32_t>field.value
    return not fields.broken


cdef bint _read_request_body(Slice* rest, Call* out) noexcept nogil:
    cdef Slice message
    cdef Fields fields
    cdef Field field
    cdef bint found = False
    if not take_delimited(rest, &message):
        return False
    fields_open(&fields, message)
    while fields_next(&fields, &field):
        if field.kind == FK_BYTES:
            if field.number == CALL_REQUEST:
                out.request = field.bytes
        elif field.kind == FK_VARINT:
            if field.number == CALL_METHOD:
                out.method = <int32_t>field.value
                found = True
            elif field.number == CALL_TIMEOUT:
                out.timeout_ms = <int64_t>field.value
    return found and not fields.broken


cdef int read_call(Slice payload, Call* out) noexcept nogil:
    """Read a request; ST_OK or ST_PROTOCOL.  What follows the third message is no error: a client of C++ pads it."""
    cdef Slice rest = payload
    out.service = 0
    out.version = 0
    out.timeout_ms = 0
    out.request = slice_of(NULL, 0)
    if (_read_conn_header(&rest, &out.flag) and _read_request_header(&rest, out) and _read_request_body(&rest, out)):
        return ST_OK
    return ST_PROTOCOL


cdef bint _read_response_header(Slice* rest, Answer* out) noexcept nogil:
    cdef Slice message
    cdef Fields fields
    cdef Field field
    if not take_delimited(rest, &message):
        return False
    fields_open(&fields, message)
    while fields_next(&fields, &field):
        # A status beyond the enum is an unknown field to protobuf.
        if field.number == RESPONSE_STATUS and field.kind == FK_VARINT and 0 <= <int32_t>field.value <= RPC_FATAL:
            out.status = <int32_t>field.value
    return out.status >= 0 and not fields.broken


cdef bint _read_data(Slice message, Answer* out) noexcept nogil:
    cdef Fields fields
    cdef Field field
    cdef bint method = False, data = False
    fields_open(&fields, message)
    while fields_next(&fields, &field):
        if field.number == ANSWER_METHOD and field.kind == FK_VARINT:
            out.method = <int32_t>field.value
            method = True
        elif field.number == ANSWER_DATA and field.kind == FK_BYTES:
            out.data = field.bytes
            data = True
    return method and data and not fields.broken


cdef bint _read_exception(Slice message, Answer* out) noexcept nogil:
    cdef Fields fields
    cdef Field field
    cdef bint name = False
    fields_open(&fields, message)
    while fields_next(&fields, &field):
        if field.kind != FK_BYTES:
            continue
        if field.number == EXCEPTION_NAME:
            out.exception = field.bytes
            name = True
        elif field.number == EXCEPTION_TRACE:
            out.trace = field.bytes
    return name and not fields.broken


cdef int read_answer(Slice payload, Answer* out) noexcept nogil:
    """Read an answer; ST_OK or ST_PROTOCOL.  What follows the third message is no error."""
    cdef Slice rest = payload
    cdef Slice body
    cdef int32_t flag
    out.status = -1
    out.method = 0
    out.data = out.exception = out.trace = slice_of(NULL, 0)
    if not (_read_conn_header(&rest, &flag) and _read_response_header(&rest, out) and take_delimited(&rest, &body)):
        return ST_PROTOCOL
    if _read_data(body, out) if out.status == RPC_SUCCESS else _read_exception(body, out):
        return ST_OK
    return ST_PROTOCOL


cdef size_t _call_fields(const Call* call) noexcept nogil:
    return 1 + varint_size(<uint64_t>call.method) + 1 + varint_size(<uint64_t>call.timeout_ms)


cdef size_t call_size(const Call* call, size_t n) noexcept nogil:
    """Return the payload's size with a request of ``n`` bytes."""
    cdef size_t header = 2 + varint_size(<uint64_t>call.service) + varint_size(<uint64_t>call.version)
    cdef size_t body = _call_fields(call) + bytes_size(n)
    return 3 + varint_size(header) + header + varint_size(body) + body


cdef uint8_t* put_call(uint8_t* to, const Call* call, size_t n) noexcept nogil:
    """Write everything before the ``n`` bytes of the request, and return where they belong."""
    to[0] = 2
    to = put_number(to + 1, CONN_FLAG, 0)
    to = put_varint(to, 2 + varint_size(<uint64_t>call.service) + varint_size(<uint64_t>call.version))
    to = put_number(to, REQUEST_SERVICE, <uint64_t>call.service)
    to = put_number(to, REQUEST_VERSION, <uint64_t>call.version)
    to = put_varint(to, _call_fields(call) + bytes_size(n))
    to = put_number(to, CALL_METHOD, <uint64_t>call.method)
    to = put_number(to, CALL_TIMEOUT, <uint64_t>call.timeout_ms)
    return put_head(to, CALL_REQUEST, n)


cdef size_t answer_size(int32_t method, size_t n) noexcept nogil:
    """Return the payload's size of a success with ``n`` bytes of data."""
    cdef size_t body = 1 + varint_size(<uint64_t>method) + bytes_size(n)
    return _headers_size(RPC_SUCCESS) + varint_size(body) + body


cdef size_t _headers_size(int status) noexcept nogil:
    return 6 if status == RPC_FATAL else 8


cdef uint8_t* _put_headers(uint8_t* to, int status) noexcept nogil:
    to[0] = 2
    to = put_number(to + 1, CONN_FLAG, 1)
    to[0] = 2 if status == RPC_FATAL else 4         # a fatal one has no version, as of a Java server
    to = put_number(to + 1, RESPONSE_STATUS, <uint64_t>status)
    return to if status == RPC_FATAL else put_number(to, RESPONSE_VERSION, PROTOCOL_VERSION)


cdef uint8_t* put_answer(uint8_t* to, int32_t method, size_t n) noexcept nogil:
    """Write everything of a success before its ``n`` bytes of data, and return where they belong."""
    to = _put_headers(to, RPC_SUCCESS)
    to = put_varint(to, 1 + varint_size(<uint64_t>method) + bytes_size(n))
    to = put_number(to, ANSWER_METHOD, <uint64_t>method)
    return put_head(to, ANSWER_DATA, n)


cdef size_t exception_size(int status, Slice name, Slice trace) noexcept nogil:
    """Return the payload's size of an exception."""
    cdef size_t body = bytes_size(name.n) + bytes_size(trace.n)
    return _headers_size(status) + varint_size(body) + body


cdef uint8_t* put_exception(uint8_t* to, int status, Slice name, Slice trace) noexcept nogil:
    """Write the whole payload of an exception, and return its end."""
    to = _put_headers(to, status)
    to = put_varint(to, bytes_size(name.n) + bytes_size(trace.n))
    return put_bytes(put_bytes(to, EXCEPTION_NAME, name), EXCEPTION_TRACE, trace)
