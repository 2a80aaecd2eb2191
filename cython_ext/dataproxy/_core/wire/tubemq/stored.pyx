"""Messages of TubeMQ's producers, stored as InLongMsg containers with one message each.

The container is of version 2, which no other request is stored in: so it is the mark of such messages.  Its attribute
text begins with ``tubemq=FLAG``, and ``&attr=TEXT`` follows if the payload has an attribute that can be told from its
body.  Then the container's message is that body alone, which every reader of the hub gets; else it is the whole
payload.  TEXT has each byte beyond printable ASCII, and each ``%``, ``&`` and ``=``, as ``%`` and two digits.
``&crc=SUM`` is the checksum of a large payload as its producer sent it, which consumers get; that of a small one is
computed again when it is read, for less than it costs to find it in the text.

Locality: owner of the buffers.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memchr, memcmp

from dataproxy._core.base.buf cimport (
    Buf, buf_put_be16, buf_put_be32, buf_put_be64, buf_put_decimal, buf_put_slice, buf_put_text, buf_put_u8,
    buf_reserve,
)
from dataproxy._core.base.percent cimport coded_size, put_coded, put_decoded
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.base.text cimport read_decimal
from dataproxy._core.plat.endian cimport load_be16, load_be32
from dataproxy._core.wire.inlong.container cimport end_text
from dataproxy._core.wire.tubemq.const cimport ATTRIBUTE_HEAD, CHECKSUM_NONE, FLAG_ATTRIBUTE
from dataproxy._core.wire.tubemq.payload cimport split_payload

cdef enum:
    HEAD = 2 + 8 + 4 + 4        # magic, time, messages, groups
    TAIL = 2                    # magic
    FIXED = HEAD + 2 + 4 + 4 + 1 + 4 + TAIL     # lengths of attribute text, payload and message; count; no compression
    TEXT_MOST = 32000           # bytes of an attribute that is kept apart, when coded
    CRC_LEAST = 512             # bytes of a payload whose checksum is kept
    AMPERSAND = 38
    COMMA = 44
    EQUALS = 61

cdef const char* MARK = b"tubemq="
cdef const char* ATTR = b"attr="
cdef const char* CRC = b"&crc="


cdef int _put_text(Buf* out, const SendRequest* send, bint apart, Slice attribute, int64_t now_ms) noexcept nogil:
    """Append the attribute text behind its length."""
    cdef size_t at = out.n
    cdef int status = buf_put_be16(out, 0)
    status |= buf_put_text(out, MARK)
    status |= buf_put_decimal(out, send.flag)
    if apart:
        status |= buf_put_text(out, b"&attr=")
        status |= put_coded(out, attribute)
    if send.checksum != CHECKSUM_NONE and send.payload.n >= CRC_LEAST:
        status |= buf_put_text(out, CRC)
        status |= buf_put_decimal(out, send.checksum)
    return status if status != ST_OK else end_text(out, at, send.topic, send.type, now_ms)


cdef int put_stored(Buf* out, const SendRequest* send, int64_t now_ms, Slice* body, size_t* body_at) noexcept nogil:
    """Append the container of a message without its body, which belongs at ``body_at`` of what was appended.

    Topic and filter item are names that may stand in an attribute text, of at most 255 bytes.  ST_OK or ST_NO_MEMORY.
    """
    cdef size_t start = out.n
    cdef Slice attribute
    cdef bint apart = split_payload(send.flag, send.payload, &attribute, body) and send.flag & FLAG_ATTRIBUTE != 0
    cdef int status
    if apart and coded_size(attribute) > TEXT_MOST:
        apart = False
        body[0] = send.payload
    status = buf_put_be16(out, 0x0F02)
    status |= buf_put_be64(out, <unsigned long long>now_ms)
    status |= buf_put_be32(out, 1)
    status |= buf_put_be32(out, 1)
    status |= _put_text(out, send, apart, attribute, now_ms)
    status |= buf_put_be32(out, 1)
    status |= buf_put_be32(out, <unsigned int>(1 + 4 + body.n))
    status |= buf_put_u8(out, 0)
    status |= buf_put_be32(out, <unsigned int>body.n)
    body_at[0] = out.n - start
    status |= buf_put_be16(out, 0x0F02)
    return ST_OK if status == ST_OK else ST_NO_MEMORY


cdef int _put_decoded(Buf* out, Slice text) noexcept nogil:
    """Append length and bytes of a coded text; ST_OK, ST_NO_MEMORY or ST_PROTOCOL."""
    cdef size_t at = out.n
    cdef int status
    if buf_reserve(out, ATTRIBUTE_HEAD + text.n) != ST_OK:
        return ST_NO_MEMORY
    out.n += ATTRIBUTE_HEAD
    status = put_decoded(out, text)
    if status == ST_OK:
        _store_length(out.p + at, out.n - at - ATTRIBUTE_HEAD)
    return status


cdef inline void _store_length(uint8_t* to, size_t n) noexcept nogil:
    to[0], to[1], to[2], to[3] = <uint8_t>(n >> 24), <uint8_t>(n >> 16), <uint8_t>(n >> 8), <uint8_t>n


cdef Slice _pair(Slice* rest) noexcept nogil:
    """Take the next pair of an attribute text."""
    cdef const uint8_t* stop = <const uint8_t*>memchr(rest.p, AMPERSAND, rest.n) if rest.n else NULL
    cdef Slice pair = rest[0]
    if stop == NULL:
        rest[0] = slice_of(rest.p + rest.n, 0)
        return pair
    pair.n = <size_t>(stop - pair.p)
    rest[0] = slice_of(stop + 1, rest.n - pair.n - 1)
    return pair


cdef inline bint _takes(Slice* pair, const char* key, size_t n) noexcept nogil:
    if pair.n < n or memcmp(pair.p, key, n) != 0:
        return False
    pair[0] = slice_of(pair.p + n, pair.n - n)
    return True


cdef int read_stored(Slice value, Buf* scratch, StoredMessage* out) noexcept nogil:
    """Read the container of a producer's message; the head is appended to ``scratch``, and borrowed from there.

    ST_OK; ST_PROTOCOL: it is another container; ST_NO_MEMORY.
    """
    cdef const uint8_t* p = value.p
    cdef size_t text_n, size, at = scratch.n
    cdef int64_t flag = 0, checksum = CHECKSUM_NONE
    cdef Slice text, pair
    cdef int status
    if value.n < FIXED or p[0] != 0x0F or p[1] != 2:
        return ST_PROTOCOL
    text_n = load_be16(p + HEAD)
    if value.n < FIXED + text_n:
        return ST_PROTOCOL
    size = load_be32(p + HEAD + 2 + text_n + 4 + 4 + 1)
    if value.n != FIXED + text_n + size:
        return ST_PROTOCOL
    text = slice_of(p + HEAD + 2, text_n)
    pair = _pair(&text)
    if not _takes(&pair, MARK, 7) or not read_decimal(pair, &flag):
        return ST_PROTOCOL
    out.flag = <int32_t>flag
    out.head = slice_of(NULL, 0)
    out.body = slice_of(p + FIXED - TAIL + text_n, size)
    pair = _pair(&text)
    if _takes(&pair, ATTR, 5):
        status = _put_decoded(scratch, pair)
        if status != ST_OK:
            return status
        out.head = slice_of(scratch.p + at, scratch.n - at)
        pair = _pair(&text)
    out.checksum = CHECKSUM_NONE
    if _takes(&pair, CRC + 1, 4) and read_decimal(pair, &checksum):
        out.checksum = <int32_t>checksum
    return ST_OK


cdef int put_attribute_head(Buf* out, Slice stream, Slice time) noexcept nogil:
    """Append length and text of the attribute that a message of another protocol gets: its stream, and its time.

    A stream with a comma or an equal sign cannot stand there; it is left out.  ST_OK or ST_NO_MEMORY.
    """
    cdef size_t at = out.n
    cdef bint named = stream.n > 0 and memchr(stream.p, COMMA, stream.n) == NULL and memchr(
        stream.p, EQUALS, stream.n) == NULL
    if buf_reserve(out, 64 + stream.n + time.n) != ST_OK:
        return ST_NO_MEMORY
    out.n += ATTRIBUTE_HEAD
    if named:
        buf_put_text(out, b"$msgType$=")
        buf_put_slice(out, stream)
        buf_put_text(out, b",")
    buf_put_text(out, b"$msgTime$=")
    buf_put_slice(out, time)
    _store_length(out.p + at, out.n - at - ATTRIBUTE_HEAD)
    return ST_OK
