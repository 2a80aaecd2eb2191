"""Items of a body: counted and checked in one walk, also in a snappy block, and given their names."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice


ctypedef struct Walk:       # how far a walk came
    size_t at               # offset of the item that stopped it, else the size of the body
    uint32_t count          # whole items before it


cdef int walk_items(const uint8_t* p, size_t n, Walk* walk) noexcept nogil
cdef int walk_pairs(const uint8_t* p, size_t n, Buf* store, Walk* walk) noexcept nogil
# Walk `{u32 length, data}` in the block p[0:n]; `scratch` is used behind its content, which stays.  ST_OK: whole, and
# `count` is what walk_items finds in its content.  ST_PROTOCOL: only unpacking can tell; ST_NO_MEMORY.
cdef int walk_packed(const uint8_t* p, size_t n, size_t limit, Buf* scratch, uint32_t* count) noexcept nogil
cdef int name_items(
    const uint8_t* p, size_t n, int items, uint32_t count, Slice id, uint32_t* ends, Buf* out,
) noexcept nogil
