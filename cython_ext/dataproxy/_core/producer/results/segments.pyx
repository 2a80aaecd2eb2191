"""Segments of a batch, in the order of its messages.

Locks: none.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from dataproxy._core.pack.pack cimport PackResult, pack_result_release
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK


cdef int segments_add(Segments* g, PackResult* v, uint32_t first, uint32_t count) noexcept nogil:
    """Note ``count`` messages from place ``first`` of their pack on; ST_OK or ST_NO_MEMORY.

    Locality: owner.  Locks: none.  Takes over one reference to ``v``, also when it fails.
    """
    cdef Segment* last = &g.items[g.n - 1] if g.n else NULL
    cdef Segment* grown
    cdef int64_t cap
    if last != NULL and last.pack_result == v and last.first + last.count == first:
        last.count += count
        g.messages += count
        pack_result_release(v)
        return ST_OK
    if g.n == g.cap:
        cap = g.cap * 2 if g.cap else 4
        grown = <Segment*>realloc(g.items, <size_t>cap * sizeof(Segment))
        if grown == NULL:
            pack_result_release(v)
            return ST_NO_MEMORY
        g.items = grown
        g.cap = cap
    g.items[g.n].pack_result = v
    g.items[g.n].first = first
    g.items[g.n].count = count
    g.n += 1
    g.messages += count
    return ST_OK


cdef void segments_free(Segments* g) noexcept nogil:
    """Drop all references.  Locality: owner."""
    cdef int64_t i
    for i in range(g.n):
        pack_result_release(g.items[i].pack_result)
    free(g.items)
    memset(g, 0, sizeof(Segments))
