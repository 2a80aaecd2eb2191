"""Log-linear histogram: 32 steps for each power of two, so the error of a value is at most 3.2 %."""

from libc.stdint cimport int64_t

cdef enum:
    HIST_STEPS = 32
    HIST_SLOTS = 1184       # 32 exact values, then 36 powers of two: up to 2^41 us, 25 days


ctypedef struct Hist:       # guarded by its owner's lock
    int64_t counts[1184]
    int64_t n
    int64_t largest
    int64_t total           # sum of all values


cdef void hist_add(Hist* h, int64_t value, int64_t weight) noexcept nogil
cdef int64_t hist_percentile(const Hist* h, double percent) noexcept nogil
cdef int64_t hist_bound(int slot) noexcept nogil
cdef int64_t hist_up_to(const Hist* h, int64_t value) noexcept nogil
