"""UTF-8: how long a character is, and whether a text is well formed."""

from libc.stdint cimport uint8_t, uint64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.plat.endian cimport load_be64


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
