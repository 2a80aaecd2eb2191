"""Ids with the digests of their messages, in a ring.

Locks: none.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.hub.entry cimport EntryId
from dataproxy._core.hub.idring cimport (
    idring_add,
    idring_drop,
    idring_first,
    idring_init,
    idring_is_past,
    idring_keep,
    idring_undo,
    idring_unlink,
)
from dataproxy._core.plat.atomic cimport relaxed_add


cdef void window_init(Window* w, const HashKey* key, int64_t keep_ms, uint64_t max_ids) noexcept nogil:
    """Make an empty window.  Locality: owner."""
    memset(w, 0, sizeof(Window))
    w.key = key[0]
    idring_init(&w.ring, sizeof(WindowPlace), keep_ms, max_ids)


cdef int window_look(const Window* w, const EntryId* id, int64_t now_ms) noexcept nogil:
    """Tell whether an id is known, and whether with these bytes.  Locality: appending thread."""
    cdef uint64_t position = idring_first(&w.ring, id.low)
    cdef const WindowPlace* place
    cdef int verdict = WINDOW_NEW
    while position:
        place = window_at(w, position)
        if place.item.high == id.high and place.item.low == id.low and not idring_is_past(&w.ring, position, now_ms):
            if place.digest == id.digest:
                return WINDOW_KNOWN
            verdict = WINDOW_OTHER
        position = place.item.older
    return verdict


cdef int window_add(Window* w, uint64_t high, uint64_t low, uint64_t digest, int64_t at_ms) noexcept nogil:
    """Remember an id: ST_OK or ST_NO_MEMORY.  Locality: appending thread."""
    cdef WindowPlace* place
    _thin(w, high, low)
    place = <WindowPlace*>idring_add(&w.ring, high, low, at_ms)
    if place == NULL:
        return ST_NO_MEMORY
    place.digest = digest
    return ST_OK


cdef void window_drop(Window* w, uint64_t until, int64_t now_ms) noexcept nogil:
    """Forget every id before a position.  Locality: appending thread."""
    cdef uint64_t position
    for position in range(w.ring.head, until):
        if now_ms - window_at(w, position).item.at_ms <= w.ring.keep_ms:
            relaxed_add(&w.ring.forgotten, 1)
    idring_drop(&w.ring, until)


cdef void window_keep(Window* w) noexcept nogil:
    """Keep the ids and counts added so far.  Locality: appending thread."""
    idring_keep(&w.ring)
    if w.found:
        relaxed_add(&w.duplicates, w.found)
    if w.differed:
        relaxed_add(&w.conflicts, w.differed)
    w.found = 0
    w.differed = 0


cdef void window_undo(Window* w) noexcept nogil:
    """Remove the ids and counts added since ``window_keep``.  Locality: appending thread."""
    idring_undo(&w.ring)
    w.found = 0
    w.differed = 0


cdef void _thin(Window* w, uint64_t high, uint64_t low) noexcept nogil:
    """Make room for one more digest of an id, so that no chain gets long by one id.

    Locality: appending thread.
    """
    cdef uint64_t position = idring_first(&w.ring, low)
    cdef uint64_t oldest = 0
    cdef WindowPlace* place
    cdef int n = 0
    while position:
        place = window_at(w, position)
        if place.item.high == high and place.item.low == low:
            oldest = position
            n += 1
        position = place.item.older
    if n >= WINDOW_VARIANTS:
        idring_unlink(&w.ring, oldest)
