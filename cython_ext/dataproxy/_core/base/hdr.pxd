"""High dynamic range histogram: values from 1 to 2^36 (19 hours in microseconds) with an error of at most 0.1 %.

The slots are those of HdrHistogram with three significant digits: 2048 exact values, then 1024 steps for each power of
two.  Percentiles are the same as those of other implementations for the same values.
"""

from libc.stdint cimport int64_t

cdef enum:
    HDR_HALF_BITS = 10          # 1024 steps for each power of two
    HDR_HALF = 1024
    HDR_POWERS = 36             # the largest value has so many bits
    HDR_SLOTS = 27648           # (HDR_POWERS - HDR_HALF_BITS + 1) * HDR_HALF


ctypedef struct Hdr:            # guarded by its owner's lock
    int64_t* counts             # HDR_SLOTS of them; owned
    int64_t n
    int64_t beyond              # values larger than the largest slot; they are counted in that slot
    int64_t least
    int64_t largest
    double total                # sum of all values


cdef int hdr_open(Hdr* h) noexcept nogil
cdef void hdr_close(Hdr* h) noexcept nogil
cdef void hdr_clear(Hdr* h) noexcept nogil
cdef void hdr_add(Hdr* h, int64_t value, int64_t times) noexcept nogil
cdef void hdr_merge(Hdr* to, const Hdr* h) noexcept nogil
cdef int64_t hdr_bound(int slot) noexcept nogil
cdef int64_t hdr_rank(const Hdr* h, double percent) noexcept nogil
cdef int64_t hdr_percentile(const Hdr* h, double percent) noexcept nogil
cdef int64_t hdr_above(const Hdr* h, int64_t value) noexcept nogil
