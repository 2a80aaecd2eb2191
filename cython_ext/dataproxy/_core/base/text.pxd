"""Text as bytes: decimal numbers, how far it is ASCII, and whether it is well-formed UTF-8."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.plat.endian cimport load_be64


cdef inline bint read_decimal(Slice s, int64_t* value) noexcept nogil:
    """Read the whole of ``s`` as a signed decimal; false when it is none or overflows."""
    cdef size_t i = 0
    cdef bint negative = False
    cdef uint64_t v = 0
    cdef uint64_t limit = <uint64_t>0x7FFFFFFFFFFFFFFF
    cdef uint8_t c
    if s.n > 0 and (s.p[0] == 45 or s.p[0] == 43):
        negative = s.p[0] == 45
        i = 1
    if i == s.n or s.n - i > 19:
        return False
    while i < s.n:
        c = <uint8_t>(s.p[i] - 48)
        if c > 9:
            return False
        v = v * 10 + c          # at most 19 digits: below 2**64
        i += 1
    if v > limit:
        return False
    value[0] = -<int64_t>v if negative else <int64_t>v
    return True


cdef inline size_t write_decimal(uint8_t* out, uint64_t v) noexcept nogil:
    """Write ``v`` at ``out`` (room for 20 bytes) and return the number of digits."""
    cdef uint8_t raw[20]
    cdef size_t n = 0
    cdef size_t i
    while True:
        raw[n] = <uint8_t>(48 + v % 10)
        n += 1
        v //= 10
        if v == 0:
            break
    for i in range(n):
        out[i] = raw[n - 1 - i]
    return n


cdef inline size_t ascii_prefix(Slice s) noexcept nogil:
    """Return how many bytes at the start are ASCII."""
    cdef size_t i = 0
    while s.n - i >= 8 and load_be64(s.p + i) & <uint64_t>0x8080808080808080 == 0:
        i += 8
    while i < s.n and s.p[i] < 0x80:
        i += 1
    return i


cdef inline bint is_ascii(Slice s) noexcept nogil:
    """Tell whether every byte is ASCII."""
    return ascii_prefix(s) == s.n


cdef size_t utf8_size(const uint8_t* p, size_t n) noexcept nogil    # of the character at p; 0: not well formed
cdef bint is_utf8(Slice s) noexcept nogil


cdef enum LineRule:
    LINE_ANY = 0            # bodies are not joined as lines
    LINE_BARE = 1           # no line feed
    LINE_TEXT = 2           # no line feed, UTF-8, and not blank


cdef bint is_line(int rule, const uint8_t* p, size_t n) noexcept nogil
