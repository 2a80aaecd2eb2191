"""The last 30 loads that a proxy reported, and their weighted average."""

from libc.stdint cimport int32_t, int64_t


cdef enum:
    LOAD_WINDOW = 30
    LOAD_UNKNOWN = -1
    LOAD_STOPPED = -2


ctypedef struct LoadWindow:     # owned by the executor of its link
    int32_t samples[30]         # ring; LOAD_UNKNOWN for an answer without a usable load
    int64_t total               # answers ever taken


cdef void load_clear(LoadWindow* w) noexcept nogil
cdef void load_add(LoadWindow* w, int load) noexcept nogil
cdef int load_average(const LoadWindow* w) noexcept nogil
cdef int load_average_by_slot(const LoadWindow* w) noexcept nogil
