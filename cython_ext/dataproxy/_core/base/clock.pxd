"""A clock as a value: code that reads the time outside of fast paths takes one, so a simulation can give its own."""

from libc.stdint cimport int64_t


ctypedef struct Clock:
    int64_t (*now_us)() noexcept nogil      # monotonic, for deadlines
    int64_t (*wall_ms)() noexcept nogil     # since 1970, for times that are sent over the wire
    int64_t (*boot_us)() noexcept nogil     # monotonic, counts also while the machine sleeps; for ages


cdef const Clock* system_clock() noexcept nogil
