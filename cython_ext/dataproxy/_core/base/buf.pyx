"""Growing byte buffer: geometric growth, every append checked.

Locks: none.
"""

from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.endian cimport store_be16, store_be32, store_be64


cdef void buf_init(Buf* b) noexcept nogil:
    """Make ``b`` an empty buffer.  Locality: any thread."""
    b.p = NULL
    b.n = 0
    b.cap = 0


cdef void buf_free(Buf* b) noexcept nogil:
    """Release the memory; ``b`` is empty again.  Locality: owner."""
    free(b.p)
    buf_init(b)


cdef int buf_reserve(Buf* b, size_t extra) noexcept nogil:
    """Make room for ``extra`` bytes behind ``b.n``.  Locality: owner."""
    cdef size_t cap = b.cap
    cdef uint8_t* grown
    if extra <= b.cap - b.n:
        return ST_OK
    if extra > (<size_t>1 << 40):
        return ST_NO_MEMORY
    if cap < 64:
        cap = 64
    while cap - b.n < extra:
        cap *= 2
    grown = <uint8_t*>realloc(b.p, cap)
    if grown == NULL:
        return ST_NO_MEMORY
    b.p = grown
    b.cap = cap
    return ST_OK


cdef int buf_put(Buf* b, const void* p, size_t n) noexcept nogil:
    """Append ``n`` bytes.  Locality: owner."""
    if n == 0:
        return ST_OK
    if buf_reserve(b, n) != ST_OK:
        return ST_NO_MEMORY
    memcpy(b.p + b.n, p, n)
    b.n += n
    return ST_OK


cdef int buf_put_slice(Buf* b, Slice s) noexcept nogil:
    """Append borrowed bytes.  Locality: owner."""
    return buf_put(b, s.p, s.n)


cdef int buf_put_text(Buf* b, const char* text) noexcept nogil:
    """Append a NUL-terminated text without its NUL.  Locality: owner."""
    cdef size_t n = 0
    while text[n] != 0:
        n += 1
    return buf_put(b, text, n)


cdef int buf_put_u8(Buf* b, uint8_t v) noexcept nogil:
    """Append one byte.  Locality: owner."""
    return buf_put(b, &v, 1)


cdef int buf_put_be16(Buf* b, uint16_t v) noexcept nogil:
    """Append a big-endian 16-bit number.  Locality: owner."""
    cdef uint8_t raw[2]
    store_be16(raw, v)
    return buf_put(b, raw, 2)


cdef int buf_put_be32(Buf* b, uint32_t v) noexcept nogil:
    """Append a big-endian 32-bit number.  Locality: owner."""
    cdef uint8_t raw[4]
    store_be32(raw, v)
    return buf_put(b, raw, 4)


cdef int buf_put_be64(Buf* b, uint64_t v) noexcept nogil:
    """Append a big-endian 64-bit number.  Locality: owner."""
    cdef uint8_t raw[8]
    store_be64(raw, v)
    return buf_put(b, raw, 8)


cdef int buf_put_decimal(Buf* b, int64_t v) noexcept nogil:
    """Append a number as decimal text.  Locality: owner."""
    cdef uint8_t raw[24]
    cdef int i = 24
    cdef bint negative = v < 0
    cdef uint64_t rest = <uint64_t>(-(v + 1)) + 1 if negative else <uint64_t>v
    while True:
        i -= 1
        raw[i] = <uint8_t>(48 + rest % 10)
        rest //= 10
        if rest == 0:
            break
    if negative:
        i -= 1
        raw[i] = 45
    return buf_put(b, raw + i, <size_t>(24 - i))
