"""Forks of this process: a number that differs between parent and child, and functions that run first in a child."""

from libc.stdint cimport uint32_t

# Changes in every forked child before anything else runs there; constant for the life of a process.
cdef uint32_t this_generation


ctypedef struct ForkNode:       # part of the watched struct; zeroed memory is a node that is not watched
    ForkNode* next
    ForkNode* previous
    void* context
    void (*in_child)(void* context) noexcept nogil
    uint32_t generation


cdef void forks_watch(ForkNode* n, void (*in_child)(void* context) noexcept nogil, void* context) noexcept nogil
cdef void forks_unwatch(ForkNode* n) noexcept nogil
