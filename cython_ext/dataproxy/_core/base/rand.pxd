"""Fast random numbers for jitter and choice; seeded, so that a simulator can repeat them.

Locality: the thread that owns ``state``.  Locks: none.
"""

from libc.stdint cimport uint64_t


cdef inline uint64_t rand_next(uint64_t* state) noexcept nogil:
    """Advance a xorshift64* generator (Marsaglia 2003, Vigna 2016)."""
    cdef uint64_t x = state[0] if state[0] else <uint64_t>0x9E3779B97F4A7C15
    x ^= x >> 12
    x ^= x << 25
    x ^= x >> 27
    state[0] = x
    return x * <uint64_t>0x2545F4914F6CDD1D


cdef inline uint64_t rand_below(uint64_t* state, uint64_t n) noexcept nogil:
    """Return a number in [0, n); 0 when n is 0."""
    return (rand_next(state) >> 11) % n if n else 0
