"""Items of a body: counted and checked in one walk."""

from libc.stdint cimport uint8_t, uint32_t

from dataproxy._core.base.buf cimport Buf


ctypedef struct Walk:       # how far a walk came
    size_t at               # offset of the item that stopped it, else the size of the body
    uint32_t count          # whole items before it


cdef int walk_items(const uint8_t* p, size_t n, Walk* walk) noexcept nogil
cdef int walk_pairs(const uint8_t* p, size_t n, Buf* store, Walk* walk) noexcept nogil
