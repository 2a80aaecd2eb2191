"""The de-duplication window: ids that were stored lately, and digests of their bytes.

Ids are items of a ring (hub/idring).  The same id may be there with several digests; only the youngest few are kept.

Locality: appending thread.  Locks: none.
"""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.hub.entry cimport EntryId
from dataproxy._core.hub.idring cimport IdRing, IdRingItem, idring_at


cdef enum WindowConst:
    WINDOW_VARIANTS = 8     # digests that are known of one id at a time, the youngest


cdef enum WindowVerdict:
    WINDOW_NEW = 0          # the id is not known
    WINDOW_KNOWN = 1        # known with these bytes
    WINDOW_OTHER = 2        # known, with other bytes only


ctypedef struct WindowPlace:
    IdRingItem item
    uint64_t digest


ctypedef struct Window:
    IdRing ring
    HashKey key
    # The appending thread's own.
    int64_t found           # duplicates since window_keep
    int64_t differed        # conflicts since window_keep
    # Statistics in messages, relaxed atomics.
    int64_t duplicates
    int64_t conflicts


cdef void window_init(Window* w, const HashKey* key, int64_t keep_ms, uint64_t max_ids) noexcept nogil
cdef int window_look(const Window* w, const EntryId* id, int64_t now_ms) noexcept nogil     # WindowVerdict
cdef int window_add(Window* w, uint64_t high, uint64_t low, uint64_t digest, int64_t at_ms) noexcept nogil
cdef void window_drop(Window* w, uint64_t until, int64_t now_ms) noexcept nogil     # everything before this position
cdef void window_keep(Window* w) noexcept nogil
cdef void window_undo(Window* w) noexcept nogil


cdef inline WindowPlace* window_at(const Window* w, uint64_t position) noexcept nogil:
    """Return the place of a position that is held."""
    return <WindowPlace*>idring_at(&w.ring, position)
