"""Large blocks of memory that are used again soon."""

from libc.stdint cimport uint8_t


cdef uint8_t* block_alloc(size_t n) noexcept nogil
cdef void block_free(void* p) noexcept nogil
cdef void blocks_drop() noexcept nogil
