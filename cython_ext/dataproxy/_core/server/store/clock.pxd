"""The store's own clock: elapsed time, independent of the wall clock.

Ages (retention, the de-duplication window) are differences of this clock.  It follows the machine's clock of time since
boot, which cannot be set and which also counts while the machine sleeps.  A durable store keeps the time on disk.
Between two runs it advances by the time that has passed according to both the clock since boot and the wall clock; over
a reboot it does not advance.  So a wall clock that jumps never makes an entry look older than it is.
"""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.clock cimport Clock


cdef enum StoreClockConst:
    BOOT_ID = 16                # bytes of the number of a boot
    CLOCK_ROW = 8 + 8 + 8 + 16  # own time i64 in ms, time since boot i64 in ms, wall time i64 in ms, number of the boot


ctypedef struct StoreClock:     # appending thread only
    const Clock* source         # NULL: tests move it by hand
    int64_t own_ms
    int64_t boot_us             # what the source said when own_ms was brought up to date
    int64_t saved_ms            # own_ms in the row on disk
    uint8_t boot[BOOT_ID]       # zeros: not known


cdef void storeclock_init(StoreClock* c, const Clock* source, const uint8_t* boot) noexcept nogil
cdef int64_t storeclock_now(StoreClock* c) noexcept nogil
cdef void storeclock_write(StoreClock* c, uint8_t* row) noexcept nogil
cdef void storeclock_read(StoreClock* c, const uint8_t* row) noexcept nogil
