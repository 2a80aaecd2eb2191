"""Answers with packs as frames.

The bytes of a payload are copied once: from where they are stored to their slice in the frame.

Locality: owner of the buffers.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf, buf_reserve
from dataproxy._core.base.crc cimport crc32
from dataproxy._core.base.protobuf cimport bytes_size, put_bytes, put_head, put_number, varint_size
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.bits cimport prefetch_range
from dataproxy._core.wire.tubemq.const cimport (
    ANSWER_CODE, ANSWER_MESSAGE, ANSWER_SUCCESS, GOT_BACKLOG, GOT_ESCAPE, GOT_MAX_OFFSET, GOT_MESSAGES, GOT_OFFSET,
    GOT_SLOW, GOT_WAIT, MESSAGE_CHECKSUM, MESSAGE_FLAG, MESSAGE_ID, MESSAGE_PAYLOAD, METHOD_GET, PAYLOAD_MOST,
)
from dataproxy._core.wire.tubemq.frame cimport SliceWriter, frame_heads, slices_begin, slices_put
from dataproxy._core.wire.tubemq.get cimport got_size
from dataproxy._core.wire.tubemq.rpc cimport answer_size, put_answer

cdef enum:
    AHEAD = 8               # so many messages before it is copied, a body is asked of memory
    NUMBERS = 96            # room for what stands before, between and behind payloads


cdef int32_t parts_checksum(const TubeParts* m) noexcept nogil:
    """Return the checksum of a payload."""
    return <int32_t>(crc32(crc32(0, m.head.p, m.head.n), m.body.p, m.body.n) & 0x7FFFFFFF)


cdef size_t _inner_size(const TubeParts* m) noexcept nogil:
    return 3 + varint_size(<uint64_t>m.id) + varint_size(<uint64_t><int64_t>m.checksum) + varint_size(
        <uint64_t><int64_t>m.flag) + bytes_size(m.head.n + m.body.n)


cdef size_t parts_size(const TubeParts* m) noexcept nogil:
    """Return the bytes that a message takes in an answer."""
    return bytes_size(_inner_size(m))


cdef void _put_parts(SliceWriter* w, const TubeParts* m) noexcept nogil:
    cdef uint8_t small[NUMBERS]
    cdef uint8_t* to = small
    to = put_head(to, GOT_MESSAGES, _inner_size(m))
    to = put_number(to, MESSAGE_ID, <uint64_t>m.id)
    to = put_number(to, MESSAGE_CHECKSUM, <uint64_t><int64_t>m.checksum)
    to = put_head(to, MESSAGE_PAYLOAD, m.head.n + m.body.n)
    slices_put(w, small, <size_t>(to - small))
    slices_put(w, m.head.p, m.head.n)
    slices_put(w, m.body.p, m.body.n)
    to = put_number(small, MESSAGE_FLAG, <uint64_t><int64_t>m.flag)
    slices_put(w, small, <size_t>(to - small))


cdef int put_pack(Buf* out, uint32_t serial, const Got* g, const TubeParts* parts, size_t n) noexcept nogil:
    """Append the frame of a successful answer; ``g.text`` has at most 16 bytes.

    ST_OK, ST_NO_MEMORY, or ST_LIMIT: no reader takes a frame of this size.
    """
    cdef uint8_t small[NUMBERS]
    cdef uint8_t* to
    cdef SliceWriter w
    cdef size_t i, payload, size = got_size(g, NULL, 0)
    for i in range(n):
        size += parts_size(&parts[i])
    payload = answer_size(METHOD_GET, size)
    if payload > PAYLOAD_MOST:
        return ST_LIMIT
    if buf_reserve(out, frame_heads(payload) + payload) != ST_OK:
        return ST_NO_MEMORY
    slices_begin(&w, out.p + out.n, serial, payload)
    to = put_answer(small, METHOD_GET, size)
    to = put_number(to, ANSWER_SUCCESS, g.success)
    to = put_number(to, ANSWER_CODE, <uint64_t><int64_t>g.code)
    to = put_bytes(to, ANSWER_MESSAGE, g.text)
    slices_put(&w, small, <size_t>(to - small))
    for i in range(n):
        if i + AHEAD < n:
            prefetch_range(parts[i + AHEAD].body.p, parts[i + AHEAD].body.n)
        _put_parts(&w, &parts[i])
    to = put_number(small, GOT_OFFSET, <uint64_t>g.offset)
    to = put_number(to, GOT_WAIT, <uint64_t><int64_t>g.wait_ms)
    to = put_number(to, GOT_ESCAPE, g.escape)
    to = put_number(to, GOT_BACKLOG, <uint64_t>g.backlog)
    to = put_number(to, GOT_SLOW, g.slow)
    to = put_number(to, GOT_MAX_OFFSET, <uint64_t>g.max_offset)
    slices_put(&w, small, <size_t>(to - small))
    out.n += frame_heads(payload) + payload
    return ST_OK
