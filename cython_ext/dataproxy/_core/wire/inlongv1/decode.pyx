"""Replies of a V1 server: bare ResponseInfo messages between V0 frames.

A ResponseInfo has no length in front of it.  Its first byte is the tag of its first field, 08, and the first byte of
a V0 frame is that of its length, 00.  So a stream of both is read without doubt: two varint fields, or a frame.

A server writes ResponseInfos without flushing them.  They leave with the next V0 reply on the connection, so a client
sends heartbeats (type 1) while frames wait for their answers (``WireOps.shaken``).

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from dataproxy._core.base.slice cimport slice_of, slice_text
from dataproxy._core.base.status cimport ST_NEED_DATA, ST_OK, ST_PROTOCOL
from dataproxy._core.wire.api cimport EV_ACK
from dataproxy._core.wire.inlong.const cimport (
    ERR_EXT, ERR_ITEMS, ERR_LENGTHS, ERR_NO_TOPIC, ERR_NOT_READY, ERR_QUEUE_FULL, ERR_STOPPED, ERR_UNKNOWN,
    ERR_UNKNOWN_NUMBER,
)
from dataproxy._core.wire.inlong.decode cimport find_frame, read_reply
from dataproxy._core.wire.inlongv1.const cimport (
    INFO_FIRST, INFO_ID, INFO_LONGEST, INFO_RESULT, R_FAIL, R_ID, R_LENGTH, R_PACKAGE, R_REJECT, R_SUCCESS, R_VERSION,
)
from dataproxy._core.base.protobuf cimport FK_VARINT, Field, Fields, fields_next, fields_open

cdef enum:
    MQ_FIRST = 116              # V0 codes of a message queue that did not take a frame
    MQ_LAST = 119
    UNCONFIGURED = 113


cdef int _varint_end(const uint8_t* p, size_t n, size_t at, size_t* end) noexcept nogil:
    # Find the end of a varint of at most ten bytes.
    cdef size_t i
    for i in range(10):
        if at + i >= n:
            return ST_NEED_DATA
        if p[at + i] < 0x80:
            end[0] = at + i + 1
            return ST_OK
    return ST_PROTOCOL


cdef int find_v1(const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil:
    """Bound the first reply of ``p[0:n]``: a ResponseInfo, or a V0 frame."""
    cdef size_t at = 0
    cdef int status
    size[0] = 0
    if n == 0:
        return ST_NEED_DATA
    if p[0] != INFO_FIRST:
        return find_frame(p, n, max_frame, size)
    status = _varint_end(p, n, 1, &at)
    if status != ST_OK:
        return status
    if at >= n:
        return ST_NEED_DATA
    if p[at] != <uint8_t>(INFO_ID << 3):
        return ST_PROTOCOL
    status = _varint_end(p, n, at + 1, &at)
    if status == ST_OK:
        size[0] = at
    return status


cdef int code_of_result(int result) noexcept nogil:
    """Return the V0 code that has the meaning of a result code: its class decides what becomes of the frame."""
    if result == R_SUCCESS:
        return 0
    if result == R_REJECT:
        return ERR_QUEUE_FULL
    if result == R_ID:
        return ERR_NO_TOPIC
    if result == R_PACKAGE:
        return ERR_ITEMS
    if result == R_LENGTH:
        return ERR_LENGTHS
    if result == R_VERSION:
        return ERR_EXT
    return ERR_UNKNOWN


cdef int result_of_code(int code) noexcept nogil:
    """Return the result code for a V0 code of a refusal."""
    if code == ERR_NO_TOPIC or code == ERR_UNKNOWN_NUMBER or code == UNCONFIGURED:
        return R_ID
    if code == ERR_NOT_READY or code == ERR_STOPPED or code == ERR_QUEUE_FULL or MQ_FIRST <= code <= MQ_LAST:
        return R_REJECT
    if code == ERR_UNKNOWN:
        return R_FAIL
    return R_PACKAGE


cdef const char* _name(int result) noexcept nogil:
    if result == R_FAIL:
        return b"V1 result -1 (FAIL)"
    if result == R_VERSION:
        return b"V1 result -101 (ERR_VERSION_ERROR)"
    if result == R_LENGTH:
        return b"V1 result -102 (ERR_LENGTH_ERROR)"
    if result == R_REJECT:
        return b"V1 result -103 (ERR_REJECT): stopped, or its queue is full, or not stored in time"
    if result == R_PACKAGE:
        return b"V1 result -104 (ERR_PACKAGE_ERROR)"
    if result == R_ID:
        return b"V1 result -105 (ERR_ID_ERROR): no topic for the group and the stream"
    return b"a V1 result that the protocol does not define"


cdef int read_v1_reply(const uint8_t* p, size_t n, WireEvent* event) noexcept nogil:
    """Read one whole reply: a ResponseInfo, or a V0 frame."""
    cdef Fields fields
    cdef Field field
    cdef int result = 0
    if n == 0 or p[0] != INFO_FIRST:
        return read_reply(p, n, event)
    if n > INFO_LONGEST:
        return ST_PROTOCOL
    memset(event, 0, sizeof(WireEvent))
    event.kind = EV_ACK
    event.load = -1
    event.reach = -1
    event.text = slice_of(p, n)
    fields_open(&fields, slice_of(p, n))
    while fields_next(&fields, &field):
        if field.kind == FK_VARINT and field.number == INFO_RESULT:
            result = <int><int64_t>field.value
        elif field.kind == FK_VARINT and field.number == INFO_ID:
            event.has_seq = field.value >> 32 == 0
            event.seq = <uint32_t>field.value
    if fields.broken:
        return ST_PROTOCOL
    event.code = code_of_result(result)
    if result != R_SUCCESS:
        event.message = slice_text(_name(result))
    return ST_OK
