"""Exponential backoff with full jitter: each wait is uniform between nothing and a span that doubles."""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.rand cimport rand_below


cdef inline int64_t backoff_us(int attempt, int64_t base_us, int64_t max_us, uint64_t* random) noexcept nogil:
    """Return the wait before attempt number ``attempt`` (1 = the first retry).  Locality: owner.  Locks: none."""
    cdef int64_t span = base_us
    while attempt > 1 and span < max_us:
        span *= 2
        attempt -= 1
    if span > max_us:
        span = max_us
    return <int64_t>rand_below(random, <uint64_t>span + 1)
