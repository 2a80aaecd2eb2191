"""The de-duplication window: which ids were stored lately, and with which bytes.

An id is remembered at a position; positions count up.  It is known while its time is at most ``keep_ms`` ago and fewer
than ``max_ids`` have come after it; memory of older ones is given back in bounded steps.  The same id may be there
with several digests, but only the youngest few of them.  Additions since the last ``window_keep`` can be taken back
(``window_undo``).
"""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.hub.entry cimport EntryId


cdef enum WindowConst:
    WINDOW_VARIANTS = 8     # digests that are known of one id at a time, the youngest
    WINDOW_FIRST = 0        # neighbours that are none: the first of a chain,
    WINDOW_NOT_LINKED = -1  # and a place that no chain leads to


cdef enum WindowVerdict:
    WINDOW_NEW = 0          # the id is not known
    WINDOW_KNOWN = 1        # known with these bytes
    WINDOW_OTHER = 2        # known, with other bytes only


ctypedef struct WindowPlace:
    uint64_t high
    uint64_t low
    uint64_t digest
    int64_t at_ms
    uint64_t older          # position of the next one in its chain, 0 at the end
    uint64_t newer          # of the one before; WINDOW_FIRST, or WINDOW_NOT_LINKED


ctypedef struct Window:
    HashKey key
    int64_t keep_ms
    uint64_t max_ids
    # The appending thread's own.
    WindowPlace* places     # by position, modulo room
    uint64_t* table         # newest position of each chain, 0 without one
    uint64_t room           # a power of two, or 0
    uint64_t head           # oldest position that is held; the first ever is 1
    uint64_t tail           # behind the youngest
    uint64_t kept_tail
    int64_t found           # duplicates since window_keep
    int64_t differed        # conflicts since window_keep
    int64_t gone_ms         # no id that is younger than this was forgotten before its time
    # Statistics in messages and ids, relaxed atomics.
    int64_t duplicates
    int64_t conflicts
    int64_t ids
    int64_t expired
    int64_t forgotten       # of them before their time, for want of room


cdef void window_init(Window* w, const HashKey* key, int64_t keep_ms, uint64_t max_ids) noexcept nogil
cdef void window_free(Window* w) noexcept nogil
cdef int window_look(const Window* w, const EntryId* id, int64_t now_ms) noexcept nogil     # WindowVerdict
cdef int window_add(Window* w, uint64_t high, uint64_t low, uint64_t digest, int64_t at_ms) noexcept nogil
cdef uint64_t window_due(const Window* w, int64_t now_ms, uint64_t most) noexcept nogil     # first position to keep
cdef void window_drop(Window* w, uint64_t until, int64_t now_ms) noexcept nogil     # everything before this position
# When the youngest of the ids before a position came, if their time has not come; else 0.
cdef int64_t window_early(const Window* w, uint64_t until, int64_t now_ms) noexcept nogil
cdef int64_t window_reach(const Window* w, int64_t now_ms) noexcept nogil   # since when all ids are known, in ms ago
cdef void window_keep(Window* w) noexcept nogil
cdef void window_undo(Window* w) noexcept nogil


cdef inline WindowPlace* window_at(const Window* w, uint64_t position) noexcept nogil:
    """Return the place of a position that is held.  Locality: appending thread.  Locks: none."""
    return &w.places[position & (w.room - 1)]
