"""CRC-32C: by an instruction of the processor if it has one (8 bytes in three cycles), else by tables.

CRC-32: from 64 bytes on by the processor's multiplication without carries, if it has one, else by tables.

Locality: any thread.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from dataproxy._core.plat.crc cimport (
    dp_crc32_by_processor, dp_crc32_by_tables, dp_crc32_has_processor, dp_crc_by_processor, dp_crc_by_tables,
    dp_crc_has_processor, dp_crc_prepare,
)

cdef bint _has_processor = dp_crc_has_processor()
cdef bint _multiplies = dp_crc32_has_processor()
dp_crc_prepare()


cdef uint32_t crc32c(uint32_t crc, const void* p, size_t n) noexcept nogil:
    """Continue a checksum over ``n`` bytes."""
    if _has_processor:
        return ~dp_crc_by_processor(~crc, <const uint8_t*>p, n)
    return ~dp_crc_by_tables(~crc, <const uint8_t*>p, n)


cdef uint32_t crc32c_by_tables(uint32_t crc, const void* p, size_t n) noexcept nogil:
    """Do the same without the processor's instruction."""
    return ~dp_crc_by_tables(~crc, <const uint8_t*>p, n)


cdef bint crc32c_has_processor() noexcept nogil:
    """Return whether ``crc32c`` uses the processor's instruction."""
    return _has_processor


cdef uint32_t crc32(uint32_t crc, const void* p, size_t n) noexcept nogil:
    """Continue a CRC-32 over ``n`` bytes, as ``zlib.crc32`` does."""
    if _multiplies:
        return ~dp_crc32_by_processor(~crc, <const uint8_t*>p, n)
    return ~dp_crc32_by_tables(~crc, <const uint8_t*>p, n)


cdef uint32_t crc32_by_tables(uint32_t crc, const void* p, size_t n) noexcept nogil:
    """Do the same without the processor's multiplication."""
    return ~dp_crc32_by_tables(~crc, <const uint8_t*>p, n)


cdef bint crc32_has_processor() noexcept nogil:
    """Return whether ``crc32`` uses the processor's multiplication."""
    return _multiplies
