"""Monotonic time for deadlines, wall time for times that are sent over the wire.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int64_t
from posix.time cimport CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, nanosleep, timespec


cdef inline int64_t now_us() noexcept nogil:
    """Return CLOCK_MONOTONIC in microseconds."""
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return <int64_t>t.tv_sec * 1000000 + t.tv_nsec // 1000


cdef inline int64_t boot_us() noexcept nogil:
    """Return CLOCK_BOOTTIME in microseconds."""
    cdef timespec t
    clock_gettime(CLOCK_BOOTTIME, &t)
    return <int64_t>t.tv_sec * 1000000 + t.tv_nsec // 1000


cdef inline int64_t wall_ms() noexcept nogil:
    """Return CLOCK_REALTIME in milliseconds since 1970."""
    cdef timespec t
    clock_gettime(CLOCK_REALTIME, &t)
    return <int64_t>t.tv_sec * 1000 + t.tv_nsec // 1000000


cdef inline void pause_us(long us) noexcept nogil:
    """Sleep for ``us`` microseconds, plus the delay of the system's timer."""
    cdef timespec t
    t.tv_sec = 0
    t.tv_nsec = us * 1000
    nanosleep(&t, NULL)
