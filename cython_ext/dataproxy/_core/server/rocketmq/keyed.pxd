"""Rows that are found by bytes which peers choose."""

from libc.stddef cimport size_t
from libc.stdint cimport uint64_t

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.base.slice cimport Slice


ctypedef struct KeyedRow:       # one block: the struct, then `row_size` bytes of its user's, then its key
    KeyedRow* next              # of its bucket
    uint64_t hash
    size_t key_n


ctypedef struct Keyed:
    HashKey secret
    KeyedRow** buckets
    size_t size                 # a power of two
    size_t count
    size_t row_size             # a multiple of 8
    size_t most                 # rows


cdef int keyed_init(Keyed* t, const HashKey* secret, size_t row_size, size_t most) noexcept nogil
cdef void keyed_free(Keyed* t) noexcept nogil           # not what rows point to
cdef void* keyed_find(const Keyed* t, Slice key) noexcept nogil     # the user's bytes; NULL: there is no such row
cdef void* keyed_make(Keyed* t, Slice key) noexcept nogil           # the same, all zero if it is new; NULL: no room
cdef void keyed_drop(Keyed* t, Slice key) noexcept nogil
cdef Slice keyed_key(const Keyed* t, const void* row) noexcept nogil
# The row behind another one, from NULL on; no row may be made or dropped meanwhile.
cdef void* keyed_next(const Keyed* t, const void* row) noexcept nogil
