"""The payload of a message: ``[int32 length][attribute text]`` where the flag says so, then the body.

The attribute text is ``key=value`` pairs joined by commas; neither holds a comma or an equal sign.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memchr, memcpy

from dataproxy._core.base.crc cimport crc32
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.text cimport utf8_size
from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.wire.tubemq.const cimport ATTRIBUTE_HEAD, FLAG_ATTRIBUTE


cdef bint split_payload(int32_t flag, Slice payload, Slice* attribute, Slice* body) noexcept nogil:
    """Find attribute and body; False if the attribute's length does not fit, then the whole payload is the body.

    A Java client sends such messages: it sets the flag of an attribute that is empty, and writes no length.
    """
    cdef uint32_t size
    attribute[0] = slice_of(NULL, 0)
    body[0] = payload
    if not flag & FLAG_ATTRIBUTE:
        return True
    if payload.n < ATTRIBUTE_HEAD:
        return False
    size = load_be32(payload.p)
    if size > payload.n - ATTRIBUTE_HEAD:
        return False
    attribute[0] = slice_of(payload.p + ATTRIBUTE_HEAD, size)
    body[0] = slice_of(payload.p + ATTRIBUTE_HEAD + size, payload.n - ATTRIBUTE_HEAD - size)
    return True


cdef size_t payload_size(Slice attribute, size_t body) noexcept nogil:
    """Return the bytes of a payload."""
    return body + (ATTRIBUTE_HEAD + attribute.n if attribute.n else 0)


cdef uint8_t* put_attribute(uint8_t* to, Slice attribute, int32_t* flag) noexcept nogil:
    """Write what stands before the body, which is nothing for an empty attribute, and return where the body begins."""
    flag[0] = 0
    if attribute.n == 0:
        return to
    flag[0] = FLAG_ATTRIBUTE
    store_be32(to, <uint32_t>attribute.n)
    memcpy(to + ATTRIBUTE_HEAD, attribute.p, attribute.n)
    return to + ATTRIBUTE_HEAD + attribute.n


cdef int32_t payload_checksum(Slice payload) noexcept nogil:
    """Return the CRC-32 of all bytes, without its highest bit: so it is never negative, and finds a little less."""
    return <int32_t>(crc32(0, payload.p, payload.n) & 0x7FFFFFFF)


cdef bint attribute_value(Slice attribute, Slice key, Slice* value) noexcept nogil:
    """Find the value of the first pair with ``key``."""
    cdef const uint8_t* at = attribute.p
    cdef const uint8_t* end = attribute.p + attribute.n
    cdef const uint8_t* stop
    while at < end:
        stop = <const uint8_t*>memchr(at, 44, <size_t>(end - at))
        if stop == NULL:
            stop = end
        if <size_t>(stop - at) > key.n and at[key.n] == 61 and slice_equals(slice_of(at, key.n), key):
            value[0] = slice_of(at + key.n + 1, <size_t>(stop - at) - key.n - 1)
            return True
        at = stop + 1
    return False


cdef uint32_t _character(const uint8_t* p, size_t n) noexcept nogil:
    # Of well-formed UTF-8 with n bytes.
    cdef uint32_t c = p[0] if n == 1 else p[0] & (0x7F >> n)
    cdef size_t i
    for i in range(1, n):
        c = c << 6 | (p[i] & 0x3F)
    return c


cdef int32_t filter_code(Slice item) noexcept nogil:
    """Return what brokers compare of a filter item: Java's hash of a text, over units of UTF-16.

    A byte that is not UTF-8 counts as U+FFFD.  Java may take several such bytes for one; no filter item has any.
    """
    cdef uint32_t code = 0, c
    cdef size_t i = 0, n
    while i < item.n:
        n = utf8_size(item.p + i, item.n - i)
        if n == 0:
            n = 1
            c = 0xFFFD
        else:
            c = _character(item.p + i, n)
        if c > 0xFFFF:
            code = 31 * code + (0xD7C0 + (c >> 10))
            c = 0xDC00 + (c & 0x3FF)
        code = 31 * code + c
        i += n
    return <int32_t>code
