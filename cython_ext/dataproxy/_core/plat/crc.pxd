"""CRC-32C and CRC-32, by the processor or by tables; ``base/crc`` chooses."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t


cdef extern from "dp_crc.h" nogil:
    void dp_crc_prepare() noexcept
    bint dp_crc_has_processor() noexcept
    uint32_t dp_crc_by_processor(uint32_t crc, const uint8_t* p, size_t n) noexcept
    uint32_t dp_crc_by_tables(uint32_t crc, const uint8_t* p, size_t n) noexcept
    uint32_t dp_crc32_by_tables(uint32_t crc, const uint8_t* p, size_t n) noexcept
    bint dp_crc32_has_processor() noexcept
    uint32_t dp_crc32_by_processor(uint32_t crc, const uint8_t* p, size_t n) noexcept
