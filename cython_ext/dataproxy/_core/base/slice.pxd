"""Borrowed bytes: a pointer and a length; the memory belongs to other code."""

from libc.stdint cimport uint8_t
from libc.string cimport memcmp, strlen


ctypedef struct Slice:
    const uint8_t* p
    size_t n


cdef inline Slice slice_of(const void* p, size_t n) noexcept nogil:
    """Return a slice over ``n`` bytes at ``p``."""
    cdef Slice s
    s.p = <const uint8_t*>p
    s.n = n
    return s


cdef inline Slice slice_text(const char* text) noexcept nogil:
    """Return a slice over a NUL-terminated text, without the NUL."""
    return slice_of(text, strlen(text))


cdef inline bint slice_equals(Slice a, Slice b) noexcept nogil:
    """Tell whether both hold the same bytes."""
    return a.n == b.n and (a.n == 0 or memcmp(a.p, b.p, a.n) == 0)


cdef inline bint slice_is(Slice a, const char* text) noexcept nogil:
    """Tell whether the slice holds exactly ``text``."""
    return slice_equals(a, slice_text(text))
