"""Messages as a broker stores them and clients pull them, their ids and flags; items of a batch.

Every length is compared with the bytes that are there, and the lengths of all parts together are the message's.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.crc cimport crc32
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NEED_DATA, ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport load_be16, load_be32, load_be64, store_be16, store_be32, store_be64
from dataproxy._core.wire.rocketmq.const cimport (
    COMPRESSION_LZ4, COMPRESSION_NONE, COMPRESSION_UNKNOWN, COMPRESSION_ZLIB, COMPRESSION_ZSTD, ITEM_FIXED,
    MESSAGE_FIXED, MESSAGE_MAGIC, SYS_BORN_V6, SYS_COMPRESSED, SYS_COMPRESSION_SHIFT, SYS_STORE_V6, V6_MORE,
)

cdef enum:                      # a stored message, up to its first host
    STORED_AT_MAGIC = 4
    STORED_AT_CHECKSUM = STORED_AT_MAGIC + 4
    STORED_AT_QUEUE = STORED_AT_CHECKSUM + 4
    STORED_AT_FLAG = STORED_AT_QUEUE + 4
    STORED_AT_OFFSET = STORED_AT_FLAG + 4
    STORED_AT_PHYSICAL = STORED_AT_OFFSET + 8
    STORED_AT_SYS_FLAG = STORED_AT_PHYSICAL + 8
    STORED_AT_BORN = STORED_AT_SYS_FLAG + 4
    STORED_AT_HOST = STORED_AT_BORN + 8

cdef enum:                      # an item of a batch
    ITEM_AT_FLAG = 12           # behind size, magic and checksum
    ITEM_AT_BODY = ITEM_AT_FLAG + 4


ctypedef struct Parts:          # what is left of a message
    const uint8_t* at
    size_t left
    bint short                  # a length says more than there is


cdef inline const uint8_t* _pass(Parts* parts, size_t n) noexcept nogil:
    """Pass ``n`` bytes, and return where they begin; with ``short`` nothing more is passed."""
    cdef const uint8_t* at = parts.at
    if parts.short or n > parts.left:
        parts.short = True
        return NULL
    parts.at += n
    parts.left -= n
    return at


cdef inline Slice _sized(Parts* parts, size_t width) noexcept nogil:
    """Pass a length of 1, 2 or 4 bytes, signed, and what it speaks of."""
    cdef const uint8_t* at = _pass(parts, width)
    cdef size_t size
    if at == NULL:
        return slice_of(NULL, 0)
    size = load_be32(at) if width == 4 else load_be16(at) if width == 2 else at[0]
    if size >> 8 * width - 1:
        parts.short = True
    at = _pass(parts, size)
    return slice_of(at, 0 if at == NULL else size)


cdef inline void _host(Parts* parts, bint v6, Host* out) noexcept nogil:
    cdef const uint8_t* at
    out.n = 16 if v6 else 4
    at = _pass(parts, out.n + 4)
    if at != NULL:
        memcpy(out.address, at, out.n)
        out.port = <int32_t>load_be32(at + out.n)


cdef uint32_t body_checksum(Slice body) noexcept nogil:
    """Return the checksum of a body as it is stored."""
    return crc32(0, body.p, body.n) & 0x7FFFFFFF


cdef int compression_of(int32_t sys_flag) noexcept nogil:
    """Return the Compression of a body."""
    cdef int32_t kind = sys_flag >> SYS_COMPRESSION_SHIFT & 7
    if not sys_flag & SYS_COMPRESSED:
        return COMPRESSION_NONE
    if kind == 0 or kind == 3:
        return COMPRESSION_ZLIB
    if kind == 1:
        return COMPRESSION_LZ4
    return COMPRESSION_ZSTD if kind == 2 else COMPRESSION_UNKNOWN


cdef int read_stored(Slice data, StoredMessage* out, size_t* size) noexcept nogil:
    """Read the first message of ``data``, which has ``size`` bytes; ST_OK, ST_NEED_DATA or ST_PROTOCOL."""
    cdef const uint8_t* p = data.p
    cdef Parts parts
    cdef const uint8_t* at
    if data.n < 8:
        return ST_NEED_DATA
    size[0] = load_be32(p)
    if size[0] < MESSAGE_FIXED or size[0] > 0x7FFFFFFF or load_be32(p + STORED_AT_MAGIC) != MESSAGE_MAGIC:
        return ST_PROTOCOL
    if data.n < size[0]:
        return ST_NEED_DATA
    out.checksum = load_be32(p + STORED_AT_CHECKSUM)
    out.queue = <int32_t>load_be32(p + STORED_AT_QUEUE)
    out.flag = <int32_t>load_be32(p + STORED_AT_FLAG)
    out.queue_offset = <int64_t>load_be64(p + STORED_AT_OFFSET)
    out.physical_offset = <int64_t>load_be64(p + STORED_AT_PHYSICAL)
    out.sys_flag = <int32_t>load_be32(p + STORED_AT_SYS_FLAG)
    out.born_ms = <int64_t>load_be64(p + STORED_AT_BORN)
    parts.at, parts.left, parts.short = p + STORED_AT_HOST, size[0] - STORED_AT_HOST, False
    _host(&parts, out.sys_flag & SYS_BORN_V6 != 0, &out.born)
    at = _pass(&parts, 8)
    out.stored_ms = 0 if at == NULL else <int64_t>load_be64(at)
    _host(&parts, out.sys_flag & SYS_STORE_V6 != 0, &out.store)
    at = _pass(&parts, 12)
    if at != NULL:
        out.reconsume_times = <int32_t>load_be32(at)
        out.prepared_offset = <int64_t>load_be64(at + 4)
    out.body = _sized(&parts, 4)
    out.topic = _sized(&parts, 1)
    out.properties = _sized(&parts, 2)
    return ST_PROTOCOL if parts.short or parts.left else ST_OK


cdef size_t stored_size(const StoredMessage* m) noexcept nogil:
    """Return the bytes of a message."""
    return (MESSAGE_FIXED + m.body.n + m.topic.n + m.properties.n + (V6_MORE if m.sys_flag & SYS_BORN_V6 else 0)
            + (V6_MORE if m.sys_flag & SYS_STORE_V6 else 0))


cdef uint8_t* _put_host(uint8_t* to, const Host* host, bint v6) noexcept nogil:
    cdef size_t n = 16 if v6 else 4
    memcpy(to, host.address, n)
    store_be32(to + n, <uint32_t>host.port)
    return to + n + 4


cdef uint8_t* _put_bytes(uint8_t* to, Slice bytes_) noexcept nogil:
    if bytes_.n:
        memcpy(to, bytes_.p, bytes_.n)
    return to + bytes_.n


cdef uint8_t* put_stored(uint8_t* to, const StoredMessage* m) noexcept nogil:
    """Write a message with the checksum of its body, and return its end.

    Its topic has up to TOPIC_MOST bytes, its properties up to PROPERTIES_MOST, and hosts have what ``sys_flag`` says.
    """
    store_be32(to, <uint32_t>stored_size(m))
    store_be32(to + STORED_AT_MAGIC, MESSAGE_MAGIC)
    store_be32(to + STORED_AT_CHECKSUM, body_checksum(m.body))
    store_be32(to + STORED_AT_QUEUE, <uint32_t>m.queue)
    store_be32(to + STORED_AT_FLAG, <uint32_t>m.flag)
    store_be64(to + STORED_AT_OFFSET, <uint64_t>m.queue_offset)
    store_be64(to + STORED_AT_PHYSICAL, <uint64_t>m.physical_offset)
    store_be32(to + STORED_AT_SYS_FLAG, <uint32_t>m.sys_flag)
    store_be64(to + STORED_AT_BORN, <uint64_t>m.born_ms)
    to = _put_host(to + STORED_AT_HOST, &m.born, m.sys_flag & SYS_BORN_V6 != 0)
    store_be64(to, <uint64_t>m.stored_ms)
    to = _put_host(to + 8, &m.store, m.sys_flag & SYS_STORE_V6 != 0)
    store_be32(to, <uint32_t>m.reconsume_times)
    store_be64(to + 4, <uint64_t>m.prepared_offset)
    store_be32(to + 12, <uint32_t>m.body.n)
    to = _put_bytes(to + 16, m.body)
    to[0] = <uint8_t>m.topic.n
    to = _put_bytes(to + 1, m.topic)
    store_be16(to, <uint16_t>m.properties.n)
    return _put_bytes(to + 2, m.properties)


cdef uint8_t* put_message_id(uint8_t* to, const Host* host, int64_t offset) noexcept nogil:
    """Write a message's id, 32 hex digits with an IPv4 address and 56 with IPv6, and return its end."""
    cdef const char* digits = b"0123456789ABCDEF"
    cdef uint8_t raw[28]
    cdef size_t i
    memcpy(raw, host.address, host.n)
    store_be32(raw + host.n, <uint32_t>host.port)
    store_be64(raw + host.n + 4, <uint64_t>offset)
    for i in range(host.n + 12):
        to[2 * i] = digits[raw[i] >> 4]
        to[2 * i + 1] = digits[raw[i] & 15]
    return to + 2 * (host.n + 12)


cdef inline int _hex_digit(uint8_t c) noexcept nogil:
    if 48 <= c <= 57:
        return c - 48
    c |= 32
    return c - 87 if 97 <= c <= 102 else -1


cdef bint read_message_id(Slice text, Host* host, int64_t* offset) noexcept nogil:
    """Read an id that ``put_message_id`` wrote, or one in small letters; False: it is none."""
    cdef uint8_t raw[28]
    cdef size_t i
    cdef int high, low
    if text.n != 32 and text.n != 56:
        return False
    for i in range(text.n >> 1):
        high, low = _hex_digit(text.p[2 * i]), _hex_digit(text.p[2 * i + 1])
        if high < 0 or low < 0:
            return False
        raw[i] = <uint8_t>(high << 4 | low)
    host.n = 4 if text.n == 32 else 16
    memcpy(host.address, raw, host.n)
    host.port = <int32_t>load_be32(raw + host.n)
    offset[0] = <int64_t>load_be64(raw + host.n + 4)
    return True


cdef int read_item(Slice data, BatchItem* out, size_t* size) noexcept nogil:
    """Read the first item of a batch, which has ``size`` bytes; ST_OK or ST_PROTOCOL."""
    cdef const uint8_t* p = data.p
    cdef Parts parts
    if data.n < ITEM_FIXED:
        return ST_PROTOCOL
    size[0] = load_be32(p)
    if size[0] < ITEM_FIXED or size[0] > data.n:
        return ST_PROTOCOL
    out.flag = <int32_t>load_be32(p + ITEM_AT_FLAG)
    parts.at, parts.left, parts.short = p + ITEM_AT_BODY, size[0] - ITEM_AT_BODY, False
    out.body = _sized(&parts, 4)
    out.properties = _sized(&parts, 2)
    return ST_PROTOCOL if parts.short or parts.left else ST_OK


cdef size_t item_size(const BatchItem* item) noexcept nogil:
    """Return the bytes of an item."""
    return ITEM_FIXED + item.body.n + item.properties.n


cdef uint8_t* put_item(uint8_t* to, const BatchItem* item) noexcept nogil:
    """Write an item, and return its end; its properties have up to PROPERTIES_MOST bytes."""
    store_be32(to, <uint32_t>item_size(item))
    store_be64(to + 4, 0)
    store_be32(to + ITEM_AT_FLAG, <uint32_t>item.flag)
    store_be32(to + ITEM_AT_BODY, <uint32_t>item.body.n)
    to = _put_bytes(to + ITEM_AT_BODY + 4, item.body)
    store_be16(to, <uint16_t>item.properties.n)
    return _put_bytes(to + 2, item.properties)
