"""Log-linear histogram of non-negative integers; adding takes constant time, and nothing is allocated.

Locality: any thread.  Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t

from dataproxy._core.plat.bits cimport leading_zeros


cdef inline int _slot(int64_t value) noexcept nogil:
    cdef int power
    if value < HIST_STEPS:
        return <int>value if value > 0 else 0
    power = 63 - leading_zeros(<unsigned long long>value)     # >= 5
    if power > 40:
        return HIST_SLOTS - 1
    return (power - 4) * HIST_STEPS + <int>((value >> (power - 5)) & (HIST_STEPS - 1))


cdef int64_t hist_bound(int slot) noexcept nogil:
    """Return the largest value that is counted in a slot."""
    cdef int power
    if slot < HIST_STEPS:
        return slot
    power = slot // HIST_STEPS + 4
    return ((<int64_t>(HIST_STEPS + slot % HIST_STEPS + 1)) << (power - 5)) - 1


cdef void hist_add(Hist* h, int64_t value, int64_t weight) noexcept nogil:
    """Count ``value`` ``weight`` times.  Locks: the owner's."""
    h.counts[_slot(value)] += weight
    h.n += weight
    h.total += value * weight
    if value > h.largest:
        h.largest = value


cdef int64_t hist_percentile(const Hist* h, double percent) noexcept nogil:
    """Return the value below which ``percent`` of all values lie, -1 if empty.  Locks: the owner's."""
    cdef int64_t rank, seen = 0
    cdef int slot
    if h.n == 0:
        return -1
    rank = <int64_t>(percent / 100.0 * <double>h.n)
    if rank >= h.n:
        return h.largest
    for slot in range(HIST_SLOTS):
        seen += h.counts[slot]
        if seen > rank:
            return min(hist_bound(slot), h.largest)
    return h.largest


cdef int64_t hist_up_to(const Hist* h, int64_t value) noexcept nogil:
    """Return how many values lie at or below ``value``, with an error of one step.  Locks: the owner's."""
    cdef int64_t seen = 0
    cdef int slot
    for slot in range(HIST_SLOTS):
        if hist_bound(slot) > value:
            break
        seen += h.counts[slot]
    return seen
