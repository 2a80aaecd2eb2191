"""Big-endian loads and stores through memcpy: no alignment is assumed."""

from libc.stdint cimport uint16_t, uint32_t, uint64_t


cdef extern from "dp_plat.h" nogil:
    uint16_t load_be16 "dp_load_be16"(const void* p) noexcept
    uint32_t load_be32 "dp_load_be32"(const void* p) noexcept
    uint64_t load_be64 "dp_load_be64"(const void* p) noexcept
    void store_be16 "dp_store_be16"(void* p, uint16_t v) noexcept
    void store_be32 "dp_store_be32"(void* p, uint32_t v) noexcept
    void store_be64 "dp_store_be64"(void* p, uint64_t v) noexcept
