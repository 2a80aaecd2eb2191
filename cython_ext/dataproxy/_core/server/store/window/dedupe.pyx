"""Ids with the digests of their messages, in a ring; entries written again without the messages that are known.

Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.server.entries cimport ID_GIVEN, ID_OF_REST, ID_ROWS, Entry, EntryId
from dataproxy._core.server.store.window.idring cimport (
    IdRing, idring_add, idring_drop, idring_due, idring_first, idring_free, idring_init, idring_is_past, idring_keep,
    idring_reach, idring_undo, idring_unlink,
)
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load
from dataproxy._core.base.buf cimport buf_free, buf_put, buf_reserve
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.server.store.header cimport HEADER_AT_RECORDS, HEADER_AT_SIZE
from dataproxy._core.server.store.window.rowblocks cimport (
    BLOCK_WORDS, rowblocks_drop, rowblocks_free, rowblocks_keep, rowblocks_take, rowblocks_undo,
)
from dataproxy._core.plat.endian cimport load_be16, store_be32


cdef void window_init(Window* w, const HashKey* key, int64_t keep_ms, uint64_t max_ids) noexcept nogil:
    """Make an empty window.  Locality: owner."""
    memset(w, 0, sizeof(Window))
    w.key = key[0]
    idring_init(&w.ring, sizeof(WindowPlace), keep_ms, max_ids)


cdef int window_look(const Window* w, const EntryId* id, int64_t now_ms) noexcept nogil:
    """Tell whether an id is known, and whether with these bytes.  Locality: appending thread."""
    cdef uint64_t position = idring_first(&w.ring, id.low)
    cdef const WindowPlace* place
    cdef int found = WINDOW_NEW
    while position:
        place = window_at(w, position)
        if place.item.high == id.high and place.item.low == id.low and not idring_is_past(&w.ring, position, now_ms):
            if place.digest == id.digest:
                return WINDOW_KNOWN
            found = WINDOW_OTHER
        position = place.item.older
    return found


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


cdef void dedupe_free(Dedupe* d) noexcept nogil:
    """Release window and buffers.  Locality: owner."""
    idring_free(&d.window.ring)
    rowblocks_free(&d.blocks)
    buf_free(&d.dropped)
    buf_free(&d.unpacked)
    buf_free(&d.value)


cdef int dedupe_entry(Dedupe* d, Entry* entry, int64_t now_ms, Rest* rest) noexcept nogil:
    """Find the new messages of an entry and add their ids to the window; ST_OK or ST_NO_MEMORY.

    Messages that are not stored are counted in the entry.  The window counts duplicates, and conflicts stored or not.
    Locality: appending thread.
    """
    cdef const EntryId* ids = <const EntryId*>entry.ids.p
    cdef size_t n = entry.ids.n // sizeof(EntryId)
    cdef bint rest_known = False
    cdef bint rows = False
    cdef bint others = False
    cdef uint32_t lost = 0      # conflicts that are not stored
    cdef size_t i
    cdef int status
    entry.duplicates = 0
    entry.conflicts = 0
    rest.value = entry.value
    rest.records = entry.records
    d.dropped.n = 0
    for i in range(n):
        if ids[i].kind == ID_ROWS:
            rows = True
            status = _judge_rows(d, entry, &ids[i], now_ms)
        else:
            others = True
            status = _judge(d, entry, &ids[i], now_ms, &rest_known, &lost)
        if status != ST_OK:
            return status
    entry.reach_ms = idring_reach(&d.blocks.ring, now_ms) if rows else idring_reach(&d.window.ring, now_ms)
    if rows and others:
        entry.reach_ms = min(entry.reach_ms, idring_reach(&d.window.ring, now_ms))
    d.window.found += entry.duplicates - lost
    if entry.duplicates == 0:
        return ST_OK
    rest.records = entry.items - entry.duplicates
    return _shorten(d, entry, rest_known, lost, rest) if rest.records > 0 else ST_OK


cdef int _judge(
    Dedupe* d, Entry* entry, const EntryId* id, int64_t now_ms, bint* rest_known, uint32_t* lost,
) noexcept nogil:
    """Judge the messages of one id.  Locality: appending thread."""
    cdef int found = window_look(&d.window, id, now_ms)
    if found == WINDOW_OTHER:
        d.window.differed += id.messages
        entry.conflicts += id.messages
        if d.first_wins and id.kind == ID_GIVEN:
            lost[0] += id.messages
            found = WINDOW_KNOWN
    if found != WINDOW_KNOWN:
        return window_add(&d.window, id.high, id.low, id.digest, now_ms)
    entry.duplicates += id.messages
    if id.item != ID_OF_REST:
        return _mark(d, entry, id.item)
    rest_known[0] = True
    return ST_OK


cdef int _judge_rows(Dedupe* d, Entry* entry, const EntryId* id, int64_t now_ms) noexcept nogil:
    """Judge rows of one block.  Locality: appending thread."""
    cdef uint64_t known[BLOCK_WORDS]
    cdef uint32_t row
    cdef uint32_t k
    if rowblocks_take(&d.blocks, id, now_ms, known) != ST_OK:
        return ST_NO_MEMORY
    for k in range(id.messages):
        row = id.row + k
        if known[row >> 6] >> (row & 63) & 1:
            entry.duplicates += 1
            if _mark(d, entry, id.item + k) != ST_OK:
                return ST_NO_MEMORY
    return ST_OK


cdef void dedupe_keep(Dedupe* d) noexcept nogil:
    """Keep the ids added by the entries judged so far.  Locality: appending thread."""
    window_keep(&d.window)
    rowblocks_keep(&d.blocks)


cdef void dedupe_undo(Dedupe* d) noexcept nogil:
    """Remove the ids that were added since ``dedupe_keep``.  Locality: appending thread."""
    window_undo(&d.window)
    rowblocks_undo(&d.blocks)


cdef void dedupe_forget(Dedupe* d, int64_t now_ms, uint64_t most) noexcept nogil:
    """Forget a bounded number of ids and blocks past the limits.  Locality: appending thread."""
    window_drop(&d.window, _due(&d.window.ring, now_ms, most), now_ms)
    rowblocks_drop(&d.blocks, _due(&d.blocks.ring, now_ms, most), now_ms)


cdef uint64_t _due(const IdRing* r, int64_t now_ms, uint64_t most) noexcept nogil:
    """Return the first position to keep.  Locality: appending thread."""
    return idring_due(r, now_ms, r.tail - r.kept_tail + most)


cdef int _mark(Dedupe* d, Entry* entry, uint32_t item) noexcept nogil:
    """Note that a message is known.  Locality: appending thread."""
    if d.dropped.n == 0:
        if buf_reserve(&d.dropped, entry.items) != ST_OK:
            return ST_NO_MEMORY
        memset(d.dropped.p, 0, entry.items)
        d.dropped.n = entry.items
    d.dropped.p[item] = 1
    return ST_OK


cdef int _shorten(Dedupe* d, Entry* entry, bint rest_known, uint32_t lost, Rest* rest) noexcept nogil:
    """Write the entry again with only the new messages; ``lost`` of the others are conflicts.

    Locality: appending thread.
    """
    cdef size_t head = load_be16(entry.value.p + HEADER_AT_SIZE)
    cdef int status
    if d.dropped.n == 0:
        if buf_reserve(&d.dropped, entry.items) != ST_OK:
            return ST_NO_MEMORY
        memset(d.dropped.p, 0, entry.items)
    d.value.n = 0
    if buf_put(&d.value, entry.value.p, head) != ST_OK:
        return ST_NO_MEMORY
    store_be32(d.value.p + HEADER_AT_RECORDS, rest.records)
    status = d.wire.without(entry.value.p + head, entry.value.n - head, d.dropped.p, rest_known, &d.unpacked, &d.value)
    if status == ST_NO_MEMORY:
        return status
    if status == ST_OK:
        rest.value = slice_of(d.value.p, d.value.n)
        return ST_OK
    # The container was readable before, so the only cause is that it became too large: it is stored unchanged.
    d.window.found -= entry.duplicates - lost
    entry.duplicates = 0
    rest.records = entry.records
    return ST_OK


cdef void dedupe_gone(Dedupe* d, int64_t ids_ms, int64_t blocks_ms) noexcept nogil:
    """Set up to which times ids and row blocks are forgotten, as the store has kept it.  Locality: owner."""
    d.window.ring.gone_ms = ids_ms
    d.blocks.ring.gone_ms = blocks_ms


cdef void dedupe_counts(const Dedupe* d, DedupeCounts* out) noexcept nogil:
    """Copy the statistics.  Locality: any thread."""
    out.duplicates = relaxed_load(&d.window.duplicates)
    out.conflicts = relaxed_load(&d.window.conflicts)
    out.ids = relaxed_load(&d.window.ring.held)
    out.expired_ids = relaxed_load(&d.window.ring.expired)
    out.forgotten_ids = relaxed_load(&d.window.ring.forgotten)
    out.row_blocks = relaxed_load(&d.blocks.ring.held)
    out.expired_row_blocks = relaxed_load(&d.blocks.ring.expired)
    out.forgotten_rows = relaxed_load(&d.blocks.ring.forgotten)
