"""InLongMsg containers: writing, then reading.

A container is two magic bytes, a head, groups of one attribute text and one payload, and the magic again.
Version 4 is a binary frame between two magics and is written by the server role itself.  When a container is read,
every length is checked before it is used; nothing is padded or dropped.

Locality: owner of the buffer that is written, or of the reader's place.  Locks: none.
"""

from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport (
    buf_put, buf_put_be16, buf_put_be32, buf_put_be64, buf_put_decimal, buf_put_text, buf_put_u8, buf_reserve,
)
from dataproxy._core.base.snappy.compress cimport pack_block, unpack_block
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_EOF, ST_LIMIT, ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.base.text cimport utf8_size, write_decimal
from dataproxy._core.plat.endian cimport load_be16, load_be32, load_be64, store_be16, store_be32
from dataproxy._core.wire.inlong.attrs cimport KEY_CNT, KEY_DT, KEY_RT, KEY_RTMS, Attr, attrs_has
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
    MAX_TEXT_ATTRS,
    TYPE_BINARY,
    TYPE_ENCRYPTED,
    TYPE_FLAGS,
    TYPE_MASK,
    TYPE_SNAPPY,
)


cdef int put_container_magic(Buf* out, int version) noexcept nogil:
    """Append the magic that opens and closes a container."""
    return buf_put_be16(out, <unsigned short>(0x0F00 | version))


cdef int put_container_head(Buf* out, int version, int64_t create_ms, uint32_t count, uint32_t groups) noexcept nogil:
    """Append magic and head of versions 0 to 3."""
    cdef int status = put_container_magic(out, version)
    if version > 0:
        status |= buf_put_be64(out, <unsigned long long>create_ms)
    if version >= 2:
        status |= buf_put_be32(out, count)
    status |= buf_put_be32(out, groups)
    return ST_OK if status == ST_OK else ST_NO_MEMORY


cdef int open_group_text(Buf* out, GroupPlace* place) noexcept nogil:
    """Leave room for the length of a group's attribute text."""
    place.attr_at = out.n
    return buf_put_be16(out, 0)


cdef int end_text(Buf* out, size_t at, Slice group, Slice stream, int64_t now_ms) noexcept nogil:
    """End the text of a message of another protocol, which came now; two bytes at ``at`` become its length."""
    cdef int status = buf_put_text(out, b"&groupId=")
    status |= put_text(out, group)
    status |= buf_put_text(out, b"&streamId=")
    status |= put_text(out, stream)
    status |= buf_put_text(out, b"&dt=")
    status |= buf_put_decimal(out, now_ms)
    status |= buf_put_text(out, b"&cnt=1&rt=")
    status |= buf_put_decimal(out, now_ms)
    if status == ST_OK:
        store_be16(out.p + at, <unsigned short>(out.n - at - 2))
    return status


cdef int close_group_text(Buf* out, const GroupPlace* place) noexcept nogil:
    """Set the length of a group's attribute text."""
    cdef size_t n = out.n - place.attr_at - 2
    if n > MAX_TEXT_ATTRS:
        return ST_LIMIT
    store_be16(out.p + place.attr_at, <unsigned short>n)
    return ST_OK


cdef int put_payload(Buf* out, Slice payload, bint packed) noexcept nogil:
    """Append length, flag and payload of a group."""
    cdef size_t at = out.n
    cdef int status = buf_put_be32(out, 0)
    status |= buf_put_u8(out, 1 if packed else 0)
    if status != ST_OK:
        return ST_NO_MEMORY
    status = pack_block(payload.p, payload.n, out) if packed else buf_put(out, payload.p, payload.n)
    if status == ST_OK:
        store_be32(out.p + at, <uint32_t>(out.n - at - 4))
    return status


cdef int put_stored_attrs(
    Buf* out, const Buf* store, const Attrs* attrs, int64_t data_time_ms, bint keep_dt, int64_t cnt,
    int64_t receive_ms,
) noexcept nogil:
    """Append what a request said plus what the server knows."""
    cdef const Attr* entry = <const Attr*>store.p
    cdef size_t i
    cdef int status = ST_OK
    for i in range(attrs.n):
        if entry[i].known != KEY_CNT and (keep_dt or entry[i].known != KEY_DT):
            status |= put_text(out, entry[i].key)
            status |= buf_put_u8(out, 61)
            status |= put_text(out, entry[i].value)
            status |= buf_put_u8(out, 38)
    if not keep_dt:
        status |= _put_pair(out, b"dt=", 3, data_time_ms)
    status |= _put_pair(out, b"cnt=", 4, cnt)
    if not attrs_has(attrs, KEY_RT):
        status |= _put_pair(out, b"rt=", 3, receive_ms)
    if not attrs_has(attrs, KEY_RTMS):
        status |= _put_pair(out, b"rtms=", 5, receive_ms)
    out.n -= 1                  # the last "&"
    return ST_OK if status == ST_OK else ST_NO_MEMORY


cdef int put_text(Buf* out, Slice utf8) noexcept nogil:
    """Append UTF-8 as modified UTF-8; what is not UTF-8 becomes U+FFFD."""
    cdef size_t i = 0
    cdef size_t size
    cdef uint32_t code
    cdef uint8_t c
    cdef uint8_t* at
    if buf_reserve(out, 3 * utf8.n) != ST_OK:
        return ST_NO_MEMORY
    at = out.p + out.n
    while i < utf8.n:
        c = utf8.p[i]
        if 0 < c < 0x80:
            at[0] = c
            at += 1
            i += 1
            continue
        size = utf8_size(utf8.p + i, utf8.n - i)
        if c == 0:
            at = _put_code(at, 0xC0, 0x80)
            size = 1
        elif size == 0:
            at[0] = 0xEF
            at = _put_code(at + 1, 0xBF, 0xBD)
            size = 1
        elif size < 4:
            memcpy(at, utf8.p + i, size)
            at += size
        else:
            code = (c & 7) << 18 | (utf8.p[i + 1] & 63) << 12 | (utf8.p[i + 2] & 63) << 6 | (utf8.p[i + 3] & 63)
            at = _put_surrogate(at, 0xD800 + ((code - 0x10000) >> 10))
            at = _put_surrogate(at, 0xDC00 + (code & 0x3FF))
        i += size
    out.n = <size_t>(at - out.p)
    return ST_OK


cdef inline uint8_t* _put_code(uint8_t* at, uint8_t first, uint8_t second) noexcept nogil:
    at[0] = first
    at[1] = second
    return at + 2


cdef inline uint8_t* _put_surrogate(uint8_t* at, uint32_t unit) noexcept nogil:
    at[0] = <uint8_t>(0xE0 | unit >> 12)
    return _put_code(at + 1, <uint8_t>(0x80 | (unit >> 6 & 63)), <uint8_t>(0x80 | (unit & 63)))


cdef int _put_pair(Buf* out, const char* key, size_t key_n, int64_t value) noexcept nogil:
    cdef uint8_t raw[40]
    cdef size_t n = key_n
    memcpy(raw, key, key_n)
    if value < 0:
        raw[n] = 45
        n += 1
    n += write_decimal(raw + n, <unsigned long long>(value if value >= 0 else -value))
    raw[n] = 38
    return buf_put(out, raw, n + 1)


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
