"""Exponential backoff with full jitter: each wait is random between 0 and a limit that doubles with each attempt.

Locality: the thread that owns ``random``.  Locks: none.
"""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.rand cimport rand_below


cdef inline int64_t backoff_us(int attempt, int64_t base_us, int64_t max_us, uint64_t* random) noexcept nogil:
    """Return the wait in microseconds before retry number ``attempt`` (1 = the first retry)."""
    cdef int64_t span = base_us
    while attempt > 1 and span < max_us:
        span *= 2
        attempt -= 1
    if span > max_us:
        span = max_us
    return <int64_t>rand_below(random, <uint64_t>span + 1)
