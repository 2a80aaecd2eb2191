"""Items of a body that came as one snappy block: counted and checked without unpacking it."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from dataproxy._core.base.buf cimport Buf


# Walk `{u32 length, data}` in the block p[0:n]; `scratch` is used behind its content, which stays.  ST_OK: whole, and
# `count` is what walk_items finds in its content.  ST_PROTOCOL: only unpacking can tell; ST_NO_MEMORY.
cdef int walk_packed(const uint8_t* p, size_t n, size_t limit, Buf* scratch, uint32_t* count) noexcept nogil
