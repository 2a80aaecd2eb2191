"""Open packs: found or opened for a message, grown, and sealed when they are full or need not wait.

Each function is called while the lock of its batcher is held ("lock" below).  When a caller releases that lock, no
open pack may be empty: if a pack was opened for a message and the message was not accepted, ``openpack_undo`` gives
the pack back.  A caller that may have opened or sealed packs releases the lock by ``openpacks_unlock``.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.pack.keyqueue cimport KeyQueue
from dataproxy._core.pack.pack cimport (
    Pack, PackResult, list_push, list_remove, pack_apart, pack_fit, pack_grow, pack_items, pack_loose, pack_memory,
    pack_result_new, pool_count, pool_give, pool_take, room_for,
)
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_FULL, ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.accumulate.state cimport EX_ALL, EX_RESULTS, NO_KEY, NO_TIME, OF_BLOCK, Batcher, Extras
from dataproxy._core.producer.results.accounting cimport accounting_sealed
from dataproxy._core.producer.ingest.ids cimport ids_next
from dataproxy._core.producer.accumulate.overflow cimport memory_fits, results_fit
from dataproxy._core.producer.accumulate.groups cimport groups_find
from dataproxy._core.producer.accumulate.streams cimport (
    Stream, stream_hold, stream_release, streams_add, streams_find, streams_forget, streams_keep, streams_key_queue,
)
from dataproxy._core.producer.accumulate.share cimport (
    unknown_fits, unknown_gate, unknown_left, unknown_note, unknown_sealed,
)
from dataproxy._core.net.executor cimport executor_ask_tick, executor_post, executor_wake
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, relaxed_store
from dataproxy._core.plat.thread cimport pthread_mutex_unlock
from dataproxy._core.wire.api cimport ITEM_ATTRS, ITEM_LENGTH, ITEM_LINES

cdef enum:
    FIRST_CAP = 512         # of a stream's first pack; later ones start at the size of the last
    SMALL = 16384           # bytes of a pack that grows in large steps
    ATTRS_SPARE = 136       # sid, dt, mid, cnt, cp and the trailer, at most
    ITEM_LENGTH_SIZE = 4
    STEP = 1024             # bytes that a pack gets beyond its need when it grows and memory is scarce


cdef void openpacks_wake(Batcher* b) noexcept nogil:
    """Release the lock, then wake the executors that got something while it was held: they find it free.

    Locality: any thread.  Locks: releases lock.  No wake-up is lost: whoever notes an executor in ``wakes`` holds the
    lock, and comes here or to ``openpacks_unlock`` before another thread can take it.
    """
    cdef uint64_t due = b.wakes
    cdef int i = 0
    b.wakes = 0
    pthread_mutex_unlock(&b.lock)
    while due:
        if due & 1:
            executor_wake(b.executors[i])
        due >>= 1
        i += 1


cdef Stream* openpack_stream(Batcher* b, Slice group, Slice stream, Slice attrs) noexcept nogil:
    """Find or add a stream; NULL without memory, or if its group has no number yet and needs one.

    Locality: any thread.  Locks: lock is held.
    """
    cdef Stream* s = streams_find(&b.streams, group, stream, attrs)
    cdef int number = 0
    if s == NULL:
        if b.by_group:
            number = groups_find(&b.groups, stream if b.by_stream else group)
        if number < 0:
            return NULL
        s = streams_add(&b.streams, group, stream, attrs, b.max_others)
        if s != NULL:
            s.group_number = number
            openpack_limit_stream(b, s)
    return s


cdef inline size_t _tail(const Batcher* b, size_t text_n, size_t pairs) noexcept nogil:
    """Return the most bytes that a frame adds behind its items."""
    return text_n * b.wire.spread + b.pair_cost * pairs + ATTRS_SPARE + b.frame_spare


cdef size_t openpack_room(const Batcher* b, size_t text_n, size_t pairs) noexcept nogil:
    """Return the most bytes of a body in a frame with ``text_n`` bytes of text in ``pairs``, 0 if no body fits.

    Locality: any thread.  Locks: lock is held.
    """
    cdef size_t overhead = b.wire.head_room + _tail(b, text_n, pairs) + ITEM_LENGTH_SIZE
    cdef size_t room = (b.max_frame - overhead) // b.wire.spread if b.max_frame > overhead else 0
    if room + ITEM_LENGTH_SIZE > <size_t>b.limit_bytes:
        room = <size_t>b.limit_bytes - ITEM_LENGTH_SIZE
    return room


cdef void openpack_limit_stream(Batcher* b, Stream* s) noexcept nogil:
    """Set ``s.max_body``, the most bytes of a body in a frame of ``s``, and ``s.tail``.

    Locality: any thread.  Locks: lock is held.
    """
    cdef size_t i, pairs = 0, room
    if b.pair_cost:
        for i in range(s.text_n):
            pairs += s.text[i] == 61        # '='
    room = openpack_room(b, s.text_n, pairs)
    s.tail = _tail(b, s.text_n, pairs)
    relaxed_store(<int64_t*>&s.max_body, <int64_t>room)         # senders read it without the lock
    b.least_room = min(b.least_room, room)
    b.least_body = min(b.least_body, room)


cdef void openpack_limit(const Batcher* b, Pack* p) noexcept nogil:
    """Let an open pack take no more than a frame of its stream has room for.  Locality: any.  Locks: lock is held."""
    p.most = min(b.batch_bytes, (<Stream*>p.stream).max_body + ITEM_LENGTH_SIZE)
    p.most -= min(p.most, pack_apart(p))


cdef void openpack_limit_all(Batcher* b) noexcept nogil:
    """Set the limits of all streams, and the largest body that fits all.

    Locality: any thread.  Locks: lock is held.
    """
    cdef size_t i
    cdef Stream* s
    b.least_room = b.max_frame
    for i in range(b.streams.mask + 1):
        s = b.streams.slots[i]
        while s != NULL:
            openpack_limit_stream(b, s)
            s = s.next
    unknown_gate(b)


cdef KeyQueue* _key_queue(Batcher* b, Stream* s, int bucket) noexcept nogil:
    """Return the key queue of a key bucket, which all streams of the same names share; NULL without memory."""
    if s.bare == NULL:
        s.bare = openpack_stream(b, s.group, s.stream, slice_of(NULL, 0)) if s.attrs.n else s
        if s.bare == NULL:
            return NULL
        if s.bare != s:
            stream_hold(s.bare)
    return streams_key_queue(s.bare, bucket, b.key_buckets, b.n_executors)


cdef void openpack_seal(Batcher* b, Pack* p) noexcept nogil:
    """Give an open pack, which holds a message, to its executor.

    Locality: any thread.  Locks: lock is held; takes accounting.lock, then an inbox's.
    """
    cdef Stream* s = <Stream*>p.stream
    cdef KeyQueue* key_queue = <KeyQueue*>p.key_queue
    dp_assert(p.count > 0, "a pack that is sealed holds a message: seq=%u, body_n=%zu", p.seq, p.body_n)
    dp_assert(p.count <= b.open_messages, "count <= open_messages: count=%u, open_messages=%ld",
              p.count, b.open_messages)
    streams_forget(s, p)
    list_remove(&b.open, p)
    if key_queue == NULL:
        s.size_hint = p.body_n
    else:
        key_queue.size_hint = p.body_n
    p.charge = pack_items(p)
    if s.is_unknown or p.noted:
        unknown_sealed(b, p)
    if p.items == ITEM_LINES:
        p.body_n -= 1                       # no LF after the last line
    p.attrs = slice_of(s.text, s.text_n)
    p.group = s.group_number
    p.deadline_us = p.opened_us + b.delivery_us
    b.open_messages -= p.count
    pack_fit(b.spares, p, s.tail)
    if key_queue == NULL:
        b.next_executor = (b.next_executor + 1) % b.n_executors
        p.executor = b.next_executor
    else:
        p.executor = key_queue.executor
        p.counted = True
        if b.by_stream:
            p.group += 1 + key_queue.bucket
        atomic_add(&key_queue.unsettled, 1)
    accounting_sealed(b.accounting, p)
    executor_post(b.executors[p.executor], p)
    b.wakes |= <uint64_t>1 << p.executor


cdef void openpack_undo(Batcher* b, Pack* p) noexcept nogil:
    """Give back a pack without a message.  Locality: any thread.  Locks: lock is held; takes the pool's."""
    dp_assert(p.count == 0, "a pack that is given back holds no message: count=%u, seq=%u", p.count, p.seq)
    unknown_note(b, p, 0)
    streams_forget(<Stream*>p.stream, p)
    list_remove(&b.open, p)
    stream_release(&b.streams, <Stream*>p.stream)
    pool_give(b.spares, p)


cdef void openpack_seal_old(Batcher* b, Pack* p) noexcept nogil:
    """Seal a pack that need not wait for more.

    Locality: any thread.  Locks: lock is held; takes accounting.lock, then an inbox's.
    """
    if p.key_queue != NULL and atomic_load(&(<KeyQueue*>p.key_queue).unsettled) > 0:
        p.lingered = True                   # it goes on growing until its predecessor has a result
    else:
        openpack_seal(b, p)


cdef inline size_t _frame_size(const Batcher* b, const Stream* s, size_t n) noexcept nogil:
    """Return the size in bytes of a buffer for ``n`` bytes of items and everything that their frame adds."""
    return b.wire.head_room + n + s.tail


cdef inline int64_t _memory(const Batcher* b, size_t cap) noexcept nogil:
    """Return what a pack counts that is taken with a buffer of ``cap`` bytes."""
    return pack_memory(pack_loose(cap) * b.wire.spread)


cdef int64_t openpack_least(const Batcher* b, const Stream* s, size_t need) noexcept nogil:
    """Return the most bytes of memory that accepting ``need`` bytes may take when memory is scarce.

    Locality: any thread.  Locks: lock is held.
    """
    return _memory(b, _frame_size(b, s, max(need, FIRST_CAP))) + 2 * STEP


cdef void _fit_all(Batcher* b, const Pack* but) noexcept nogil:
    """Make open packs give back the memory that they do not need now.  Locks: lock is held."""
    cdef Pack* p = b.open.head
    while p != NULL:
        if p != but:
            pack_fit(b.spares, p, (<Stream*>p.stream).tail)
        p = p.next
    b.fitted_seq = b.next_seq


cdef bint _find_memory(Batcher* b, int64_t bytes, const Pack* but) noexcept nogil:
    """Tell whether ``bytes`` of memory are free; if not, open packs first give back memory.  Locks: lock is held.

    Open packs are asked only after enough new ones were opened, so that each new pack pays a small part of the search.
    """
    if memory_fits(b, bytes):
        return True
    if <int64_t><uint32_t>(b.next_seq - b.fitted_seq) <= b.open.n // 8 + 16:
        return False
    _fit_all(b, but)
    return memory_fits(b, bytes)


cdef int _take(Batcher* b, Stream* s, const KeyQueue* key_queue, size_t room, int exempt, Pack** out) noexcept nogil:
    """Take a pack whose buffer suits the stream; ST_OK, ST_NO_MEMORY, or ST_FULL at the bound.  Locks: lock is held."""
    cdef size_t hint = s.size_hint if key_queue == NULL else key_queue.size_hint
    cdef size_t cap = hint if hint > FIRST_CAP else FIRST_CAP
    cdef size_t full = min(b.batch_bytes, s.max_body + ITEM_LENGTH_SIZE)
    if cap < full and pack_loose(_frame_size(b, s, cap)) >= _frame_size(b, s, full):
        cap = full                          # this stream fills its packs: with this size they never have to grow
    if cap < room:
        cap = room
    if b.on_full == OF_BLOCK and exempt < EX_RESULTS and not results_fit(b):
        return ST_FULL
    if not memory_fits(b, _memory(b, _frame_size(b, s, cap)) + b.spare_room):
        cap = max(room, <size_t>FIRST_CAP)
        if exempt < EX_ALL and not _find_memory(b, openpack_least(b, s, room), NULL):
            return ST_FULL
    out[0] = pool_take(b.spares, b.wire.head_room, _frame_size(b, s, cap))
    return ST_OK if out[0] != NULL else ST_NO_MEMORY


cdef int _open(
    Batcher* b, Stream* s, KeyQueue* key_queue, int items, int64_t bucket, const Extras* extras, size_t room,
    Pack** out,
) noexcept nogil:
    """Open a pack for ``s``; ST_OK, ST_NO_MEMORY, or ST_FULL at the bound of memory.  Locks: lock is held."""
    cdef Pack* p
    cdef int status = _take(b, s, key_queue, room, extras.exempt, out)
    if status != ST_OK:
        return status
    p = out[0]
    p.stream = s
    stream_hold(s)
    relaxed_store(&s.used, 1)
    openpack_limit(b, p)
    p.items = items
    p.bucket = bucket
    p.data_time_ms = extras.when_ms if extras.when_ms != NO_TIME else b.clock.wall_ms()
    p.opened_us = b.clock.now_us()
    p.report = b.report_all
    p.seq = b.next_seq
    b.next_seq += 1
    p.id_n = ids_next(&b.ids, p.id)
    p.key_queue = key_queue
    p.unknown = &s.unknown
    if key_queue != NULL:
        key_queue.open = p
        p.tied = True
    elif items == ITEM_ATTRS or bucket != NO_TIME or s.is_unknown:
        if s.n_others == b.max_others:
            openpack_seal(b, s.others[0])
        streams_keep(s, p)
    else:
        s.plain = p
    list_push(&b.open, p)
    if not b.tick_armed:
        b.tick_armed = True
        executor_ask_tick(b.executors[0])
        b.wakes |= 1
    return ST_OK


cdef Pack* _find(Batcher* b, Stream* s, KeyQueue* key_queue, int items, int64_t bucket) noexcept nogil:
    """Return the open pack that such a message may join, or NULL.  Locks: lock is held.

    A key queue has one open pack: a message that may not join it comes after it.
    """
    cdef int i
    cdef Pack* p
    if key_queue != NULL:
        p = key_queue.open
        if p != NULL and (p.stream != s or p.items != items or p.bucket != bucket):
            openpack_seal(b, p)
            p = NULL
        return p
    if items != ITEM_ATTRS and bucket == NO_TIME and not s.is_unknown:
        return s.plain
    if s.newest == NULL or s.newest.items == items and s.newest.bucket == bucket:
        return s.newest                     # the usual case, which touches no memory of other packs
    i = s.n_others - 2
    while i >= 0:
        if s.others[i].items == items and s.others[i].bucket == bucket:
            return s.others[i]
        i -= 1
    return NULL


cdef int openpack_grow(Batcher* b, Pack* p, size_t room, int exempt) noexcept nogil:
    """Make room for ``room`` more bytes in an open pack; ST_OK, ST_NO_MEMORY, or ST_FULL at the bound of memory.

    Locality: any thread.  Locks: lock is held.  A small pack grows fourfold, so that little is copied, but never beyond
    the size of a full one, because the system gives memory in whole pages.  If memory is scarce, it grows only by
    STEP.
    """
    cdef size_t tail = (<Stream*>p.stream).tail
    cdef size_t full = p.head + p.most + tail
    cdef size_t least = p.head + p.body_n + room
    cdef size_t cap
    if least <= p.cap:
        return ST_OK
    if least > full:
        cap = least + tail                  # one message larger than a pack: nothing joins it
    elif p.cap > SMALL:
        cap = max(min(room_for(p, room), full), least)
    else:
        cap = max(least, full if 4 * p.cap > full // 4 * 3 else 4 * p.cap)
    if not memory_fits(b, <int64_t>((cap - p.cap) * b.wire.spread) + b.spare_room):
        cap = least + max(tail, <size_t>STEP)
        if exempt < EX_ALL and not _find_memory(b, <int64_t>((cap - p.cap) * b.wire.spread), p):
            return ST_FULL
    if pack_grow(p, cap) != ST_OK:
        return ST_NO_MEMORY
    pool_count(b.spares, p)
    return ST_OK


cdef int openpack_for(
    Batcher* b, Stream* s, const Extras* extras, size_t need, size_t room, bint with_attrs, Pack** out,
) noexcept nogil:
    """Find or open a pack that takes ``need`` more bytes, ``room`` of them in its buffer.

    ST_OK, ST_NO_MEMORY, or ST_FULL at the bound of memory.

    Locality: any thread.  Locks: lock is held; takes accounting.lock, then an inbox's, when it seals.  A new pack is
    empty: before the caller releases the lock, it puts a message in or calls ``openpack_undo``.
    """
    cdef int items = ITEM_ATTRS if with_attrs else (ITEM_LINES if b.lines else ITEM_LENGTH)
    cdef int64_t when_ms = extras.when_ms
    cdef int64_t bucket = when_ms // b.span_ms if when_ms != NO_TIME else NO_TIME
    cdef KeyQueue* key_queue = NULL
    cdef Pack* p
    cdef int status
    if s.is_unknown:
        unknown_gate(b)
        if extras.exempt < EX_ALL and not unknown_fits(b, s, need):
            return ST_FULL
    if extras.key_bucket != NO_KEY:
        key_queue = _key_queue(b, s, extras.key_bucket)
        if key_queue == NULL:
            return ST_NO_MEMORY
    p = _find(b, s, key_queue, items, bucket)
    if p != NULL and p.body_n + need > p.most:
        openpack_seal(b, p)
        p = NULL
    if p == NULL:
        status = _open(b, s, key_queue, items, bucket, extras, room, &p)
        if status != ST_OK:
            return status
    out[0] = p
    if s.is_unknown:
        openpack_limit(b, p)
        unknown_note(b, p, pack_items(p) + need)
        p.most = max(min(p.most, p.body_n + need + <size_t>max(<int64_t>0, unknown_left(b))), p.body_n + need)
    return ST_OK if p.head + p.body_n + room <= p.cap else openpack_grow(b, p, room, extras.exempt)


cdef int openpack_claim(Pack* p, PackResult** pack_result, uint32_t* index) noexcept nogil:
    """Give the caller a reference to the pack's result; ST_OK or ST_NO_MEMORY.

    Locality: any thread.  Locks: lock is held.
    """
    if p.pack_result == NULL:
        p.pack_result = pack_result_new()
        if p.pack_result == NULL:
            return ST_NO_MEMORY
        p.pack_result.seq = p.seq
        memcpy(p.pack_result.id, p.id, sizeof(p.id))
        p.pack_result.open_pack = p
    atomic_add(&p.pack_result.refs, 1)
    pack_result[0] = p.pack_result
    index[0] = p.count
    return ST_OK
