"""Requests to store a message, and their answers, in both roles.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from dataproxy._core.base.protobuf cimport (
    FK_BYTES, FK_VARINT, Field, Fields, bytes_size, fields_next, fields_open, put_bytes, put_head, put_number,
    varint_size,
)
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_OK, ST_PROTOCOL
from dataproxy._core.wire.tubemq.const cimport (
    ANSWER_CODE, ANSWER_MESSAGE, ANSWER_SUCCESS, AUTH_TOKEN, AUTH_VISIT, SEND_ADDRESS, SEND_AUTH, SEND_CHECKSUM,
    SEND_CLIENT, SEND_DATA, SEND_FLAG, SEND_PARTITION, SEND_TIME, SEND_TOPIC, SEND_TYPE, SENT_AUTH, SENT_ID,
    SENT_OFFSET, SENT_TIME, UNKNOWN,
)

cdef enum:
    SEND_REQUIRED = (1 << SEND_CLIENT | 1 << SEND_TOPIC | 1 << SEND_PARTITION | 1 << SEND_DATA | 1 << SEND_FLAG
                     | 1 << SEND_CHECKSUM | 1 << SEND_ADDRESS)
    SENT_REQUIRED = 1 << ANSWER_SUCCESS | 1 << ANSWER_CODE | 1 << ANSWER_MESSAGE


cdef bint _read_auth(Slice message, SendRequest* out) noexcept nogil:
    cdef Fields fields
    cdef Field field
    fields_open(&fields, message)
    while fields_next(&fields, &field):
        if field.number == AUTH_VISIT and field.kind == FK_VARINT:
            out.visit = <int64_t>field.value
            out.has_visit = True
        elif field.number == AUTH_TOKEN and field.kind == FK_BYTES:
            out.token = field.bytes
    return not fields.broken


cdef bint _read_text(SendRequest* out, const Field* field) noexcept nogil:
    """Take a field of bytes; False if it is broken."""
    if field.number == SEND_CLIENT:
        out.client = field.bytes
    elif field.number == SEND_TOPIC:
        out.topic = field.bytes
    elif field.number == SEND_DATA:
        out.payload = field.bytes
    elif field.number == SEND_TYPE:
        out.type = field.bytes
    elif field.number == SEND_TIME:
        out.time = field.bytes
    elif field.number == SEND_AUTH:
        return _read_auth(field.bytes, out)
    return True


cdef void _read_number(SendRequest* out, const Field* field) noexcept nogil:
    if field.number == SEND_PARTITION:
        out.partition = <int32_t>field.value
    elif field.number == SEND_FLAG:
        out.flag = <int32_t>field.value
    elif field.number == SEND_CHECKSUM:
        out.checksum = <int32_t>field.value
    elif field.number == SEND_ADDRESS:
        out.address = <int32_t>field.value


cdef inline bint _is_text(uint64_t number) noexcept nogil:
    return number <= SEND_TOPIC or number == SEND_DATA or number >= SEND_TYPE


cdef int read_send(Slice request, SendRequest* out) noexcept nogil:
    """Read a request; ST_OK or ST_PROTOCOL."""
    cdef Fields fields
    cdef Field field
    cdef int found = 0          # a bit for each field of the right kind
    memset(out, 0, sizeof(SendRequest))
    fields_open(&fields, request)
    while fields_next(&fields, &field):
        if field.number > SEND_AUTH or field.kind != (FK_BYTES if _is_text(field.number) else FK_VARINT):
            continue            # unknown: a later version's
        found |= 1 << field.number
        if field.kind == FK_VARINT:
            _read_number(out, &field)
        elif not _read_text(out, &field):
            return ST_PROTOCOL
    return ST_OK if not fields.broken and found & SEND_REQUIRED == SEND_REQUIRED else ST_PROTOCOL


cdef size_t _auth_size(const SendRequest* s) noexcept nogil:
    return 1 + varint_size(<uint64_t>s.visit) + (bytes_size(s.token.n) if s.token.n else 0)


cdef size_t send_size(const SendRequest* s) noexcept nogil:
    """Return the bytes of a request."""
    cdef size_t size = bytes_size(s.client.n) + bytes_size(s.topic.n) + bytes_size(s.payload.n) + 4
    size += varint_size(<uint64_t><int64_t>s.partition) + varint_size(<uint64_t><int64_t>s.flag)
    size += varint_size(<uint64_t><int64_t>s.checksum) + varint_size(<uint64_t><int64_t>s.address)
    if s.type.n:
        size += bytes_size(s.type.n)
    if s.time.n:
        size += bytes_size(s.time.n)
    if s.has_visit:
        size += bytes_size(_auth_size(s))
    return size


cdef uint8_t* put_send(uint8_t* to, const SendRequest* s) noexcept nogil:
    """Write a request, and return its end."""
    to = put_bytes(to, SEND_CLIENT, s.client)
    to = put_bytes(to, SEND_TOPIC, s.topic)
    to = put_number(to, SEND_PARTITION, <uint64_t><int64_t>s.partition)
    to = put_bytes(to, SEND_DATA, s.payload)
    to = put_number(to, SEND_FLAG, <uint64_t><int64_t>s.flag)
    to = put_number(to, SEND_CHECKSUM, <uint64_t><int64_t>s.checksum)
    to = put_number(to, SEND_ADDRESS, <uint64_t><int64_t>s.address)
    if s.type.n:
        to = put_bytes(to, SEND_TYPE, s.type)
    if s.time.n:
        to = put_bytes(to, SEND_TIME, s.time)
    if s.has_visit:
        to = put_head(to, SEND_AUTH, _auth_size(s))
        to = put_number(to, AUTH_VISIT, <uint64_t>s.visit)
        if s.token.n:
            to = put_bytes(to, AUTH_TOKEN, s.token)
    return to


cdef int read_sent(Slice data, Sent* out) noexcept nogil:
    """Read an answer; ST_OK or ST_PROTOCOL."""
    cdef Fields fields
    cdef Field field
    cdef int found = 0
    out.wants_auth = False
    out.id = out.time_ms = out.offset = UNKNOWN
    fields_open(&fields, data)
    while fields_next(&fields, &field):
        if field.number == ANSWER_MESSAGE and field.kind == FK_BYTES:
            out.text = field.bytes
        elif field.kind != FK_VARINT:
            continue
        elif field.number == ANSWER_SUCCESS:
            out.success = field.value != 0
        elif field.number == ANSWER_CODE:
            out.code = <int32_t>field.value
        elif field.number == SENT_AUTH:
            out.wants_auth = field.value != 0
        elif field.number == SENT_ID:
            out.id = <int64_t>field.value
        elif field.number == SENT_TIME:
            out.time_ms = <int64_t>field.value
        elif field.number == SENT_OFFSET:
            out.offset = <int64_t>field.value
        if field.number <= SENT_OFFSET and (field.number != ANSWER_MESSAGE or field.kind == FK_BYTES):
            found |= 1 << field.number
    return ST_OK if not fields.broken and found & SENT_REQUIRED == SENT_REQUIRED else ST_PROTOCOL


cdef size_t sent_size(const Sent* s) noexcept nogil:
    """Return the bytes of an answer."""
    cdef size_t size = 3 + varint_size(<uint64_t><int64_t>s.code) + bytes_size(s.text.n)
    if s.success:
        size += 5 + varint_size(<uint64_t>s.id) + varint_size(<uint64_t>s.time_ms) + varint_size(<uint64_t>s.offset)
    return size


cdef uint8_t* put_sent(uint8_t* to, const Sent* s) noexcept nogil:
    """Write an answer, and return its end.  A failure has fewer fields, as of a Java broker."""
    to = put_number(to, ANSWER_SUCCESS, s.success)
    to = put_number(to, ANSWER_CODE, <uint64_t><int64_t>s.code)
    to = put_bytes(to, ANSWER_MESSAGE, s.text)
    if s.success:
        to = put_number(to, SENT_AUTH, s.wants_auth)
        to = put_number(to, SENT_ID, <uint64_t>s.id)
        to = put_number(to, SENT_TIME, <uint64_t>s.time_ms)
        to = put_number(to, SENT_OFFSET, <uint64_t>s.offset)
    return to
