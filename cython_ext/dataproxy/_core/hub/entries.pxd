"""Life of an entry: one block holds the struct and every byte it points to."""

from libc.stddef cimport size_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.hub.entry cimport Entry


ctypedef struct Middle:     # bytes of an InLongMsg that lie elsewhere, and where in parts.value they belong
    Slice bytes
    size_t at


# Every field that is copied from `parts` is documented at Entry; parts.value is the InLongMsg alone, without `middle`:
# the queue header is written in front of it.  With `room` the value gets a block of its own.  NULL: no memory.
cdef Entry* entry_new(const Entry* parts, Slice source, Slice node, const Middle* middle, size_t room) noexcept nogil
cdef void entry_free(Entry* entry) noexcept nogil
cdef void entry_free_chain(Entry* chain) noexcept nogil
cdef size_t entry_footprint(const Entry* entry) noexcept nogil
