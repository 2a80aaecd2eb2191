"""Ring of 64-bit values with geometric growth.

Locality: the thread that owns the ring.  Locks: none.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK


cdef int ring_reserve(Ring* ring) noexcept nogil:
    """Make room for one more value."""
    cdef uint64_t room = ring.room * 2 if ring.room else 16
    cdef uint64_t* items
    cdef uint64_t i
    if ring.tail - ring.head < ring.room:
        return ST_OK
    items = <uint64_t*>malloc(room * sizeof(uint64_t))
    if items == NULL:
        return ST_NO_MEMORY
    for i in range(ring.head, ring.tail):
        items[i & (room - 1)] = ring.items[i & (ring.room - 1)]
    free(ring.items)
    ring.items = items
    ring.room = room
    return ST_OK


cdef void ring_push(Ring* ring, uint64_t value) noexcept nogil:
    """Add the youngest value; there must be room."""
    ring.items[ring.tail & (ring.room - 1)] = value
    ring.tail += 1


cdef void ring_drop(Ring* ring) noexcept nogil:
    """Drop the oldest value; there must be one."""
    ring.head += 1
