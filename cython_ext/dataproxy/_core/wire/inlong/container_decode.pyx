"""InLongMsg containers: reading.  Every length is checked before it is used; nothing is padded or dropped.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t
from libc.string cimport memset

from dataproxy._core.base.compress cimport unpack_block
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_EOF, ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport load_be16, load_be32, load_be64
from dataproxy._core.wire.inlong.const cimport (
    BIN_BODY,
    BIN_BODY_LEN,
    BIN_COUNT,
    BIN_DATA_TIME,
    BIN_EXT,
    BIN_FIXED,
    BIN_GROUP_NUM,
    BIN_STREAM_NUM,
    BIN_TYPE,
    EXT_PAIRS,
    LENGTH_SIZE,
    MAGIC,
    TYPE_BINARY,
    TYPE_ENCRYPTED,
    TYPE_FLAGS,
    TYPE_MASK,
    TYPE_SNAPPY,
)


cdef int _fail(Container* c, const char* reason) noexcept nogil:
    c.reason = reason
    return ST_PROTOCOL


cdef int container_open(Container* c, const uint8_t* p, size_t n, size_t limit, Buf* scratch) noexcept nogil:
    """Read the head; no payload may unpack to more than ``limit`` bytes."""
    cdef size_t head
    memset(c, 0, sizeof(Container))
    c.p = p
    c.limit = limit
    c.scratch = scratch
    c.create_ms = -1
    if n < 4:
        return _fail(c, b"fewer than 4 bytes")
    if p[0] != 0x0F or p[1] > 4:
        return _fail(c, b"the first two bytes are not a known magic")
    if p[n - 2] != p[0] or p[n - 1] != p[1]:
        return _fail(c, b"first and last magic differ")
    c.version = p[1]
    c.end = n - 2
    c.at = 2
    if c.version == 4:
        return _open_frame(c)
    head = 4 + (8 if c.version > 0 else 0) + (4 if c.version > 1 else 0)
    if c.end < 2 + head:
        return _fail(c, b"the head is cut off")
    if c.version > 0:
        c.create_ms = <int64_t>load_be64(p + 2)
    if c.version > 1:
        c.count = load_be32(p + 10)
    c.groups_left = load_be32(p + head - 2)
    c.at = 2 + head
    if <int32_t>c.groups_left < 0 or c.groups_left > (c.end - c.at) // 7:
        return _fail(c, b"more groups than the bytes can hold")
    return ST_OK


cdef int container_group(Container* c) noexcept nogil:
    """Open the next group; its records follow."""
    cdef size_t left
    cdef size_t size
    cdef uint8_t flag
    c.item_at = 0
    c.run_end = 0
    c.payload = slice_of(NULL, 0)
    if c.groups_left == 0:
        return ST_EOF if c.at == c.end else _fail(c, b"bytes after the last group")
    c.groups_left -= 1
    if c.version == 4:
        return _open_frame_body(c)
    left = c.end - c.at
    if left < 2 or load_be16(c.p + c.at) > left - 2:
        return _fail(c, b"an attribute text is longer than the rest")
    c.attrs = slice_of(c.p + c.at + 2, load_be16(c.p + c.at))
    c.at += 2 + c.attrs.n
    if c.version == 2:          # its number of records, which the payload tells as well
        if c.end - c.at < 4:
            return _fail(c, b"a group is cut off")
        c.at += 4
    left = c.end - c.at
    if left < 5:
        return _fail(c, b"a group is cut off")
    size = load_be32(c.p + c.at)
    if size < 1 or size > left - 4:
        return _fail(c, b"a payload is longer than the rest")
    flag = c.p[c.at + 4]
    c.payload = slice_of(c.p + c.at + 5, size - 1)
    c.at += 4 + size
    return _unpack(c) if flag == 1 else ST_OK


cdef int container_record(Container* c, Slice* body, Slice* attrs) noexcept nogil:
    """Read the next record of the open group."""
    cdef bint pairs = c.version == 3 or (c.version == 4 and c.ext & EXT_PAIRS)
    attrs[0] = slice_of(NULL, 0)
    if c.item_at == c.payload.n:
        return ST_EOF
    if c.whole:
        body[0] = c.payload
        c.item_at = c.payload.n
        return ST_OK
    if c.version == 3 and c.item_at >= c.run_end:
        if not _read_chunk(c, c.payload.n, body):
            return _fail(c, b"a record is longer than its payload")
        if body.n == 0:
            return _fail(c, b"a record without a pair")
        c.run_end = c.item_at
        c.item_at -= body.n
    if not _read_chunk(c, c.run_end if c.version == 3 else c.payload.n, body):
        return _fail(c, b"a record is longer than its payload")
    if not pairs:
        return ST_OK
    if body.n == 0:
        return _fail(c, b"an empty record in a pair")
    if not _read_chunk(c, c.run_end if c.version == 3 else c.payload.n, attrs) or attrs.n == 0:
        return _fail(c, b"a record's own attribute text is empty or longer than the rest")
    return ST_OK


cdef bint _read_chunk(Container* c, size_t end, Slice* out) noexcept nogil:
    cdef size_t size
    if end - c.item_at < 4:
        return False
    size = load_be32(c.payload.p + c.item_at)
    if size > end - c.item_at - 4:
        return False            # a negative length looks like a large one
    out[0] = slice_of(c.payload.p + c.item_at + 4, size)
    c.item_at += 4 + size
    return True


cdef int _unpack(Container* c) noexcept nogil:
    cdef int status
    c.packed = True
    c.scratch.n = 0
    status = unpack_block(c.payload.p, c.payload.n, c.limit, c.scratch)
    if status == ST_NO_MEMORY:
        return status
    if status != ST_OK:
        return _fail(c, b"a payload marked as snappy is no block, or is over the limit when unpacked")
    c.payload = slice_of(c.scratch.p, c.scratch.n)
    return ST_OK


cdef int _open_frame(Container* c) noexcept nogil:
    # Version 4: one binary frame between the magics.
    cdef const uint8_t* frame = c.p + 2
    cdef size_t n = c.end - 2
    cdef size_t body_n
    if n < BIN_FIXED or load_be32(frame) != n - LENGTH_SIZE:
        return _fail(c, b"the frame's length is not the container's")
    if frame[BIN_TYPE] & TYPE_MASK != TYPE_BINARY:
        return _fail(c, b"the frame is not of type 7")
    body_n = load_be32(frame + BIN_BODY_LEN)
    if body_n > n - BIN_FIXED or load_be16(frame + BIN_BODY + body_n) != n - BIN_FIXED - body_n:
        return _fail(c, b"the frame's field lengths do not add up")
    if load_be16(frame + n - 2) != MAGIC:
        return _fail(c, b"the frame's magic is wrong")
    c.create_ms = <int64_t>load_be32(frame + BIN_DATA_TIME) * 1000
    c.count = load_be16(frame + BIN_COUNT)
    c.ext = load_be16(frame + BIN_EXT)
    c.group_num = load_be16(frame + BIN_GROUP_NUM)
    c.stream_num = load_be16(frame + BIN_STREAM_NUM)
    c.attrs = slice_of(frame + BIN_BODY + body_n + 2, n - BIN_FIXED - body_n)
    c.groups_left = 1
    return ST_OK


cdef int _open_frame_body(Container* c) noexcept nogil:
    cdef const uint8_t* frame = c.p + 2
    cdef uint8_t flags = frame[BIN_TYPE] & TYPE_FLAGS
    c.payload = slice_of(frame + BIN_BODY, load_be32(frame + BIN_BODY_LEN))
    c.at = c.end
    if flags & TYPE_ENCRYPTED:
        c.whole = True
        return ST_OK
    return _unpack(c) if flags == TYPE_SNAPPY else ST_OK
