"""Growing queue of 64-bit values with access by position; a plain struct.

Locality: the thread that owns the ring.  Locks: none.
"""

from libc.stdint cimport uint64_t


ctypedef struct Ring:
    uint64_t* items
    uint64_t room       # a power of two, or 0
    uint64_t head       # position of the oldest value, counted from the first ever pushed
    uint64_t tail       # position behind the youngest


cdef int ring_reserve(Ring* ring) noexcept nogil     # room for one more value; ST_OK or ST_NO_MEMORY
cdef void ring_push(Ring* ring, uint64_t value) noexcept nogil     # after ring_reserve
cdef void ring_drop(Ring* ring) noexcept nogil


cdef inline uint64_t ring_at(const Ring* ring, uint64_t position) noexcept nogil:
    """Return the value at a position between head and tail."""
    return ring.items[position & (ring.room - 1)]
