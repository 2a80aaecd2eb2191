"""A ring of ids in the order of their coming, with a hash table of chains over it."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.hub.entry cimport EntryId
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_store

cdef enum:
    FIRST_ROOM = 256


cdef void window_init(Window* w, const HashKey* key, int64_t keep_ms, uint64_t max_ids) noexcept nogil:
    """Make an empty window.  Locality: owner.  Locks: none."""
    memset(w, 0, sizeof(Window))
    w.key = key[0]
    w.keep_ms = keep_ms
    w.max_ids = max_ids
    w.head = w.tail = w.kept_tail = 1


cdef void window_free(Window* w) noexcept nogil:
    """Release the memory.  Locality: owner.  Locks: none."""
    free(w.places)
    free(w.table)
    memset(w, 0, sizeof(Window))


cdef int window_look(const Window* w, const EntryId* id, int64_t now_ms) noexcept nogil:
    """Tell whether an id is known, and whether with these bytes.  Locality: appending thread.  Locks: none."""
    cdef uint64_t position
    cdef const WindowPlace* place
    cdef int verdict = WINDOW_NEW
    if w.room == 0:
        return verdict
    position = w.table[id.low & (w.room - 1)]
    while position:
        place = window_at(w, position)
        if place.high == id.high and place.low == id.low and not _is_past(w, position, now_ms):
            if place.digest == id.digest:
                return WINDOW_KNOWN
            verdict = WINDOW_OTHER
        position = place.older
    return verdict


cdef int window_add(Window* w, uint64_t high, uint64_t low, uint64_t digest, int64_t at_ms) noexcept nogil:
    """Remember an id: ST_OK or ST_NO_MEMORY.  Locality: appending thread.  Locks: none."""
    cdef WindowPlace* place
    if w.tail - w.head == w.room and _grow(w) != ST_OK:
        return ST_NO_MEMORY
    _thin(w, high, low)
    place = window_at(w, w.tail)
    place.high = high
    place.low = low
    place.digest = digest
    place.at_ms = at_ms
    _link(w, w.tail)
    w.tail += 1
    return ST_OK


cdef uint64_t window_due(const Window* w, int64_t now_ms, uint64_t most) noexcept nogil:
    """Return the first position to keep when up to ``most`` ids are dropped that are past the limits.

    Locality: appending thread.
    Locks: none.
    """
    cdef uint64_t position = w.head
    while position < w.kept_tail and position - w.head < most and _is_past(w, position, now_ms):
        position += 1
    return position


cdef int64_t window_early(const Window* w, uint64_t until, int64_t now_ms) noexcept nogil:
    """Return the time of the youngest id before a position if it is kept for longer than that, else 0.

    Locality: appending thread.
    Locks: none.
    """
    cdef int64_t at_ms
    if until == w.head:
        return 0
    at_ms = window_at(w, until - 1).at_ms       # they came in order
    return at_ms if now_ms - at_ms <= w.keep_ms else 0


cdef int64_t window_reach(const Window* w, int64_t now_ms) noexcept nogil:
    """Return how long ago an id may have come to be known for certain.  Locality: appending thread.  Locks: none."""
    cdef uint64_t known = w.tail - w.max_ids if w.tail - w.head > w.max_ids else w.head     # those before it are not
    cdef int64_t gone_ms = max(w.gone_ms, window_early(w, known, now_ms))
    return min(w.keep_ms, max(now_ms - gone_ms - 1, 0)) if gone_ms else w.keep_ms


cdef void window_drop(Window* w, uint64_t until, int64_t now_ms) noexcept nogil:
    """Forget every id before a position.  Locality: appending thread.  Locks: none."""
    relaxed_add(&w.expired, <int64_t>(until - w.head))
    w.gone_ms = max(w.gone_ms, window_early(w, until, now_ms))
    while w.head < until:
        if now_ms - window_at(w, w.head).at_ms <= w.keep_ms:
            relaxed_add(&w.forgotten, 1)
        _unlink(w, w.head)
        w.head += 1
    relaxed_store(&w.ids, <int64_t>(w.tail - w.head))


cdef void window_keep(Window* w) noexcept nogil:
    """Make what was added and counted stay.  Locality: appending thread.  Locks: none."""
    w.kept_tail = w.tail
    relaxed_store(&w.ids, <int64_t>(w.tail - w.head))
    if w.found:
        relaxed_add(&w.duplicates, w.found)
    if w.differed:
        relaxed_add(&w.conflicts, w.differed)
    w.found = 0
    w.differed = 0


cdef void window_undo(Window* w) noexcept nogil:
    """Take back what was added and counted since ``window_keep``.  Locality: appending thread.  Locks: none."""
    while w.tail > w.kept_tail:
        w.tail -= 1
        _unlink(w, w.tail)
    w.found = 0
    w.differed = 0


cdef bint _is_past(const Window* w, uint64_t position, int64_t now_ms) noexcept nogil:
    """Tell whether a position is past the limits.  Locality: appending thread.  Locks: none."""
    return w.tail - position > w.max_ids or now_ms - window_at(w, position).at_ms > w.keep_ms


cdef void _link(Window* w, uint64_t position) noexcept nogil:
    """Put a position in front of its chain.  Locality: appending thread.  Locks: none."""
    cdef WindowPlace* place = window_at(w, position)
    cdef uint64_t* slot = &w.table[place.low & (w.room - 1)]
    place.older = slot[0]
    place.newer = WINDOW_FIRST
    if place.older:
        window_at(w, place.older).newer = position
    slot[0] = position


cdef void _unlink(Window* w, uint64_t position) noexcept nogil:
    """Take a position out of its chain, if it is in one.  Locality: appending thread.  Locks: none."""
    cdef WindowPlace* place = window_at(w, position)
    if place.newer == <uint64_t>WINDOW_NOT_LINKED:
        return
    if place.older:
        window_at(w, place.older).newer = place.newer
    if place.newer == WINDOW_FIRST:
        w.table[place.low & (w.room - 1)] = place.older
    else:
        window_at(w, place.newer).older = place.older
    place.newer = <uint64_t>WINDOW_NOT_LINKED


cdef void _thin(Window* w, uint64_t high, uint64_t low) noexcept nogil:
    """Make room for one more digest of an id, so that no chain gets long by one id.

    Locality: appending thread.
    Locks: none.
    """
    cdef uint64_t position = w.table[low & (w.room - 1)]
    cdef uint64_t oldest = 0
    cdef WindowPlace* place
    cdef int n = 0
    while position:
        place = window_at(w, position)
        if place.high == high and place.low == low:
            oldest = position
            n += 1
        position = place.older
    if n >= WINDOW_VARIANTS:
        _unlink(w, oldest)


cdef int _grow(Window* w) noexcept nogil:
    """Double the ring and make the table anew.  Locality: appending thread.  Locks: none."""
    cdef Window wider = w[0]
    cdef WindowPlace* place
    cdef uint64_t position
    wider.room = w.room * 2 if w.room else FIRST_ROOM
    wider.places = <WindowPlace*>malloc(wider.room * sizeof(WindowPlace))
    wider.table = <uint64_t*>calloc(wider.room, sizeof(uint64_t))
    if wider.places == NULL or wider.table == NULL:
        free(wider.places)
        free(wider.table)
        return ST_NO_MEMORY
    for position in range(w.head, w.tail):
        place = window_at(&wider, position)
        place[0] = window_at(w, position)[0]
        if place.newer != <uint64_t>WINDOW_NOT_LINKED:
            _link(&wider, position)
    free(w.places)
    free(w.table)
    w.places = wider.places
    w.table = wider.table
    w.room = wider.room
    return ST_OK
