"""The items of a pack, and the caller's ids of a settled one."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.base.slice cimport Slice


ctypedef struct ItemWalk:   # borrowed
    const uint8_t* p        # items that are left, not compressed
    size_t n
    int items               # ItemForm


cdef bint item_next(ItemWalk* w, Slice* body, Slice* attrs) noexcept nogil
cdef void pack_keep_ids(Pack* p) noexcept nogil
cdef list pack_own_ids(Pack* p)
