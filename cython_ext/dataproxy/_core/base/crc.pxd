"""Checksums: CRC-32C (iSCSI, ext4, Kafka), and CRC-32 (Ethernet, gzip, TubeMQ).

Both find every change of 32 bits in a row.  CRC-32C finds every change of up to three bits, CRC-32 in up to 11 KB; of
two bits in all that is sent here.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t


# The checksum of bytes that follow those with checksum `crc`; 0 to begin.
cdef uint32_t crc32c(uint32_t crc, const void* p, size_t n) noexcept nogil
cdef uint32_t crc32c_by_tables(uint32_t crc, const void* p, size_t n) noexcept nogil
cdef bint crc32c_has_processor() noexcept nogil
cdef uint32_t crc32(uint32_t crc, const void* p, size_t n) noexcept nogil
cdef uint32_t crc32_by_tables(uint32_t crc, const void* p, size_t n) noexcept nogil
cdef bint crc32_has_processor() noexcept nogil
