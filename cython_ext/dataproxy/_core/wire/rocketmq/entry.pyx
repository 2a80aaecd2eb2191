"""Messages as the hub stores them: InLongMsg containers with one message each, and back.

The container is of version 2, whose attribute text begins with ``rocketmq=FLAG,SYSFLAG,BORN,RETRIES,PREPARED,HOST``:
numbers, the time in ms, and HOST as the digits of address and port.  ``&properties=TEXT`` follows, coded as in
`base.percent`, if there are any.  The container's message is the body as it came, compressed if it was.

The tag is the stream, so that the store's index of streams serves filters.  A tag that no stream can be called by is
in the properties alone, as of a message without one; both are in the stream without a name.

Locality: owner of the buffer.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memchr, memcmp, memcpy

from dataproxy._core.base.buf cimport (
    Buf, buf_put_be16, buf_put_be32, buf_put_be64, buf_put_decimal, buf_put_text, buf_put_u8,
)
from dataproxy._core.base.percent cimport coded_size, put_coded, put_decoded
from dataproxy._core.base.slice cimport Slice, slice_is, slice_of, slice_text
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.base.text cimport is_utf8, read_decimal
from dataproxy._core.plat.endian cimport load_be16, load_be32, store_be32
from dataproxy._core.wire.inlong.container cimport end_text
from dataproxy._core.wire.rocketmq.const cimport SYS_BORN_V6, SYS_STORE_V6
from dataproxy._core.wire.rocketmq.properties cimport property_next, property_value
from dataproxy._core.wire.rocketmq.stored cimport Host, StoredMessage

cdef enum:
    HEAD = 2 + 8 + 4 + 4        # magic, time, messages, groups
    TAIL = 2                    # magic
    FIXED = HEAD + 2 + 4 + 4 + 1 + 4 + TAIL     # lengths of attribute text, payload and message; count; no compression
    NAME_MOST = 255             # bytes of a stream
    TEXT_MOST = 64000           # bytes of the coded properties: two bytes hold the length of the whole text
    HOST_MOST = 40              # digits of a host
    NUMBERS = 5
    AMPERSAND = 38
    EQUALS = 61
    COMMA = 44

cdef const char* MARK = b"rocketmq="
cdef const char* PROPERTIES = b"properties="
cdef const char* DIGITS = b"0123456789ABCDEF"


cdef bint is_stream(Slice tag) noexcept nogil:
    """Tell whether a stream can be called by a tag: the store's attribute text has no escaping for names."""
    cdef size_t i
    if tag.n == 0 or tag.n > NAME_MOST:
        return False
    for i in range(tag.n):
        if tag.p[i] == AMPERSAND or tag.p[i] == EQUALS or tag.p[i] < 32 or tag.p[i] == 127:
            return False
    return is_utf8(tag)


cdef Slice stream_of(Slice properties) noexcept nogil:
    """Return the stream of a message: its tag, or nothing."""
    cdef Slice tag = slice_of(NULL, 0)
    if not property_value(properties, slice_text(b"TAGS"), &tag) or not is_stream(tag):
        return slice_of(NULL, 0)
    return tag


cdef int _put_host(Buf* out, const Host* host) noexcept nogil:
    """Append the digits of a host; none for one that is not known."""
    cdef uint8_t raw[20]
    cdef size_t i
    cdef int status = ST_OK
    if host.n == 0:
        return ST_OK
    memcpy(raw, host.address, host.n)
    store_be32(raw + host.n, <unsigned int>host.port)
    for i in range(host.n + 4):
        status |= buf_put_u8(out, <uint8_t>DIGITS[raw[i] >> 4])
        status |= buf_put_u8(out, <uint8_t>DIGITS[raw[i] & 15])
    return status


cdef int _put_properties(Buf* out, Slice properties) noexcept nogil:
    """Append the properties but for WAIT, which a broker does not store either, coded one by one."""
    cdef Slice name, value
    cdef Slice rest = properties
    cdef uint8_t pair = 2, mark = 1
    cdef bint first = True
    cdef int status = ST_OK
    while property_next(&rest, &name, &value):
        if slice_is(name, b"WAIT"):
            continue
        status |= buf_put_text(out, b"&properties=" if first else b"")
        if not first:
            status |= put_coded(out, slice_of(&pair, 1))
        first = False
        status |= put_coded(out, name)
        status |= put_coded(out, slice_of(&mark, 1))
        status |= put_coded(out, value)
    return status


cdef int _put_attributes(Buf* out, const StoredMessage* m, Slice stream, int64_t now_ms) noexcept nogil:
    """Append the attribute text behind its length."""
    cdef int64_t[NUMBERS] numbers
    cdef size_t at = out.n
    cdef int i
    cdef int status = buf_put_be16(out, 0)
    numbers[0], numbers[2] = m.flag, m.born_ms
    numbers[1] = m.sys_flag & ~(<int32_t>(SYS_BORN_V6 | SYS_STORE_V6))      # addresses say it themselves
    numbers[3], numbers[4] = m.reconsume_times, m.prepared_offset
    status |= buf_put_text(out, MARK)
    for i in range(NUMBERS):
        status |= buf_put_decimal(out, numbers[i])
        status |= buf_put_u8(out, COMMA)
    status |= _put_host(out, &m.born)
    status |= _put_properties(out, m.properties)
    return status if status != ST_OK else end_text(out, at, m.topic, stream, now_ms)


cdef int put_entry(Buf* out, const StoredMessage* m, Slice stream, int64_t now_ms, size_t* body_at) noexcept nogil:
    """Append the container of a message; ST_OK, ST_NO_MEMORY, or ST_LIMIT: its properties are too long when coded."""
    cdef size_t start = out.n
    cdef int status
    if coded_size(m.properties) > TEXT_MOST:
        return ST_LIMIT
    status = buf_put_be16(out, 0x0F02)
    status |= buf_put_be64(out, <unsigned long long>now_ms)
    status |= buf_put_be32(out, 1)
    status |= buf_put_be32(out, 1)
    status |= _put_attributes(out, m, stream, now_ms)
    status |= buf_put_be32(out, 1)
    status |= buf_put_be32(out, <unsigned int>(1 + 4 + m.body.n))
    status |= buf_put_u8(out, 0)
    status |= buf_put_be32(out, <unsigned int>m.body.n)
    body_at[0] = out.n - start
    status |= buf_put_be16(out, 0x0F02)
    return ST_OK if status == ST_OK else ST_NO_MEMORY


cdef Slice _until(Slice* rest, uint8_t stop) noexcept nogil:
    """Take what stands before a byte, and the byte."""
    cdef Slice all_ = rest[0]
    cdef const uint8_t* at = <const uint8_t*>memchr(all_.p, stop, all_.n) if all_.n else NULL
    if at == NULL:
        rest[0] = slice_of(all_.p + all_.n, 0)
        return all_
    rest[0] = slice_of(at + 1, <size_t>(all_.p + all_.n - at) - 1)
    return slice_of(all_.p, <size_t>(at - all_.p))


cdef inline bint _takes(Slice* pair, const char* key, size_t n) noexcept nogil:
    if pair.n < n or memcmp(pair.p, key, n) != 0:
        return False
    pair[0] = slice_of(pair.p + n, pair.n - n)
    return True


cdef bint _read_host(Slice digits, Host* out) noexcept nogil:
    """Read the digits of a host; False: they are none."""
    cdef uint8_t raw[HOST_MOST >> 1]
    cdef size_t i
    cdef int c, value
    out.n = 0
    out.port = 0
    if digits.n == 0:
        return True
    if digits.n != 16 and digits.n != HOST_MOST:
        return False
    for i in range(digits.n):
        c = digits.p[i]
        value = c - 48 if 48 <= c <= 57 else c - 55 if 65 <= c <= 70 else -1
        if value < 0:
            return False
        raw[i >> 1] = <uint8_t>(value if i & 1 == 0 else raw[i >> 1] << 4 | value)
    out.n = (digits.n >> 1) - 4
    memcpy(out.address, raw, out.n)
    out.port = <int32_t>load_be32(raw + out.n)
    return True


cdef bint _read_mark(Slice pair, StoredMessage* out) noexcept nogil:
    """Read the numbers and the host; False: they are none."""
    cdef int64_t[NUMBERS] numbers
    cdef int i
    for i in range(NUMBERS):
        if not read_decimal(_until(&pair, COMMA), &numbers[i]):
            return False
    out.flag, out.sys_flag, out.born_ms = <int32_t>numbers[0], <int32_t>numbers[1], numbers[2]
    out.reconsume_times, out.prepared_offset = <int32_t>numbers[3], numbers[4]
    if not _read_host(pair, &out.born):
        return False
    if out.born.n == 16:
        out.sys_flag |= SYS_BORN_V6
    return True


cdef int read_entry(Slice container, Buf* scratch, StoredMessage* out) noexcept nogil:
    """Read what `put_entry` made, but for the topic; properties are written to ``scratch``, which is emptied before.

    ST_OK; ST_PROTOCOL: it is another container; ST_NO_MEMORY.
    """
    cdef const uint8_t* p = container.p
    cdef size_t text_n, size
    cdef Slice text, pair
    cdef int status
    scratch.n = 0
    out.properties = slice_of(NULL, 0)
    if container.n < FIXED or p[0] != 0x0F or p[1] != 2:
        return ST_PROTOCOL
    text_n = load_be16(p + HEAD)
    if container.n < FIXED + text_n:
        return ST_PROTOCOL
    size = load_be32(p + HEAD + 2 + text_n + 4 + 4 + 1)
    if container.n != FIXED + text_n + size:
        return ST_PROTOCOL
    text = slice_of(p + HEAD + 2, text_n)
    pair = _until(&text, AMPERSAND)
    if not _takes(&pair, MARK, 9) or not _read_mark(pair, out):
        return ST_PROTOCOL
    out.body = slice_of(p + FIXED - TAIL + text_n, size)
    pair = _until(&text, AMPERSAND)
    if _takes(&pair, PROPERTIES, 11):
        status = put_decoded(scratch, pair)
        if status != ST_OK:
            return status
        out.properties = slice_of(scratch.p, scratch.n)
    return ST_OK
