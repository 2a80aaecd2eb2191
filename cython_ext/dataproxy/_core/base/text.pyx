"""UTF-8: how long a character is, and whether a text is well formed.  Decimal numbers and ASCII are inline.

Locality: any thread.  Locks: none.
"""

from libc.string cimport memchr

from dataproxy._core.base.slice cimport slice_of


cdef bint is_utf8(Slice s) noexcept nogil:
    """Tell whether the whole text is well formed."""
    cdef size_t i = ascii_prefix(s)
    cdef size_t size
    while i < s.n:
        size = utf8_size(s.p + i, s.n - i)
        if size == 0:
            return False
        i += size
    return True


cdef bint is_line(int rule, const uint8_t* p, size_t n) noexcept nogil:
    """Tell whether a body may be joined with others, by a LineRule."""
    cdef size_t i = 0
    if rule == LINE_ANY:
        return True
    if n > 0 and memchr(p, 10, n) != NULL:
        return False
    if rule == LINE_BARE:
        return True
    while i < n and (p[i] == 32 or 9 <= p[i] <= 13 or 28 <= p[i] <= 31):
        i += 1
    return i < n and is_utf8(slice_of(p, n))


cdef size_t utf8_size(const uint8_t* p, size_t n) noexcept nogil:
    """Return the bytes of the character at ``p``, 0 if it is not well formed."""
    cdef size_t size
    cdef size_t i
    if 0xC2 <= p[0] <= 0xDF:
        size = 2
    elif 0xE0 <= p[0] <= 0xEF:
        size = 3
    elif 0xF0 <= p[0] <= 0xF4:
        size = 4
    else:
        return 1 if p[0] < 0x80 else 0
    if n < size:
        return 0
    for i in range(1, size):
        if p[i] & 0xC0 != 0x80:
            return 0
    if p[0] == 0xE0 and p[1] < 0xA0 or p[0] == 0xED and p[1] > 0x9F:
        return 0                # overlong, or a surrogate
    if p[0] == 0xF0 and p[1] < 0x90 or p[0] == 0xF4 and p[1] > 0x8F:
        return 0                # overlong, or beyond U+10FFFF
    return size
