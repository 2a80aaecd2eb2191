"""Owned, growing byte buffer (a plain struct, so that code without the GIL can make one)."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dataproxy._core.base.slice cimport Slice


ctypedef struct Buf:
    uint8_t* p      # owned; NULL while empty
    size_t n        # bytes in use
    size_t cap      # bytes allocated


cdef void buf_init(Buf* b) noexcept nogil
cdef void buf_free(Buf* b) noexcept nogil
cdef int buf_reserve(Buf* b, size_t extra) noexcept nogil      # room for `extra` more; ST_OK or ST_NO_MEMORY
cdef int buf_put(Buf* b, const void* p, size_t n) noexcept nogil
cdef int buf_put_slice(Buf* b, Slice s) noexcept nogil
cdef int buf_put_text(Buf* b, const char* text) noexcept nogil
cdef int buf_put_u8(Buf* b, uint8_t v) noexcept nogil
cdef int buf_put_be16(Buf* b, uint16_t v) noexcept nogil
cdef int buf_put_be32(Buf* b, uint32_t v) noexcept nogil
cdef int buf_put_be64(Buf* b, uint64_t v) noexcept nogil
cdef int buf_put_decimal(Buf* b, int64_t v) noexcept nogil
