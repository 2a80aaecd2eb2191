"""Atomic 64-bit integers: acquire/release for hand-over, relaxed for statistics."""

from libc.stdint cimport int64_t


cdef extern from "dp_plat.h" nogil:
    int64_t atomic_load "dp_atomic_load"(const int64_t* p) noexcept
    void atomic_store "dp_atomic_store"(int64_t* p, int64_t v) noexcept
    int64_t atomic_add "dp_atomic_add"(int64_t* p, int64_t v) noexcept
    int64_t atomic_swap "dp_atomic_swap"(int64_t* p, int64_t v) noexcept
    bint atomic_replace "dp_atomic_replace"(int64_t* p, int64_t was, int64_t v) noexcept     # True if it was `was`
    void relaxed_add "dp_relaxed_add"(int64_t* p, int64_t v) noexcept
    int64_t relaxed_load "dp_relaxed_load"(const int64_t* p) noexcept
    void relaxed_store "dp_relaxed_store"(int64_t* p, int64_t v) noexcept
