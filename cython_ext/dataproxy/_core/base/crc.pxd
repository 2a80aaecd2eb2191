"""CRC-32C, the checksum of iSCSI, ext4 and Kafka: finds every change of up to three bits, and of 32 bits in a row."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t


# The checksum of bytes that follow those with checksum `crc`; 0 to begin.
cdef uint32_t crc32c(uint32_t crc, const void* p, size_t n) noexcept nogil
cdef uint32_t crc32c_by_tables(uint32_t crc, const void* p, size_t n) noexcept nogil
cdef bint crc32c_has_processor() noexcept nogil
