"""A ring of items in the order in which they were added, with a hash table of chains over it.

Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_store

cdef enum:
    FIRST_ROOM = 256


cdef void idring_init(IdRing* r, size_t size, int64_t keep_ms, uint64_t most) noexcept nogil:
    """Make an empty ring.  Locality: owner."""
    memset(r, 0, sizeof(IdRing))
    r.size = size
    r.keep_ms = keep_ms
    r.most = most
    r.head = r.tail = r.kept_tail = 1


cdef void idring_free(IdRing* r) noexcept nogil:
    """Release the memory.  Locality: owner."""
    free(r.items)
    free(r.table)
    memset(r, 0, sizeof(IdRing))


cdef IdRingItem* idring_add(IdRing* r, uint64_t high, uint64_t low, int64_t at_ms) noexcept nogil:
    """Add an item at the next position; NULL without memory.  Locality: appending thread."""
    cdef IdRingItem* item
    if r.tail - r.head == r.room and _grow(r) != ST_OK:
        return NULL
    item = idring_at(r, r.tail)
    memset(item, 0, r.size)
    item.high = high
    item.low = low
    item.at_ms = at_ms
    _chain(r, r.tail)
    r.tail += 1
    dp_assert(r.tail - r.head <= r.room, "the items are in the ring: head=%lu, tail=%lu, room=%lu",
              r.head, r.tail, r.room)
    return item


cdef bint idring_begins_at(IdRing* r, uint64_t position) noexcept nogil:
    """Begin an empty ring at a position; tell whether the next item is to have it.  Locality: owner."""
    if r.tail == r.head:
        r.head = r.tail = r.kept_tail = position
    return position == r.tail and position != 0


cdef uint64_t idring_due(const IdRing* r, int64_t now_ms, uint64_t most) noexcept nogil:
    """Return the first position to keep when up to ``most`` items are dropped that are past the limits.

    Locality: appending thread.
    """
    cdef uint64_t position = r.head
    while position < r.kept_tail and position - r.head < most and idring_is_past(r, position, now_ms):
        position += 1
    return position


cdef int64_t idring_youngest(const IdRing* r, uint64_t until) noexcept nogil:
    """Return the time of the youngest item before a position, 0 without one.  Locality: appending thread."""
    cdef int64_t youngest = 0
    cdef uint64_t position
    for position in range(r.head, until):
        youngest = max(youngest, idring_at(r, position).at_ms)
    return youngest


cdef int64_t idring_reach(const IdRing* r, int64_t now_ms) noexcept nogil:
    """Return the age in milliseconds up to which every item is surely known.  Locality: appending thread."""
    cdef uint64_t known = r.tail - r.most if r.tail - r.head > r.most else r.head       # those before it are not
    cdef int64_t gone_ms = max(r.gone_ms, idring_youngest(r, known))
    return min(r.keep_ms, max(now_ms - gone_ms - 1, 0)) if gone_ms else r.keep_ms


cdef void idring_drop(IdRing* r, uint64_t until) noexcept nogil:
    """Forget every item before a position.  Locality: appending thread."""
    dp_assert(r.head <= until <= r.kept_tail, "only kept items are dropped: head=%lu, until=%lu, kept_tail=%lu",
              r.head, until, r.kept_tail)
    relaxed_add(&r.expired, <int64_t>(until - r.head))
    r.gone_ms = max(r.gone_ms, idring_youngest(r, until))
    while r.head < until:
        idring_unlink(r, r.head)
        r.head += 1
    relaxed_store(&r.held, <int64_t>(r.tail - r.head))


cdef void idring_unlink(IdRing* r, uint64_t position) noexcept nogil:
    """Take a position out of its chain, if it is in one.  Locality: appending thread."""
    cdef IdRingItem* item = idring_at(r, position)
    cdef uint64_t* at = &r.table[item.low & (r.room - 1)]
    if item.older == <uint64_t>IDRING_UNLINKED:
        return
    while at[0] != position:
        at = &idring_at(r, at[0]).older
    at[0] = item.older
    item.older = <uint64_t>IDRING_UNLINKED


cdef void idring_keep(IdRing* r) noexcept nogil:
    """Keep the items added so far.  Locality: appending thread."""
    r.kept_tail = r.tail
    relaxed_store(&r.held, <int64_t>(r.tail - r.head))


cdef void idring_undo(IdRing* r) noexcept nogil:
    """Remove the items added since ``idring_keep``.  Locality: appending thread."""
    while r.tail > r.kept_tail:
        r.tail -= 1
        idring_unlink(r, r.tail)


cdef void _chain(IdRing* r, uint64_t position) noexcept nogil:
    """Put a position in front of its chain.  Locality: appending thread."""
    cdef IdRingItem* item = idring_at(r, position)
    cdef uint64_t* slot = &r.table[item.low & (r.room - 1)]
    item.older = slot[0]
    slot[0] = position


cdef int _grow(IdRing* r) noexcept nogil:
    """Double the ring and make the table anew.  Locality: appending thread."""
    cdef IdRing wider = r[0]
    cdef uint64_t position
    wider.room = r.room * 2 if r.room else FIRST_ROOM
    wider.items = <char*>malloc(wider.room * r.size)
    wider.table = <uint64_t*>calloc(wider.room, sizeof(uint64_t))
    if wider.items == NULL or wider.table == NULL:
        free(wider.items)
        free(wider.table)
        return ST_NO_MEMORY
    for position in range(r.head, r.tail):
        memcpy(idring_at(&wider, position), idring_at(r, position), r.size)
        if idring_at(r, position).older != <uint64_t>IDRING_UNLINKED:
            _chain(&wider, position)
    free(r.items)
    free(r.table)
    r.items = wider.items
    r.table = wider.table
    r.room = wider.room
    return ST_OK
