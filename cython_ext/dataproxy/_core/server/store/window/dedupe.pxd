"""Decision which messages of an entry are new, for the durable store and the store in memory.

The de-duplication window has the ids that were stored lately, and digests of their bytes.  Ids are items of a ring
(idring).  The same id may be there with several digests; only the youngest few are kept.

Locality: appending thread.  Locks: none.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.server.entries cimport Entry, EntryId
from dataproxy._core.server.store.window.idring cimport IdRing, IdRingItem, idring_at
from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.store.window.rowblocks cimport RowBlocks
from dataproxy._core.wire.api cimport WireOps


cdef enum WindowConst:
    WINDOW_VARIANTS = 8     # digests that are known of one id at a time, the youngest


cdef enum WindowAnswer:
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
cdef int window_look(const Window* w, const EntryId* id, int64_t now_ms) noexcept nogil     # WindowAnswer
cdef int window_add(Window* w, uint64_t high, uint64_t low, uint64_t digest, int64_t at_ms) noexcept nogil
cdef void window_drop(Window* w, uint64_t until, int64_t now_ms) noexcept nogil     # everything before this position
cdef void window_keep(Window* w) noexcept nogil
cdef void window_undo(Window* w) noexcept nogil


cdef inline WindowPlace* window_at(const Window* w, uint64_t position) noexcept nogil:
    """Return the place of a position that is held."""
    return <WindowPlace*>idring_at(&w.ring, position)


ctypedef struct Dedupe:         # of a store; the appending thread's own
    Window window
    RowBlocks blocks
    bint first_wins             # a known id that an application gave is not stored with other bytes either
    const WireOps* wire
    Buf dropped                 # a byte for each message of the current entry
    Buf unpacked
    Buf value


ctypedef struct DedupeCounts:   # a copy of the statistics of one moment
    int64_t duplicates          # messages known with the same bytes
    int64_t conflicts           # messages known with other bytes
    int64_t ids                 # held
    int64_t expired_ids
    int64_t forgotten_ids
    int64_t row_blocks          # held
    int64_t expired_row_blocks
    int64_t forgotten_rows


ctypedef struct Rest:           # the part of an entry to be stored; valid until the next entry is judged
    Slice value
    uint32_t records            # 0: nothing


cdef void dedupe_free(Dedupe* d) noexcept nogil
# At a time of the store's own clock: ST_OK or ST_NO_MEMORY.
cdef int dedupe_entry(Dedupe* d, Entry* entry, int64_t now_ms, Rest* rest) noexcept nogil
cdef void dedupe_keep(Dedupe* d) noexcept nogil     # the judged entries were stored
cdef void dedupe_undo(Dedupe* d) noexcept nogil     # the judged entries were not stored
# Forget up to `most` ids and blocks, plus as many as were added since the last call of the two functions above.
# Only in memory.
cdef void dedupe_forget(Dedupe* d, int64_t now_ms, uint64_t most) noexcept nogil
cdef void dedupe_gone(Dedupe* d, int64_t ids_ms, int64_t blocks_ms) noexcept nogil
cdef void dedupe_counts(const Dedupe* d, DedupeCounts* out) noexcept nogil


cdef inline const IdRing* dedupe_ids(const Dedupe* d) noexcept nogil:
    """Return the ring of ids."""
    return &d.window.ring


cdef inline const IdRing* dedupe_blocks(const Dedupe* d) noexcept nogil:
    """Return the ring of row blocks."""
    return &d.blocks.ring
