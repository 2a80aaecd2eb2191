"""High dynamic range histogram; adding takes constant time, and nothing is allocated after ``hdr_open``.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport INT64_MAX, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.bits cimport leading_zeros


cdef int hdr_open(Hdr* h) noexcept nogil:
    """Make an empty histogram; ST_OK or ST_NO_MEMORY.  Locality: any thread.  Locks: the owner's."""
    memset(h, 0, sizeof(Hdr))
    h.least = INT64_MAX
    h.counts = <int64_t*>calloc(HDR_SLOTS, sizeof(int64_t))
    return ST_OK if h.counts != NULL else ST_NO_MEMORY


cdef void hdr_close(Hdr* h) noexcept nogil:
    """Release the counts.  Locality: the last user."""
    free(h.counts)
    h.counts = NULL


cdef void hdr_clear(Hdr* h) noexcept nogil:
    """Forget all values.  Locality: any thread.  Locks: the owner's."""
    cdef int64_t* counts = h.counts
    memset(counts, 0, HDR_SLOTS * sizeof(int64_t))
    memset(h, 0, sizeof(Hdr))
    h.least = INT64_MAX
    h.counts = counts


cdef inline int _slot(int64_t value) noexcept nogil:
    cdef int shift
    if value < 2 * HDR_HALF:
        return <int>value
    shift = 63 - leading_zeros(<unsigned long long>value) - HDR_HALF_BITS
    return shift * HDR_HALF + <int>(value >> shift)


cdef int64_t hdr_bound(int slot) noexcept nogil:
    """Return the largest value that is counted in a slot.  Locality: any thread."""
    cdef int shift
    if slot < 2 * HDR_HALF:
        return slot
    shift = slot // HDR_HALF - 1
    return ((<int64_t>(slot % HDR_HALF + HDR_HALF + 1)) << shift) - 1


cdef void hdr_add(Hdr* h, int64_t value, int64_t times) noexcept nogil:
    """Count ``value`` ``times`` times, a negative one as 0.  Locality: any thread.  Locks: the owner's."""
    value = max(value, 0)
    if value >> HDR_POWERS:
        h.counts[HDR_SLOTS - 1] += times
        h.beyond += times
    else:
        h.counts[_slot(value)] += times
    h.n += times
    h.total += <double>value * times
    h.least = min(h.least, value)
    h.largest = max(h.largest, value)


cdef void hdr_merge(Hdr* to, const Hdr* h) noexcept nogil:
    """Add all values of ``h`` to ``to``.  Locality: any thread.  Locks: both owners'."""
    cdef int slot
    for slot in range(HDR_SLOTS):
        to.counts[slot] += h.counts[slot]
    to.n += h.n
    to.beyond += h.beyond
    to.total += h.total
    to.least = min(to.least, h.least)
    to.largest = max(to.largest, h.largest)


cdef int64_t hdr_rank(const Hdr* h, double percent) noexcept nogil:
    """Return how many of the values, counted from the smallest, lie at or below a percentile.  Locks: the owner's.

    The number is at least 1 and is rounded to the nearest, as in HdrHistogram.
    """
    return max(<int64_t>(min(max(percent, 0.0), 100.0) / 100.0 * <double>h.n + 0.5), 1)


cdef int64_t hdr_percentile(const Hdr* h, double percent) noexcept nogil:
    """Return the largest value of the slot that holds the value at ``percent``, -1 if empty.  Locks: the owner's.

    At 0 percent it is the smallest value of that slot, as in HdrHistogram.
    """
    cdef int64_t rank = hdr_rank(h, percent), seen = 0
    cdef int slot
    if h.n == 0:
        return -1
    for slot in range(HDR_SLOTS):
        seen += h.counts[slot]
        if seen >= rank:
            return hdr_bound(slot) if percent > 0.0 or slot == 0 else hdr_bound(slot - 1) + 1
    return hdr_bound(HDR_SLOTS - 1)


cdef int64_t hdr_above(const Hdr* h, int64_t value) noexcept nogil:
    """Return how many values lie in slots above that of ``value``.  Locks: the owner's."""
    cdef int64_t above = 0
    cdef int slot, own = _slot(min(max(value, 0), (<int64_t>1 << HDR_POWERS) - 1))
    for slot in range(own + 1, HDR_SLOTS):
        above += h.counts[slot]
    return above
