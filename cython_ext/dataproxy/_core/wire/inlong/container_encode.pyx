"""InLongMsg containers: writing.

A container is two magic bytes, a head, groups of one attribute text and one payload, and the magic again.
Version 4 is a binary frame between two magics and is written by the server role itself.

Locality: owner of ``out``.  Locks: none.
"""

from libc.string cimport memcpy

from dataproxy._core.base.buf cimport buf_put, buf_put_be16, buf_put_be32, buf_put_be64, buf_put_u8, buf_reserve
from dataproxy._core.base.compress cimport pack_block
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.endian cimport store_be16, store_be32
from dataproxy._core.wire.inlong.attrs cimport KEY_CNT, KEY_DT, KEY_RT, KEY_RTMS, Attr, attrs_has
from dataproxy._core.wire.inlong.const cimport MAX_TEXT_ATTRS
from dataproxy._core.wire.inlong.number cimport write_decimal
from dataproxy._core.wire.inlong.utf8 cimport utf8_size


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
