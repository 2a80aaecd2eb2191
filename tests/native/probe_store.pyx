"""Test access to the checksum, and to the store's own clock on a time that tests set."""

from libc.stdint cimport uint8_t

from dataproxy._core.base.crc cimport crc32c, crc32c_by_tables, crc32c_has_processor
from dataproxy._core.server.store.clock cimport (
    CLOCK_ROW, StoreClock, storeclock_init, storeclock_now, storeclock_read, storeclock_write,
)
from dataproxy._core.server.store.core cimport StoreCore
from tests.native.probe_net cimport sim_clock

__all__ = ["OwnClock", "checksum", "checksum_by_processor", "follow_set_time"]


def checksum(bytes data not None, unsigned int before=0, bint tables=False) -> int:
    """Return the CRC-32C of bytes that follow those with the checksum ``before``."""
    return (crc32c_by_tables if tables else crc32c)(before, <const char*>data, <size_t>len(data))


def checksum_by_processor() -> bool:
    """Return whether ``checksum`` uses the processor's instruction."""
    return crc32c_has_processor()


def follow_set_time(StoreCore store not None):
    """Have a store's clock follow ``probe_net.set_time`` from its present time on."""
    cdef StoreClock* c = &store._memory.clock if store._has_memory else &store._store.clock
    c.source = sim_clock()
    c.boot_us = sim_clock().boot_us()


cdef class OwnClock:
    """A store's clock alone, in a process and a boot that the test chooses."""

    cdef StoreClock raw

    def __init__(self, bytes boot=None, bytes row=None):
        """Begin in this boot (16 bytes, None: not known), and go on from a row."""
        cdef const uint8_t* number = NULL
        if boot is not None:
            number = <const uint8_t*><const char*>boot
        storeclock_init(&self.raw, sim_clock(), number)
        if row is not None:
            storeclock_read(&self.raw, <const uint8_t*><const char*>row)

    def now(self) -> int:
        """Return its time in milliseconds."""
        return storeclock_now(&self.raw)

    def row(self) -> bytes:
        """Return the row that is kept on disk."""
        cdef uint8_t out[CLOCK_ROW]
        storeclock_write(&self.raw, out)
        return out[:CLOCK_ROW]
