"""A pack of several messages, refused for a fault of one: halves of it are sent until each faulty message is alone.

For all other code it stays one pack: one place in its key queue, one deadline, and one result, which is complete when
the last part has its own.  One part at a time is sent, from left to right, so the messages are stored in their order. n
messages need at most 2n - 1 frames, including the refused one.

- *Names.*  The items are written again with the names that their places gave them (``WireOps.name_items``).  So a
  message has the same id in every frame.  If the wire has no names, nothing is split.
- *Bytes.*  The frame of a part is made in the pack's own buffer.  Its header and trailer overwrite the bytes beside the
  part; these are saved and restored.  Parts are not compressed.  The memory for names is bounded for all packs of an
  executor.  If it is used up, a refused pack waits until another one has its result (one pack can always be split).
- *Numbers.*  Each part has a sequence number of its own, far from the numbers of packs.  So a late answer to the whole
  frame, or to another part, is never matched with this part.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_reserve
from dataproxy._core.base.snappy.compress cimport unpack_block
from dataproxy._core.pack.pack cimport OUT_DELIVERED, OUT_FAILED, Pack, pack_solid, pool_count
from dataproxy._core.pack.parts cimport Half, Part, Parts, parts_enter, parts_idle, parts_room
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_FULL, ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.conn.inflight cimport inflight_get
from dataproxy._core.conn.connection cimport LC_CLOSED, LC_ENCODE, LC_NO_MEMORY
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport relaxed_add
from dataproxy._core.wire.api cimport ITEM_ATTRS, ITEM_LINES, ITEM_OBJECTS, FrameSpec

cdef enum:
    SPLIT_BYTES = 262144            # of names, for all packs of an executor that are being split
    LARGEST = 1 << 30               # bytes of an unpacked body, which this process has compressed itself
    HALF_CIRCLE = 1 << 31           # half of all sequence numbers
    QUARTER = 1 << 30


cdef bint split_can(const ConnectionPool* pool, const Pack* p) noexcept nogil:
    """Tell whether the frame of ``p`` that is on its way can be sent in halves."""
    if pool.rules == NULL or pool.closing or p.items == ITEM_LINES or p.items == ITEM_OBJECTS or p.id_n == 0:
        return False
    return p.count > 1 if p.parts == NULL or not p.parts.ready else p.parts.now.n > 1


cdef void _fill(const ConnectionPool* pool, const Pack* p, FrameSpec* spec) noexcept nogil:
    """Fill ``spec`` with the fields of a part's frame, without its items."""
    memset(spec, 0, sizeof(FrameSpec))
    spec.family = pool.rules.family
    spec.items = ITEM_ATTRS
    spec.seq = p.seq
    spec.count = p.parts.now.n
    spec.data_time_ms = p.data_time_ms
    spec.attrs = p.attrs
    spec.id = slice_of(p.id, <size_t>p.id_n)
    spec.ack = pool.rules.ack
    spec.origin = slice_of(pool.rules.origin, pool.rules.origin_n)
    spec.origin_ms = pool.rules.wall_offset_ms + p.opened_us // 1000


cdef int _name(ConnectionPool* pool, Pack* p, Buf* out) noexcept nogil:
    """Write the items with their names into ``out``, with room for a header before and for a trailer behind them."""
    cdef Buf plain
    cdef FrameSpec spec
    cdef uint8_t* tight
    cdef int status = pack_solid(p, 0)
    cdef const uint8_t* items = p.buf + p.head
    cdef size_t n = p.body_n
    _fill(pool, p, &spec)
    buf_init(&plain)
    if status == ST_OK and p.compressed:
        status = unpack_block(items, n, LARGEST, &plain)
        items = plain.p
        n = plain.n
    if status == ST_OK:
        status = buf_reserve(out, p.head)
    if status == ST_OK:
        out.n = p.head
        status = pool.wire.name_items(items, n, p.items, p.count, slice_of(p.id, <size_t>p.id_n), p.parts.ends, out)
    if status == ST_OK:
        p.parts.extra = <int64_t>(out.n - p.head) - <int64_t>n
        status = buf_reserve(out, pool.wire.tail_room(&spec))
    if status == ST_OK:
        tight = <uint8_t*>realloc(out.p, out.n + pool.wire.tail_room(&spec))    # it grew by doubling: too large
        out.p = tight if tight != NULL else out.p
        out.cap = out.n + pool.wire.tail_room(&spec)
    buf_free(&plain)
    return status


cdef int split_begin(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Make ``p``, whose parts are new and which is in no list, ready to be split.

    ST_OK; ST_FULL (nothing changed: other packs use the memory for names); or another status, a failure.
    """
    cdef Buf out
    cdef FrameSpec spec
    cdef int status
    if pool.split_bytes > SPLIT_BYTES:
        return ST_FULL
    _fill(pool, p, &spec)
    p.parts.ends = <uint32_t*>malloc(2 * <size_t>p.count * sizeof(uint32_t))
    p.parts.saved = <uint8_t*>malloc(p.head + pool.wire.tail_room(&spec))
    buf_init(&out)
    if p.parts.ends == NULL or p.parts.saved == NULL or not parts_room(p.parts):
        status = ST_NO_MEMORY
    else:
        status = _name(pool, p, &out)
    if status != ST_OK:
        buf_free(&out)
        parts_idle(p.parts)
        return status
    free(p.buf)
    p.buf = out.p
    p.cap = out.cap
    p.body_n = out.n - p.head
    if pool.spares != NULL:
        pool_count(pool.spares, p)
    p.items = ITEM_ATTRS
    p.compressed = False
    p.parts.ready = True
    p.parts.number = p.seq
    p.parts.now.first = 0
    p.parts.now.n = p.count
    pool.split_bytes += p.parts.extra
    return ST_OK


cdef uint32_t _number(ConnectionPool* pool, uint32_t near) noexcept nogil:
    """Return a sequence number that no pack in flight has, about 2**31 away from the numbers of the packs."""
    cdef uint32_t ahead = pool.part_number - near
    if ahead < QUARTER or ahead > <uint32_t>HALF_CIRCLE + QUARTER:
        pool.part_number = near + HALF_CIRCLE
    pool.part_number += 1
    while inflight_get(&pool.in_flight, pool.part_number) != NULL:
        pool.part_number += 1
    return pool.part_number


cdef inline size_t _end(const Pack* p, uint32_t messages, int which) noexcept nogil:
    """Return the offset at which the first ``messages`` messages end; ``which``: 0 of sealed items, 1 of named ones."""
    return p.parts.ends[2 * (messages - 1) + which] if messages else 0


cdef int _frame(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Make the frame of the next part; ST_LIMIT if it is too large."""
    cdef FrameSpec spec
    cdef size_t begin = _end(p, p.parts.now.first, 1)
    cdef size_t body_n = _end(p, p.parts.now.first + p.parts.now.n, 1) - begin
    cdef size_t start = 0, size = 0
    cdef uint8_t* base = p.buf + begin              # head room in front of the part
    cdef int status
    p.seq = _number(pool, p.parts.number)
    _fill(pool, p, &spec)
    memcpy(p.parts.saved, base, p.head)
    memcpy(p.parts.saved + p.head, base + p.head + body_n, pool.wire.tail_room(&spec))
    p.parts.framed = True
    status = pool.wire.frame(&spec, base, body_n, &start, &size)
    p.frame = base + start
    p.frame_n = size
    dp_assert(status != ST_OK or (start <= p.head + body_n and p.frame + size <= p.buf + p.cap),
              "the frame of a part is in the buffer: start=%zu, size=%zu, cap=%zu", start, size, p.cap)
    if status == ST_OK and size > pool.rules.max_frame:
        return ST_LIMIT
    return status


cdef void _restore(const ConnectionPool* pool, Pack* p) noexcept nogil:
    """Restore the bytes that the frame of a part has overwritten."""
    cdef FrameSpec spec
    cdef size_t end = _end(p, p.parts.now.first + p.parts.now.n, 1)
    if not p.parts.framed:
        return
    _fill(pool, p, &spec)
    memcpy(p.buf + _end(p, p.parts.now.first, 1), p.parts.saved, p.head)
    memcpy(p.buf + p.head + end, p.parts.saved + p.head, pool.wire.tail_room(&spec))
    p.parts.framed = False
    p.frame = NULL


cdef void _begin_part(Pack* p) noexcept nogil:
    """Forget the attempts of the previous frame, because the next frame is another one."""
    p.parts.before = p.attempts
    p.unknown_n = 0
    p.open_attempts = 0
    p.n_asked = 0
    p.answered = False
    p.conn = -1


cdef bint _pop(Parts* x) noexcept nogil:
    """Make the next waiting half the current part; False if there is none."""
    if x.n_halves == 0:
        return False
    x.n_halves -= 1
    x.now = x.halves[x.n_halves]
    return True


cdef void _divide(Parts* x) noexcept nogil:
    """Make the left half of the current part the current part, and let the right half wait."""
    cdef Half* right = &x.halves[x.n_halves]
    dp_assert(x.n_halves >= 0 and <size_t>x.n_halves < sizeof(x.halves) // sizeof(Half),
              "there is room for a half: n_halves=%d", x.n_halves)
    dp_assert(x.now.n > 1, "a part of one message is not divided: n=%u", x.now.n)
    x.n_halves += 1
    right[0] = x.now
    x.now.n = x.now.n // 2
    right.first += x.now.n
    right.n -= x.now.n


cdef void _enter(Pack* p, int outcome, int code) noexcept nogil:
    """Store the result of the current part."""
    cdef Part one
    cdef uint32_t first = p.parts.now.first, end = first + p.parts.now.n
    dp_assert(end <= p.count, "a part ends in its pack: end=%u, count=%u", end, p.count)
    one.first = first
    one.n = p.parts.now.n
    one.outcome = outcome
    one.code = code
    one.attempts = p.parts.now.attempts + p.attempts - p.parts.before
    one.refused = 0 if outcome == OUT_DELIVERED else p.refused
    one.maybe_delivered = outcome != OUT_DELIVERED and (p.parts.now.maybe or p.open_attempts > 0)
    one.node = 0
    one.text = 0
    one.bytes = <int64_t>(_end(p, end, 0) - _end(p, first, 0))
    parts_enter(p.parts, &one, p.node, NULL if outcome == OUT_DELIVERED else p.error_text)


cdef bint _go_on(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Make a frame of the next part, or of a part of it; False if nothing is left to send."""
    cdef int status
    while True:
        _begin_part(p)
        if not parts_room(p.parts):
            split_rest(pool, p, OUT_FAILED, LC_NO_MEMORY)
            return False
        status = _frame(pool, p)
        if status == ST_OK:
            return True
        _restore(pool, p)
        if status == ST_LIMIT and p.parts.now.n > 1:
            _divide(p.parts)            # with names it may be larger than the pack was
            continue
        _enter(p, OUT_FAILED, LC_ENCODE)
        if not _pop(p.parts):
            return False


cdef bint split_halve(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Prepare the left half of the refused frame for sending; False if nothing can be sent.

    ``p`` is in no list, and its number is not known any more.
    """
    _restore(pool, p)
    if p.open_attempts > 0:             # the proxy of an earlier attempt may still store the refused frame
        p.parts.now.maybe = True
        relaxed_add(&pool.duplicates, p.open_attempts)
        relaxed_add(&pool.copies, p.open_attempts * <int64_t>p.count)
    p.parts.now.attempts += p.attempts - p.parts.before
    p.parts.before = p.attempts
    p.unknown_n = 0
    _divide(p.parts)
    return _go_on(pool, p)


cdef bint split_next(ConnectionPool* pool, Pack* p, int outcome, int code) noexcept nogil:
    """Store the result of the current part; True if a next part is ready to be sent, False if it was the last.

    ``p`` is in no list, and its number is not known any more.
    """
    _restore(pool, p)
    _enter(p, outcome, code)
    if not _pop(p.parts):
        return False
    if pool.closing:
        _begin_part(p)
        split_rest(pool, p, OUT_FAILED, LC_CLOSED)
        return False
    return _go_on(pool, p)


cdef void split_rest(ConnectionPool* pool, Pack* p, int outcome, int code) noexcept nogil:
    """Store one result for all messages that have none.

    The waiting halves may have different fields (attempts, possible copies).  Without memory for one entry each, they
    share the fields of the first half.
    """
    _restore(pool, p)
    while p.parts.n_halves > 0 and parts_room(p.parts):
        _enter(p, outcome, code)
        _pop(p.parts)
        _begin_part(p)
    if p.parts.n_halves > 0:
        p.parts.now.n = p.count - p.parts.now.first
        p.parts.n_halves = 0
    _enter(p, outcome, code)


cdef void split_end(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Restore ``p`` to one whole pack, now that each of its messages has a result."""
    p.seq = p.parts.number
    p.open_attempts = 0
    dp_assert(p.parts.n_halves == 0, "no half is left: n_halves=%d", p.parts.n_halves)
    pool.split_bytes -= p.parts.extra
    parts_idle(p.parts)
