"""Many rows of foreign memory into open packs.

If neighbouring rows belong to different streams, they touch memory that no cache holds: the stream, its open pack, and
the end of the pack's bytes.  Each address is known only when the one before was loaded.  So a window of runs first
prefetches all memory of one kind, before it needs the first of it.

Locality: any thread, without the GIL.  Locks: "lock" is ``Batcher.lock``.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.pack.held cimport held_reserve
from dataproxy._core.pack.pack cimport Pack, PackResult, pack_items
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_CLOSED, ST_FULL, ST_INVALID, ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.accumulate.staging cimport staging_empty
from dataproxy._core.producer.accumulate.state cimport NO_TIME, OF_DROP_NEWEST, OF_DROP_OLDEST
from dataproxy._core.producer.ingest.ids cimport item_text_size
from dataproxy._core.producer.accumulate.item cimport (
    item_accepted, item_begin, item_hold, item_is_held, item_is_line, item_placed, item_size, item_write,
)
from dataproxy._core.producer.accumulate.openpacks cimport (
    openpack_claim, openpack_for, openpack_grow, openpack_least, openpack_seal, openpack_undo, openpacks_unlock,
)
from dataproxy._core.producer.accumulate.overflow cimport has_room, make_room, memory_fits, refuse
from dataproxy._core.producer.accumulate.share cimport unknown_fits, unknown_note
from dataproxy._core.producer.accumulate.unknown cimport unknown_yield
from dataproxy._core.producer.ingest.columnar.rowids cimport row_ids_make, row_ids_put
from dataproxy._core.producer.ingest.rows cimport ROWS_POINTERS, body_limit, row_owner, row_owner_taken, rows_get
from dataproxy._core.producer.results.segments cimport segments_add
from dataproxy._core.net.executor cimport executor_flight_bytes
from dataproxy._core.plat.atomic cimport atomic_load
from dataproxy._core.plat.bits cimport LINE, prefetch, prefetch_write
from dataproxy._core.plat.clock cimport pause_us
from dataproxy._core.plat.thread cimport pthread_mutex_lock

cdef enum:
    ROWS_A_LOCK = 4096      # most rows that are dropped before the lock is released
    ROWS_A_LOOK = 64        # most rows that are dropped before the next search for packs to give up
    WINDOW = 64             # runs whose memory is prefetched, while the lock is held once
    WINDOW_ROWS = 256       # of them in sum
    TAIL_LINES = 3          # cache lines prefetched at the end of a pack's bytes
    AHEAD_BYTES = 4194304   # unwritten bytes from which on a sender of batches pauses (docs/decisions/0010-pauses.md)
    STRIDE_BYTES = 262144   # accepted between two pauses
    PAUSE_US = 20           # the timer's slack makes it about 75
    LONGEST = 32            # of these in one pause
    AHEAD = 3               # bodies prefetched: each is an object at an address of its own
    BODY_LINES = 16         # cache lines prefetched of each; the processor itself prefetches the rest of longer bodies


cdef int _note(Segments* g, Pack* p, uint32_t first, uint32_t count) noexcept nogil:
    """Note that ``count`` messages from ``first`` on are in ``p``.  Locks: lock is held."""
    cdef PackResult* v = NULL
    cdef uint32_t index = 0
    if openpack_claim(p, &v, &index) != ST_OK:
        return ST_NO_MEMORY
    return segments_add(g, v, first, count)


cdef inline void _fetch_body(const Rows* rows, int64_t i) noexcept nogil:
    """Prefetch the first cache lines of one body.  Locality: any thread.  Locks: none."""
    cdef const uint8_t* p = rows.pointers[i]
    cdef const uint8_t* end = p + min(rows.lengths[i], BODY_LINES * LINE)
    while p < end:
        prefetch(p)
        p += LINE


cdef int _hold(
    Batcher* b, Pack* p, const Rows* rows, int64_t i, const uint8_t* body, size_t n, size_t text_n, Slice own_id,
    Slice attrs, RowIds* made, int exempt,
) noexcept nogil:
    """Append row ``i``, whose body stays where it lies; results as of ``_fill``.  Locks: lock is held."""
    cdef size_t need = item_size(b, n, text_n), room = need - n
    cdef void* owner = row_owner(rows, i)
    cdef int status = openpack_grow(b, p, room, exempt)
    if status == ST_OK:
        status = held_reserve(&p.held)
    if status != ST_OK:
        return status
    row_owner_taken(rows, i)
    if made != NULL:
        row_ids_make(made, i)
    item_hold(p, body, n, text_n, own_id, attrs, owner)
    item_placed(p, room)
    item_accepted(b, n, need)
    return ST_OK


cdef int _alone(Batcher* b, Stream* s, size_t n, size_t text_n, size_t need) noexcept nogil:
    """Tell whether a row that is larger than a pack may have one of its own: ST_OK, ST_LIMIT or ST_FULL.

    Locks: lock is held.  ST_LIMIT: frames became smaller since the rows were checked.
    """
    if n > body_limit(s.max_body, text_n):
        return ST_LIMIT
    return ST_OK if unknown_fits(b, s, need) else ST_FULL


cdef int _fill(
    Batcher* b, Pack* p, const Rows* rows, int64_t* at, int64_t end, Slice attrs, RowIds* made, int exempt,
) noexcept nogil:
    """Append rows to one pack until it is full, the limit is reached or the rows end.  Locks: lock is held.

    ST_OK, ST_FULL, ST_NO_MEMORY, or ST_INVALID for a row that has changed since it was checked; ``at`` is exact.
    With ``made`` the ids are written with their rows, directly into the pack if there are no other attributes.
    """
    cdef const uint8_t* body = NULL
    cdef size_t n = 0, need, text_n = attrs.n
    cdef int64_t i = at[0]
    cdef int status = ST_OK
    cdef bint owned = rows.owners != NULL
    cdef Slice own_id = slice_of(NULL, 0)
    while i < end:
        if rows.kind == ROWS_POINTERS and i + AHEAD < end and not owned:
            _fetch_body(rows, i + AHEAD)
        if not rows_get(rows, i, &body, &n) or n == 0:
            i += 1                          # skipped by policy: the rows were checked before
            continue
        if rows.ids != NULL:
            rows_get(rows.ids, i, &own_id.p, &own_id.n)
            text_n = item_text_size(own_id, attrs)
        need = item_size(b, n, text_n)
        if p.count >= b.batch_messages:
            break
        if p.body_n + need > p.most:
            if p.count == 0:
                status = _alone(b, <Stream*>p.stream, n, text_n, need)
            if p.count > 0 or status != ST_OK:
                break
        if not has_room(b, need):
            status = ST_FULL
            break
        if owned and item_is_held(b, n, row_owner(rows, i)):
            status = _hold(b, p, rows, i, body, n, text_n, own_id, attrs, made, exempt)
            if status != ST_OK:
                break
            i += 1
            continue
        if p.head + p.body_n + need > p.cap:
            status = openpack_grow(b, p, need, exempt)
            if status != ST_OK:
                break
        if made == NULL:
            item_write(p, body, n, text_n, own_id, attrs)
            if b.lines and not item_is_line(b.lines, p, n):
                status = ST_INVALID
                break
        elif attrs.n == 0:
            row_ids_put(made, i, item_begin(p, body, n, text_n))
        else:
            row_ids_make(made, i)
            item_write(p, body, n, text_n, own_id, attrs)
        item_placed(p, need)
        item_accepted(b, n, need)
        i += 1
    at[0] = i
    return status


cdef int _overflow(
    Batcher* b, Stream* s, const Rows* rows, int64_t* at, int64_t end, Slice attrs, Segments* segments, RowIds* made,
) noexcept nogil:
    """Make room for the row at ``at``, or drop it and the next rows that do not fit.  Locks: lock is held.

    ST_OK, or ST_NO_MEMORY with ``at`` exact.
    """
    cdef const uint8_t* body = NULL
    cdef size_t n = 0, need, text_n = attrs.n
    cdef int64_t memory, i = at[0], bytes = 0, most = i + (ROWS_A_LOOK if b.on_full == OF_DROP_OLDEST else ROWS_A_LOCK)
    cdef uint32_t count = 0, first = 0
    cdef Slice own_id = slice_of(NULL, 0)
    cdef PackResult* v = NULL
    cdef int status
    while i < end and i < most:
        if rows_get(rows, i, &body, &n) and n:
            if rows.ids != NULL:
                if count > 0 and b.report_all:
                    break                   # each such row is reported with its own id
                if made != NULL:
                    row_ids_make(made, i)
                rows_get(rows.ids, i, &own_id.p, &own_id.n)
                text_n = item_text_size(own_id, attrs)
            need = item_size(b, n, text_n)
            memory = openpack_least(b, s, need)
            if unknown_fits(b, s, need) and (
                    has_room(b, need) and memory_fits(b, memory) or count == 0 and make_room(b, need, memory)):
                break
            bytes += <int64_t>n
            count += 1
        i += 1
    if count > 0:
        status = refuse(b, s, count, bytes, own_id, &v if segments != NULL else NULL, &first)
        if status != ST_OK:
            return status
    at[0] = i
    return segments_add(segments, v, first, count) if v != NULL else ST_OK


cdef int _one_pack(
    Batcher* b, Stream* s, const Rows* rows, int64_t* at, int64_t end, const Extras* extras, Segments* segments,
    RowIds* made,
) noexcept nogil:
    """Accept the rows that one pack has room for.  Locks: lock is held."""
    cdef int status
    cdef uint32_t before
    cdef bint full
    cdef Pack* p = NULL
    if b.closed:
        return ST_CLOSED
    if b.staged.n and staging_empty(b) != ST_OK:
        return ST_NO_MEMORY
    status = openpack_for(b, s, extras, 1, 1, extras.attrs.n != 0 or rows.ids != NULL, &p)
    if p == NULL:
        if status == ST_FULL:
            unknown_yield(b, s)
        if status == ST_FULL and b.on_full >= OF_DROP_NEWEST:
            status = _overflow(b, s, rows, at, end, extras.attrs, segments, made)
        return status
    before = p.count
    if status == ST_OK:
        status = _fill(b, p, rows, at, end, extras.attrs, made, extras.exempt)
        if s.is_unknown:
            unknown_note(b, p, pack_items(p))
    if status == ST_FULL:
        unknown_yield(b, s)
    full = status == ST_FULL and b.on_full >= OF_DROP_NEWEST
    if p.count > before and segments != NULL and _note(segments, p, before, p.count - before) != ST_OK:
        status = ST_NO_MEMORY
    if p.count == 0:
        openpack_undo(b, p)                 # there was no room for a row, or all remaining rows are skipped
    elif at[0] < end and not full or p.body_n >= p.most or p.count >= b.batch_messages:
        openpack_seal(b, p)
    return _overflow(b, s, rows, at, end, extras.attrs, segments, made) if full else status


cdef inline long _due_pause(Batcher* b) noexcept nogil:
    """Return the microseconds of the pause that is due, 0: none.  Locks: the batcher's is held.

    It is longer with each stride that the sender is ahead: executors that encrypt need more time for one than the
    shortest pause gives them.  It stays short if nothing was sent that could be waited for.
    """
    cdef int64_t unwritten, sent = 0
    cdef int i
    if b.charged - b.paused_at < STRIDE_BYTES:
        return 0
    unwritten = b.charged - atomic_load(&b.accounting.released)
    for i in range(b.n_executors):
        sent += executor_flight_bytes(b.executors[i])
    unwritten -= sent
    if unwritten < AHEAD_BYTES:
        return 0
    b.paused_at = b.charged
    return PAUSE_US * (min(1 + (unwritten - AHEAD_BYTES) // STRIDE_BYTES, <int64_t>LONGEST) if sent else 1)


cdef int rowpacks_append(
    Batcher* b, Stream* s, const Rows* rows, int64_t* at, int64_t end, const Extras* extras, Segments* segments,
    bint may_pause,
) noexcept nogil:
    """Accept checked rows of one stream from ``at`` on; ``at`` moves past what was accepted or skipped.

    Locality: any thread.  Locks: takes the batcher's, again for each pack.  ST_OK when all are in, else ST_FULL,
    ST_CLOSED, ST_INVALID, ST_LIMIT (the row at ``at`` is too large now) or ST_NO_MEMORY with ``at`` exact.  Rows that
    are dropped because there is no room count as accepted.
    With ``may_pause`` a sender that is far ahead of the connections pauses, so that the executors write packs while
    the cache still holds them.
    """
    cdef int status = ST_OK
    cdef long pause
    while at[0] < end and status == ST_OK:
        pthread_mutex_lock(&b.lock)
        status = _one_pack(b, s, rows, at, end, extras, segments, NULL)
        pause = _due_pause(b) if may_pause and rows.owners == NULL else 0
        openpacks_unlock(b)
        if pause:
            pause_us(pause)
    return status


cdef int64_t _window(const Run* runs, int64_t n) noexcept nogil:
    """Return how many of the first runs are appended while the lock is held once, at least one."""
    cdef int64_t i = 0, rows = 0
    while i < n and i < WINDOW and rows < WINDOW_ROWS:
        rows += runs[i].end - runs[i].start
        i += 1
    return i


cdef inline Pack* _likely(const Run* r, bint with_ids) noexcept nogil:
    """Return the open pack that a run's rows will probably join, or NULL.  Locks: lock is held."""
    return r.stream.newest if with_ids or r.text_n or r.when != NO_TIME else r.stream.plain


cdef void _fetch(const Run* runs, int64_t n, bint with_ids) noexcept nogil:
    """Prefetch the memory that appending these runs touches, one kind after the other.  Locks: lock is held."""
    cdef int64_t i
    cdef size_t k
    cdef Pack* p
    for i in range(n):
        prefetch(runs[i].stream)
        prefetch(<const uint8_t*>runs[i].stream + LINE)
    for i in range(n):
        p = _likely(&runs[i], with_ids)
        if p != NULL:
            prefetch_write(p)
            prefetch(<const uint8_t*>p + LINE)
    for i in range(n):
        p = _likely(&runs[i], with_ids)
        if p != NULL:
            for k in range(TAIL_LINES):
                prefetch_write(p.buf + p.head + p.body_n + k * LINE)


cdef int rowpacks_append_runs(
    Batcher* b, const Rows* rows, const Run* runs, int64_t n, const uint8_t* text, int64_t* run, int64_t* at,
    RowIds* made, int exempt, Segments* segments,
) noexcept nogil:
    """Accept checked rows from ``at`` of run number ``run`` on; both move past what was accepted or skipped.

    ``made`` writes the ids of ``rows``; NULL: they have none, or the caller's own.  ``segments`` notes the packs of the
    rows; NULL: not wanted.

    Locality: any thread.  Locks: takes the batcher's, again for each window.  Results as of ``rowpacks_append``.
    """
    cdef const Run* r
    cdef Extras x
    cdef int status = ST_OK
    cdef int64_t last
    x.own_id = slice_of(NULL, 0)
    x.exempt = exempt
    x.owner = NULL
    while run[0] < n and status == ST_OK:
        last = run[0] + _window(&runs[run[0]], n - run[0])
        pthread_mutex_lock(&b.lock)
        if last - run[0] > 1:
            _fetch(&runs[run[0]], last - run[0], rows.ids != NULL)
        while run[0] < last and status == ST_OK:
            r = &runs[run[0]]
            if at[0] < r.start:
                at[0] = r.start
            x.when_ms = r.when
            x.key_bucket = r.key_bucket
            x.attrs = slice_of(text + r.text_at, r.text_n)
            while at[0] < r.end and status == ST_OK:
                status = _one_pack(b, r.stream, rows, at, r.end, &x, segments, made)
            if status == ST_OK:
                run[0] += 1
        openpacks_unlock(b)
    return status
