"""Life of an entry: one block holds the struct and every byte it points to."""

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.hub.entry cimport Entry


# Every field that is copied from `parts` is documented at Entry; parts.value is the InLongMsg alone:
# the queue header is written in front of it.  NULL: no memory.
cdef Entry* entry_new(const Entry* parts, Slice source, Slice node) noexcept nogil
cdef void entry_free(Entry* entry) noexcept nogil
cdef void entry_free_chain(Entry* chain) noexcept nogil
cdef size_t entry_footprint(const Entry* entry) noexcept nogil
