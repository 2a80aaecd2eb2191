"""Requests to confirm a pack, and their answers, in both roles.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from dataproxy._core.base.protobuf cimport (
    FK_BYTES, FK_VARINT, Field, Fields, bytes_size, fields_next, fields_open, put_bytes, put_number, varint_size,
)
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_OK, ST_PROTOCOL
from dataproxy._core.wire.tubemq.const cimport (
    ANSWER_CODE, ANSWER_MESSAGE, ANSWER_SUCCESS, COMMIT_CLIENT, COMMIT_CONSUMED, COMMIT_GROUP, COMMIT_PARTITION,
    COMMIT_TOPIC, COMMITTED_MAX_OFFSET, COMMITTED_OFFSET, UNKNOWN,
)


cdef int read_commit(Slice request, CommitRequest* out) noexcept nogil:
    """Read a request; ST_OK or ST_PROTOCOL."""
    cdef Fields fields
    cdef Field field
    cdef int found = 0          # a bit for each required field
    out.consumed = True
    fields_open(&fields, request)
    while fields_next(&fields, &field):
        if field.kind == FK_BYTES:
            if field.number == COMMIT_CLIENT:
                out.client = field.bytes
            elif field.number == COMMIT_TOPIC:
                out.topic = field.bytes
            elif field.number == COMMIT_GROUP:
                out.group = field.bytes
            else:
                continue
            found |= 1 << field.number
        elif field.kind == FK_VARINT:
            if field.number == COMMIT_PARTITION:
                out.partition = <int32_t>field.value
                found |= 1 << COMMIT_PARTITION
            elif field.number == COMMIT_CONSUMED:
                out.consumed = field.value != 0
    if fields.broken or found != 1 << COMMIT_CLIENT | 1 << COMMIT_TOPIC | 1 << COMMIT_PARTITION | 1 << COMMIT_GROUP:
        return ST_PROTOCOL
    return ST_OK


cdef size_t commit_size(const CommitRequest* c) noexcept nogil:
    """Return the bytes of a request."""
    return bytes_size(c.client.n) + bytes_size(c.topic.n) + bytes_size(c.group.n) + 3 + varint_size(
        <uint64_t><int64_t>c.partition)


cdef uint8_t* put_commit(uint8_t* to, const CommitRequest* c) noexcept nogil:
    """Write a request, and return its end."""
    to = put_bytes(to, COMMIT_CLIENT, c.client)
    to = put_bytes(to, COMMIT_TOPIC, c.topic)
    to = put_number(to, COMMIT_PARTITION, <uint64_t><int64_t>c.partition)
    to = put_bytes(to, COMMIT_GROUP, c.group)
    return put_number(to, COMMIT_CONSUMED, c.consumed)


cdef int read_committed(Slice data, Committed* out) noexcept nogil:
    """Read an answer; ST_OK or ST_PROTOCOL."""
    cdef Fields fields
    cdef Field field
    cdef int found = 0
    out.offset = out.max_offset = UNKNOWN
    fields_open(&fields, data)
    while fields_next(&fields, &field):
        if field.kind == FK_BYTES:
            if field.number != ANSWER_MESSAGE:
                continue
            out.text = field.bytes
        elif field.kind != FK_VARINT:
            continue
        elif field.number == ANSWER_SUCCESS:
            out.success = field.value != 0
        elif field.number == ANSWER_CODE:
            out.code = <int32_t>field.value
        else:
            if field.number == COMMITTED_OFFSET:
                out.offset = <int64_t>field.value
            elif field.number == COMMITTED_MAX_OFFSET:
                out.max_offset = <int64_t>field.value
            continue
        found |= 1 << field.number
    if fields.broken or found != 1 << ANSWER_SUCCESS | 1 << ANSWER_CODE | 1 << ANSWER_MESSAGE:
        return ST_PROTOCOL
    return ST_OK


cdef size_t committed_size(const Committed* c) noexcept nogil:
    """Return the bytes of an answer."""
    cdef size_t size = 4 + varint_size(<uint64_t><int64_t>c.code) + bytes_size(c.text.n) + varint_size(
        <uint64_t>c.offset)
    return size + 1 + varint_size(<uint64_t>c.max_offset) if c.success else size


cdef uint8_t* put_committed(uint8_t* to, const Committed* c) noexcept nogil:
    """Write an answer, and return its end.  A failure has no largest offset, as of a Java broker."""
    to = put_number(to, ANSWER_SUCCESS, c.success)
    to = put_number(to, ANSWER_CODE, <uint64_t><int64_t>c.code)
    to = put_bytes(to, ANSWER_MESSAGE, c.text)
    to = put_number(to, COMMITTED_OFFSET, <uint64_t>c.offset)
    if c.success:
        to = put_number(to, COMMITTED_MAX_OFFSET, <uint64_t>c.max_offset)
    return to
