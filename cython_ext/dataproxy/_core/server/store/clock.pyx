"""The store's own clock and its row.

Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from dataproxy._core.base.clock cimport Clock
from dataproxy._core.plat.endian cimport load_be64, store_be64


cdef void storeclock_init(StoreClock* c, const Clock* source, const uint8_t* boot) noexcept nogil:
    """Begin at zero; ``boot`` is the number of the machine's boot, NULL where it is not known.

    Locality: owner.
    """
    memset(c, 0, sizeof(StoreClock))
    c.source = source
    c.boot_us = source.boot_us()
    if boot != NULL:
        memcpy(c.boot, boot, BOOT_ID)


cdef int64_t storeclock_now(StoreClock* c) noexcept nogil:
    """Return the store's time in milliseconds.  Locality: appending thread."""
    cdef int64_t passed_ms
    if c.source != NULL:
        passed_ms = (c.source.boot_us() - c.boot_us) // 1000
        if passed_ms > 0:
            c.own_ms += passed_ms
            c.boot_us += passed_ms * 1000
    return c.own_ms


cdef void storeclock_write(StoreClock* c, uint8_t* row) noexcept nogil:
    """Write the row to ``row``.  Locality: appending thread."""
    store_be64(row, <uint64_t>storeclock_now(c))
    store_be64(row + 8, <uint64_t>(c.boot_us // 1000))
    store_be64(row + 16, <uint64_t>(0 if c.source == NULL else c.source.wall_ms()))
    memcpy(row + 24, c.boot, BOOT_ID)
    c.saved_ms = c.own_ms


cdef void storeclock_read(StoreClock* c, const uint8_t* row) noexcept nogil:
    """Continue from a row, plus the time since it was written if that is known surely.  Locality: owner."""
    cdef uint8_t none[BOOT_ID]
    cdef int64_t by_boot
    cdef int64_t by_wall
    memset(none, 0, BOOT_ID)
    c.own_ms = <int64_t>load_be64(row)
    c.saved_ms = c.own_ms
    if c.source == NULL or memcmp(c.boot, none, BOOT_ID) == 0 or memcmp(c.boot, row + 24, BOOT_ID) != 0:
        return
    by_boot = c.boot_us // 1000 - <int64_t>load_be64(row + 8)
    by_wall = c.source.wall_ms() - <int64_t>load_be64(row + 16)
    if by_boot > 0 and by_wall > 0:
        c.own_ms += by_boot if by_boot < by_wall else by_wall
