"""Arithmetic over 128 bits."""

from libc.stdint cimport uint64_t


cdef extern from "dp_wide.h" nogil:
    # The upper half of a * b; the lower half goes to *low.
    uint64_t multiply "dp_multiply"(uint64_t a, uint64_t b, uint64_t* low) noexcept
    # Divides high:low in place; gives the remainder.
    uint64_t divide "dp_divide"(uint64_t* high, uint64_t* low, uint64_t d) noexcept
