"""A ring of items in the order in which they were added, with a hash table of chains over it.

Items have positions, which count up from 1.  An item is known while its time is at most ``keep_ms`` ago and fewer than
``most`` items were added after it; memory of older items is released in bounded steps.  Items added since
``idring_keep`` can be removed again.  Items of every kind begin with an ``IdRingItem``; the bytes behind it are zero
when an item is added.

Locality: appending thread.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint64_t


cdef enum IdRingConst:
    IDRING_END = 0            # no position: the end of a chain,
    IDRING_UNLINKED = -1      # and of an item that no chain leads to


ctypedef struct IdRingItem:
    uint64_t high           # hash of what the item stands for
    uint64_t low
    int64_t at_ms
    uint64_t older          # position of the next one in its chain, IDRING_END or IDRING_UNLINKED


ctypedef struct IdRing:       # the appending thread's own
    int64_t keep_ms
    uint64_t most
    size_t size             # bytes of an item
    char* items             # by position, modulo room
    uint64_t* table         # newest position of each chain, IDRING_END without one
    uint64_t room           # a power of two, or 0
    uint64_t head           # oldest position that is held
    uint64_t tail           # behind the youngest
    uint64_t kept_tail
    int64_t gone_ms         # nothing that is younger than this was forgotten
    # Statistics, relaxed atomics.
    int64_t held
    int64_t expired
    int64_t forgotten       # before their time, for want of room; the kind of item says what it counts


cdef void idring_init(IdRing* r, size_t size, int64_t keep_ms, uint64_t most) noexcept nogil
cdef void idring_free(IdRing* r) noexcept nogil
cdef IdRingItem* idring_add(IdRing* r, uint64_t high, uint64_t low, int64_t at_ms) noexcept nogil     # NULL: no memory
# Before anything is held the first position is the caller's; tells whether the next one is what it says.
cdef bint idring_begins_at(IdRing* r, uint64_t position) noexcept nogil
cdef uint64_t idring_due(const IdRing* r, int64_t now_ms, uint64_t most) noexcept nogil     # first position to keep
cdef int64_t idring_youngest(const IdRing* r, uint64_t until) noexcept nogil    # its time, of those before; else 0
cdef int64_t idring_reach(const IdRing* r, int64_t now_ms) noexcept nogil   # since when all are known, in ms ago
cdef void idring_drop(IdRing* r, uint64_t until) noexcept nogil     # everything before this position
cdef void idring_unlink(IdRing* r, uint64_t position) noexcept nogil
cdef void idring_keep(IdRing* r) noexcept nogil
cdef void idring_undo(IdRing* r) noexcept nogil


cdef inline IdRingItem* idring_at(const IdRing* r, uint64_t position) noexcept nogil:
    """Return the item of a position that is held."""
    return <IdRingItem*>(r.items + (position & (r.room - 1)) * r.size)


cdef inline uint64_t idring_first(const IdRing* r, uint64_t low) noexcept nogil:
    """Return the newest position of a chain, or IDRING_END."""
    return r.table[low & (r.room - 1)] if r.room else <uint64_t>IDRING_END


cdef inline bint idring_is_past(const IdRing* r, uint64_t position, int64_t now_ms) noexcept nogil:
    """Tell whether a position is past the limits."""
    return r.tail - position > r.most or now_ms - idring_at(r, position).at_ms > r.keep_ms
