"""The clock of the operating system as a value.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int64_t

from dataproxy._core.plat.clock cimport boot_us, now_us, wall_ms

cdef Clock SYSTEM
SYSTEM.now_us = _now_us
SYSTEM.wall_ms = _wall_ms
SYSTEM.boot_us = _boot_us


cdef const Clock* system_clock() noexcept nogil:
    """Return the operating system's clock, which all loops use outside of simulations."""
    return &SYSTEM


cdef int64_t _now_us() noexcept nogil:
    return now_us()


cdef int64_t _wall_ms() noexcept nogil:
    return wall_ms()


cdef int64_t _boot_us() noexcept nogil:
    return boot_us()
