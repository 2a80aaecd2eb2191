"""Mistakes on purpose, one for each sanitizer.  Built in the asan and tsan profiles only."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free


cdef struct Shared:
    volatile int64_t total  # or the compiler makes one addition of the loop


cdef Shared shared


def count(int64_t rounds):
    """Add ``rounds`` to the shared number one by one, without GIL and atomic: a race when two threads do it."""
    cdef int64_t _
    with nogil:
        for _ in range(rounds):
            shared.total += 1


def read_behind(size_t size):
    """Return the byte behind a block of ``size`` bytes."""
    cdef volatile char* block = <volatile char*>calloc(size, 1)
    cdef int found = block[size]
    free(<void*>block)
    return found


def shift(int distance):
    """Return 1 shifted by ``distance``, which is undefined from 32 on."""
    return 1 << distance


def forget(size_t size):
    """Allocate a block of ``size`` bytes and lose its address."""
    cdef volatile char* block = <volatile char*>calloc(size, 1)
    block[0] = 1
    block = NULL
