"""A pack of several messages, refused for the fault of one: halves of it are sent until the guilty are alone.

It stays one pack for everybody else: one place in its lane, one deadline, one result that is told when the last part
has its own.  One part is on its way at a time, from left to right, so the messages are stored in their order; n
messages take 2n - 1 frames at most, the refused one among them.

- *Names.*  The items are written again with the names that they had by their places (``WireOps.name_items``), so a
  copy of a message is known by its id whatever frame it came in.  Where the wire has no names nothing is split.
- *Bytes.*  A part's frame stands in the pack's own buffer: header and trailer lie on what is beside the part, which
  is kept aside and put back.  Parts are not compressed.  What the names take is bounded for all packs of an executor;
  when that is used up a refused pack waits whole until another one is through (the first one always goes).
- *Numbers.*  Each part has a number of its own, far from those that packs get: an answer to the whole frame, or to
  another part of it, that comes late can be taken for no other.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_reserve
from dataproxy._core.base.compress cimport unpack_block
from dataproxy._core.base.pack cimport OUT_DELIVERED, OUT_FAILED, Pack, pool_count
from dataproxy._core.base.parts cimport Half, Part, Parts, parts_enter, parts_idle, parts_room
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_FULL, ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.io.inflight cimport inflight_get
from dataproxy._core.io.link cimport LC_CLOSED, LC_ENCODE, LC_NO_MEMORY
from dataproxy._core.plat.atomic cimport relaxed_add
from dataproxy._core.wire.api cimport ITEM_ATTRS, ITEM_LINES, FrameSpec

cdef enum:
    SPLIT_BYTES = 262144            # of names, for all packs of an executor that are being split
    LARGEST = 1 << 30               # of an unpacked body; it was ours before it was compressed
    HALF_CIRCLE = 1 << 31           # of the numbers
    QUARTER = 1 << 30


cdef bint split_can(const LinkPool* pool, const Pack* p) noexcept nogil:
    """Tell whether what is on its way of ``p`` can be sent in halves.  Locality: executor.  Locks: none."""
    if pool.rules == NULL or pool.closing or p.items == ITEM_LINES or p.id_n == 0:
        return False
    return p.count > 1 if p.parts == NULL or not p.parts.ready else p.parts.now.n > 1


cdef void _fill(const LinkPool* pool, const Pack* p, FrameSpec* spec) noexcept nogil:
    """Say what the frame of a part has besides its items."""
    memset(spec, 0, sizeof(FrameSpec))
    spec.family = pool.rules.family
    spec.items = ITEM_ATTRS
    spec.seq = p.seq
    spec.count = p.parts.now.n
    spec.data_time_ms = p.data_time_ms
    spec.attrs = p.attrs
    spec.id = slice_of(p.id, <size_t>p.id_n)


cdef int _name(LinkPool* pool, Pack* p, Buf* out) noexcept nogil:
    """Write the items again with their names into ``out``, behind head room; room for a trailer follows."""
    cdef Buf plain
    cdef FrameSpec spec
    cdef uint8_t* tight
    cdef int status = ST_OK
    cdef const uint8_t* items = p.buf + p.head
    cdef size_t n = p.body_n
    _fill(pool, p, &spec)
    buf_init(&plain)
    if p.compressed:
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
        tight = <uint8_t*>realloc(out.p, out.n + pool.wire.tail_room(&spec))    # it has grown by doubling
        out.p = tight if tight != NULL else out.p
        out.cap = out.n + pool.wire.tail_room(&spec)
    buf_free(&plain)
    return status


cdef int split_begin(LinkPool* pool, Pack* p) noexcept nogil:
    """Make ``p``, whose parts are new and which is in no list, ready to be split.

    Locality: executor.  Locks: none.  ST_OK, ST_FULL (nothing changed: others are being split), or a failure.
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


cdef uint32_t _number(LinkPool* pool, uint32_t near) noexcept nogil:
    """Return a number that nothing here has, half of the circle away from those of the packs."""
    cdef uint32_t ahead = pool.part_number - near
    if ahead < QUARTER or ahead > <uint32_t>HALF_CIRCLE + QUARTER:
        pool.part_number = near + HALF_CIRCLE
    pool.part_number += 1
    while inflight_get(&pool.in_flight, pool.part_number) != NULL:
        pool.part_number += 1
    return pool.part_number


cdef inline size_t _end(const Pack* p, uint32_t messages, int which) noexcept nogil:
    """Return where the first so many messages end: 0 among the sealed items, 1 among the named ones."""
    return p.parts.ends[2 * (messages - 1) + which] if messages else 0


cdef int _frame(LinkPool* pool, Pack* p) noexcept nogil:
    """Make the frame of the part that is next; ST_LIMIT when it is too large."""
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
    if status == ST_OK and size > pool.rules.max_frame:
        return ST_LIMIT
    return status


cdef void _restore(const LinkPool* pool, Pack* p) noexcept nogil:
    """Put the bytes back that the frame of a part stands on."""
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
    """Forget the attempts of what was on its way: the next frame is another one."""
    p.parts.before = p.attempts
    p.open_attempts = 0
    p.n_asked = 0
    p.answered = False
    p.link = -1


cdef bint _pop(Parts* x) noexcept nogil:
    """Have the next half be the one on its way; False when there is none."""
    if x.n_halves == 0:
        return False
    x.n_halves -= 1
    x.now = x.halves[x.n_halves]
    return True


cdef void _divide(Parts* x) noexcept nogil:
    """Have the left half of the part be the one on its way, and the right one wait."""
    cdef Half* right = &x.halves[x.n_halves]
    x.n_halves += 1
    right[0] = x.now
    x.now.n = x.now.n // 2
    right.first += x.now.n
    right.n -= x.now.n


cdef void _enter(Pack* p, int outcome, int code) noexcept nogil:
    """Enter the result of the part that is or was on its way."""
    cdef Part one
    cdef uint32_t first = p.parts.now.first, end = first + p.parts.now.n
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


cdef bint _go_on(LinkPool* pool, Pack* p) noexcept nogil:
    """Make a frame of the part that is next, or of a part of it; False when nothing is left to send."""
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
            _divide(p.parts)            # with its names it is larger than the pack was
            continue
        _enter(p, OUT_FAILED, LC_ENCODE)
        if not _pop(p.parts):
            return False


cdef bint split_halve(LinkPool* pool, Pack* p) noexcept nogil:
    """Have the left half of what was refused be sent next; False when nothing can be sent.

    Locality: executor.  Locks: none.  ``p`` is in no list, and its number is not known any more.
    """
    _restore(pool, p)
    if p.open_attempts > 0:             # earlier attempts of the refused frame may be stored
        p.parts.now.maybe = True
        relaxed_add(&pool.duplicates, p.open_attempts)
        relaxed_add(&pool.copies, p.open_attempts * <int64_t>p.count)
    p.parts.now.attempts += p.attempts - p.parts.before
    p.parts.before = p.attempts
    _divide(p.parts)
    return _go_on(pool, p)


cdef bint split_next(LinkPool* pool, Pack* p, int outcome, int code) noexcept nogil:
    """Enter the result of the part that was on its way; False when it was the last one, else the next is ready.

    Locality: executor.  Locks: none.  ``p`` is in no list, and its number is not known any more.
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


cdef void split_rest(LinkPool* pool, Pack* p, int outcome, int code) noexcept nogil:
    """Enter one result for all messages that have none.  Locality: executor.  Locks: none.

    Halves differ in what is known of them; where there is no memory for that they share what is known of the first.
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


cdef void split_end(LinkPool* pool, Pack* p) noexcept nogil:
    """Make ``p`` whole again, now that each of its messages has a result.  Locality: executor.  Locks: none."""
    p.seq = p.parts.number
    p.open_attempts = 0
    pool.split_bytes -= p.parts.extra
    parts_idle(p.parts)
