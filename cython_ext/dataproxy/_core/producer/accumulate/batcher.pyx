"""Batcher: appends bodies behind a length prefix to the open pack of their stream.

One lock, ``Batcher.lock``, guards all open packs of a producer; an append holds it for tens of nanoseconds.  A pack is
sealed when the next message, if it is like the last one, would not fit, on a flush, or when it is old enough and an
executor has room for it: while enough frames wait to be written, old packs grow instead.  A seal takes
accounting.lock, then the lock of an executor's inbox.  In this module "lock" is ``Batcher.lock``.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.pack.held cimport held_reserve
from dataproxy._core.pack.pack cimport (
    PK_OPEN, Pack, PackList, PackResult, list_push, list_remove, pack_items, pack_memory,
)
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_CLOSED, ST_FULL, ST_INVALID, ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.results.accounting cimport (
    Accounting, AccountingCounts, accounting_counts, accounting_mark, accounting_refuse, accounting_sealed,
    accounting_turn,
)
from dataproxy._core.producer.ingest.ids cimport item_text_size
from dataproxy._core.producer.accumulate.item cimport (
    item_accepted, item_hold, item_is_held, item_is_line, item_placed, item_size, item_write,
)
from dataproxy._core.producer.results.undelivered cimport undelivered_missed
from dataproxy._core.producer.accumulate.openpacks cimport (
    openpack_claim, openpack_for, openpack_least, openpack_limit, openpack_limit_all, openpack_placed, openpack_room,
    openpack_seal, openpack_seal_old, openpack_stream, openpack_undo, openpacks_unlock,
)
from dataproxy._core.producer.accumulate.groups cimport groups_add
from dataproxy._core.producer.accumulate.overflow cimport (
    has_room, make_room, memory_fits, memory_left, refuse, results_fit,
)
from dataproxy._core.producer.accumulate.share cimport unknown_note
from dataproxy._core.producer.accumulate.unknown cimport unknown_yield
from dataproxy._core.producer.ingest.rows cimport body_limit
from dataproxy._core.producer.accumulate.staging cimport STAGED, staging_empty, staging_put
from dataproxy._core.producer.accumulate.state cimport EX_NOTHING, NO_KEY, NO_TIME, OF_BLOCK
from dataproxy._core.producer.accumulate.streamlife cimport streams_reap
from dataproxy._core.producer.accumulate.streams cimport Stream, stream_hold, streams_forget
from dataproxy._core.conn.connection cimport LC_CLOSED, LC_TIMEOUT
from dataproxy._core.net.executor cimport executor_room
from dataproxy._core.plat.assertion cimport DP_CHECKED, dp_assert
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load
from dataproxy._core.plat.bits cimport LINE, prefetch_write
from dataproxy._core.plat.endian cimport store_be32
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock

cdef enum:
    RETRY_US = 1000         # until what was not there is looked for again: room or memory
    PACE_US = 250           # until room is looked for again when there was some
    MANY_OPEN = 512         # packs; with more of them messages are staged
    PACK_ROOM = 2048        # of a pack's buffer, beside its items
    STAGED_MEMORY = 524288  # what packs of staged messages may take: 64 new ones, or as many that grow


cdef void _check(Batcher* b) noexcept nogil:
    """Compare the counters with each other and with the open packs.  Locks: lock is held; takes accounting.lock."""
    cdef Accounting* k = b.accounting
    cdef const Pack* p = b.open.head
    cdef int64_t messages = b.staged.n
    cdef int64_t noted = 0
    while p != NULL:
        dp_assert(p.count > 0, "an open pack holds a message: seq=%u", p.seq)
        dp_assert(p.state == PK_OPEN, "a pack in the list of open packs is open: state=%d, seq=%u", p.state, p.seq)
        messages += p.count
        noted += <int64_t>p.noted
        p = p.next
    dp_assert(b.unknown_open == noted, "unknown_open is the sum of open packs: unknown_open=%ld, sum=%ld",
              b.unknown_open, noted)
    dp_assert(b.open_messages == messages, "open_messages is the sum of open packs: open_messages=%ld, sum=%ld",
              b.open_messages, messages)
    pthread_mutex_lock(&k.lock)
    dp_assert(
        b.accepted == b.open_messages + k.in_flight + k.delivered + k.sent + k.failed + k.expired + k.dropped,
        "accepted = open + in_flight + delivered + sent + failed + expired + dropped: "
        "%ld, %ld + %ld + %ld + %ld + %ld + %ld + %ld",
        b.accepted, b.open_messages, k.in_flight, k.delivered, k.sent, k.failed, k.expired, k.dropped)
    pthread_mutex_unlock(&k.lock)


cdef Stream* batcher_stream(Batcher* b, Slice group, Slice stream, Slice attrs) noexcept nogil:
    """Find or add a stream and give the caller a reference; NULL without memory, or if its group needs a number.

    Locality: any thread.  Locks: takes lock.
    """
    cdef Stream* s
    pthread_mutex_lock(&b.lock)
    streams_reap(b)
    s = openpack_stream(b, group, stream, attrs)
    if s != NULL:
        stream_hold(s)
    openpacks_unlock(b)
    return s


cdef int batcher_group(Batcher* b, Slice group, int number) noexcept nogil:
    """Give a group its number; ST_OK or ST_NO_MEMORY.  Locality: any thread.  Locks: takes lock."""
    cdef int status
    pthread_mutex_lock(&b.lock)
    status = groups_add(&b.groups, group, number)
    openpacks_unlock(b)
    return status


cdef size_t batcher_room(Batcher* b, size_t text_n, size_t pairs) noexcept nogil:
    """Return the most bytes of a body in a frame with ``text_n`` bytes of text in ``pairs``.

    Locality: any thread.  Locks: takes lock.
    """
    cdef size_t room
    pthread_mutex_lock(&b.lock)
    room = openpack_room(b, text_n, pairs)
    openpacks_unlock(b)
    return room


cdef void batcher_limit_frames(Batcher* b, size_t max_frame) noexcept nogil:
    """Refuse from now on every message that would need a frame of more than ``max_frame`` bytes.

    Locality: any thread.  Locks: takes lock; accounting.lock and an inbox's when it seals.  Messages that were accepted
    before are sent in frames of the old limit: an open pack that is too large for the new limit is sealed as it is.
    """
    cdef Pack* p
    cdef Pack* following
    pthread_mutex_lock(&b.lock)
    staging_empty(b)
    b.max_frame = max_frame
    openpack_limit_all(b)
    p = b.open.head
    while p != NULL:
        following = p.next
        openpack_limit(b, p)
        if p.body_n > p.most:
            openpack_seal(b, p)
        p = following
    openpacks_unlock(b)


cdef bint _stage(Batcher* b, Stream* s, const uint8_t* body, size_t n, size_t need) noexcept nogil:
    """Accept a message without touching its pack; False if it must go into its pack now.  Locks: lock is held."""
    if b.closed or b.least.n or n > b.least_body or not has_room(b, need):
        return False
    if b.staged.n == 0 and not memory_fits(b, STAGED_MEMORY):
        return False
    if not staging_put(&b.staged, s, body, n):
        return False
    item_accepted(b, n, need)
    if b.staged.n == 1:
        b.staged.since_us = b.clock.now_us()
    elif b.staged.n == STAGED:
        staging_empty(b)                  # without memory they stay staged, and the next message is not accepted
    return True


cdef inline int _take(
    Batcher* b, Pack* p, const uint8_t* body, size_t n, size_t text_n, const Extras* extras, size_t need, bint held,
    PackResult** pack_result, uint32_t* index,
) noexcept nogil:
    """Accept a message into a pack that has room for it; results as of ``batcher_append``.  Locks: lock is held."""
    cdef int status = ST_OK
    if held:
        status = held_reserve(&p.held)
    else:
        item_write(p, body, n, text_n, extras.own_id, extras.attrs)
        if b.lines and not item_is_line(b.lines, p, n):
            status = ST_INVALID
    if status == ST_OK and pack_result != NULL:
        status = openpack_claim(p, pack_result, index)
    if status == ST_OK:
        if held:
            item_hold(p, body, n, text_n, extras.own_id, extras.attrs, extras.owner[0])
            extras.owner[0] = NULL
        item_accepted(b, n, need)
        openpack_placed(b, p, need, need - n if held else need)
    elif p.count == 0:
        openpack_undo(b, p)
    return status


cdef int batcher_append(
    Batcher* b, Stream* s, const uint8_t* body, size_t n, const Extras* extras, PackResult** pack_result,
    uint32_t* index,
) noexcept nogil:
    """Accept one checked message; ST_OK, ST_FULL, ST_CLOSED, ST_NO_MEMORY, ST_LIMIT or ST_INVALID.

    Locality: any thread.  Locks: takes lock.  ST_INVALID: the body has changed since it was checked.  ST_LIMIT: it is
    too large for its stream, perhaps because the limit has just become lower.  A message that is dropped because there
    is no room counts as accepted; with any status except ST_OK nothing was accepted.  If ``result`` is not NULL, the
    caller gets a reference to the pack's result, and the message's index in the pack.
    """
    cdef Pack* p = NULL
    cdef size_t text_n = item_text_size(extras.own_id, extras.attrs)
    cdef size_t need = item_size(b, n, text_n)
    cdef int status = ST_OK
    cdef bint held = extras.owner != NULL and item_is_held(b, n, extras.owner[0])
    cdef size_t room = need - n if held else need
    cdef bint plain = (
        text_n == 0 and pack_result == NULL and extras.when_ms == NO_TIME and extras.key_bucket == NO_KEY
        and not b.lines)
    pthread_mutex_lock(&b.lock)
    if plain and not held and b.open.n >= MANY_OPEN and not b.report_all and _stage(b, s, body, n, need):
        openpacks_unlock(b)
        return ST_OK
    if b.closed:
        status = ST_CLOSED
    elif n > body_limit(s.max_body, text_n):
        status = ST_LIMIT
    elif b.staged.n and staging_empty(b) != ST_OK:
        status = ST_NO_MEMORY
    elif not has_room(b, need) and not make_room(b, need, 0):
        status = ST_FULL
    else:
        p = s.plain if plain else NULL
        if p == NULL or p.head + p.body_n + room > p.cap or p.body_n + need > p.most:
            status = openpack_for(b, s, extras, need, room, text_n != 0, &p)
            if status == ST_FULL and make_room(b, need, openpack_least(b, s, room)):
                status = openpack_for(b, s, extras, need, room, text_n != 0, &p)
        if status == ST_OK:
            status = _take(b, p, body, n, text_n, extras, need, held, pack_result, index)
    if status == ST_FULL:
        unknown_yield(b, s)
        status = refuse(b, s, 1, <int64_t>n, extras.own_id, pack_result, index)
    openpacks_unlock(b)
    return status


cdef inline void _fetch_next(const Pack* p) noexcept nogil:
    """Prefetch the memory of the next message: taking a lock waits until all earlier writes have reached the cache.

    The nearest cache cannot hold some hundred packs, but it can hold the lines that are written next.
    Locks: lock is held.
    """
    cdef uint8_t* to = p.buf + p.head + p.body_n
    prefetch_write(to + LINE)
    prefetch_write(to + 2 * LINE)


cdef int batcher_append_plain(Batcher* b, Stream* s, const uint8_t* body, size_t n) noexcept nogil:
    """Accept one checked message that consists of its body alone; not for packs of ``lines``.

    Locality: any thread.  Locks: takes lock.  Results as of ``batcher_append``, which it calls in all other cases.
    """
    cdef Extras x
    cdef size_t need = n + 4
    cdef Pack* p
    pthread_mutex_lock(&b.lock)
    if b.open.n >= MANY_OPEN:
        if not b.report_all and _stage(b, s, body, n, need):
            openpacks_unlock(b)
            return ST_OK
    elif not b.closed and b.staged.n == 0 and has_room(b, need):
        p = s.plain
        if p != NULL and p.head + p.body_n + need <= p.cap and p.body_n + need <= p.most:
            item_accepted(b, n, need)
            store_be32(p.buf + p.head + p.body_n, <uint32_t>n)
            memcpy(p.buf + p.head + p.body_n + 4, body, n)
            item_placed(p, need)
            _fetch_next(p)
            if p.body_n + need > p.most or p.count >= b.batch_messages:
                openpack_seal(b, p)
            openpacks_unlock(b)
            return ST_OK
    openpacks_unlock(b)
    x.when_ms = NO_TIME
    x.attrs = b.least
    x.own_id = slice_of(NULL, 0)
    x.key_bucket = NO_KEY
    x.exempt = EX_NOTHING
    x.owner = NULL
    return batcher_append(b, s, body, n, &x, NULL, NULL)


cdef bint batcher_fits(Batcher* b, int64_t charge, int64_t messages) noexcept nogil:
    """Tell whether so many bytes and messages would be accepted now.  Locality: any thread.  Locks: takes lock."""
    cdef int64_t packs = charge // <int64_t>b.batch_bytes + messages // b.batch_messages + 1
    cdef bint fits
    pthread_mutex_lock(&b.lock)
    fits = memory_fits(b, charge + packs * pack_memory(PACK_ROOM))
    fits = fits and b.charged + charge - atomic_load(&b.accounting.released) <= b.limit_bytes and (
        b.limit_messages == 0
        or b.accepted + messages - atomic_load(&b.accounting.released_messages) <= b.limit_messages)
    openpacks_unlock(b)
    return fits


cdef int64_t batcher_seal_all(Batcher* b) noexcept nogil:
    """Seal every open pack; return the largest serial of a pack sealed so far.

    Locality: any thread.  Locks: takes lock, then accounting.lock.
    """
    cdef int64_t mark
    pthread_mutex_lock(&b.lock)
    staging_empty(b)
    while b.open.head != NULL:
        openpack_seal(b, b.open.head)
    streams_reap(b)
    if DP_CHECKED:
        _check(b)
    mark = accounting_mark(b.accounting)
    openpacks_unlock(b)
    return mark


cdef void batcher_seal_of(Batcher* b, PackResult* v) noexcept nogil:
    """Seal the pack of ``v`` if it is open, because somebody waits.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&b.lock)
    if v.open_pack != NULL:
        openpack_seal_old(b, <Pack*>v.open_pack)
    openpacks_unlock(b)


cdef void _give_up_staged(Batcher* b, int code) noexcept nogil:
    """Count staged messages as dropped: no pack can take them any more.  Locks: lock is held; takes accounting.lock."""
    cdef uint32_t i, at = 0
    cdef int64_t charge = 0
    for i in range(b.staged.n):
        charge += <int64_t>item_size(b, b.staged.ends[i] - at, 0)
        at = b.staged.ends[i]
    b.open_messages -= b.staged.n
    undelivered_missed(b.undelivered, b.staged.n)
    accounting_refuse(b.accounting, b.staged.n, code)
    atomic_add(&b.accounting.released, charge)
    accounting_turn(b.accounting)
    b.staged.n = 0


cdef bint _next_with_room(Batcher* b) noexcept nogil:
    """Let the next pack go to the first executor in turn that has room; False if none has.  Locks: lock is held."""
    cdef int i, at
    for i in range(b.n_executors):
        at = (b.next_executor + 1 + i) % b.n_executors
        if executor_room(b.executors[at]) > 0:
            b.next_executor = (at + b.n_executors - 1) % b.n_executors      # a seal takes the one behind it
            return True
    return False


cdef Pack* _seal_old(Batcher* b, int64_t now_us, bint* sealed) noexcept nogil:
    """Seal packs that are old enough, the oldest first; return the first that stays open, or NULL.

    Age alone seals a pack only while an executor has room for it: otherwise it would only wait there, and grow no more.
    After `patience` it is sealed all the same.  Locks: lock is held; takes accounting.lock, then an inbox's.
    """
    cdef int64_t old = now_us - b.linger_us
    cdef Pack* p = b.open.head
    cdef Pack* following
    while p != NULL and p.opened_us <= old and (_next_with_room(b) or p.opened_us + b.patience_us <= old):
        following = p.next
        openpack_seal_old(b, p)
        sealed[0] = True
        p = following
    return p


cdef int64_t batcher_tick(Batcher* b, int64_t now_us) noexcept nogil:
    """Seal old packs; return the time of the next tick (us), or -1.  Locality: executor 0.  Locks: takes lock."""
    cdef int64_t due = -1
    cdef bint sealed = False
    cdef Pack* p
    pthread_mutex_lock(&b.lock)
    if staging_empty(b) != ST_OK and b.staged.since_us + b.delivery_us <= now_us:
        _give_up_staged(b, LC_TIMEOUT)
    p = _seal_old(b, now_us, &sealed)
    if p != NULL:
        due = p.opened_us + b.linger_us
        if due <= now_us:                   # it waits for room
            due = now_us + (PACE_US if sealed else RETRY_US)
    elif b.staged.n:
        due = now_us + RETRY_US             # there was no memory for a pack
    else:
        b.tick_armed = False
    streams_reap(b)
    if DP_CHECKED:
        _check(b)
    b.wakes &= ~<uint64_t>1                 # executor 0 takes what was posted to it in this round
    openpacks_unlock(b)
    return due


cdef void batcher_close(Batcher* b) noexcept nogil:
    """Accept nothing from now on; what was accepted is still sent.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&b.lock)
    b.closed = True
    openpacks_unlock(b)


cdef void batcher_abandon(Batcher* b, PackList* out) noexcept nogil:
    """Close the batcher; open packs are counted as sealed and put into ``out``.

    Locality: any thread.  Locks: takes lock, then accounting.lock.  Messages that are still staged because there was no
    memory are counted as dropped.
    """
    cdef Pack* p
    pthread_mutex_lock(&b.lock)
    b.closed = True
    if staging_empty(b) != ST_OK:
        _give_up_staged(b, LC_CLOSED)
    while b.open.head != NULL:
        p = b.open.head
        unknown_note(b, p, 0)
        streams_forget(<Stream*>p.stream, p)
        list_remove(&b.open, p)
        b.open_messages -= p.count
        p.charge = pack_items(p)
        accounting_sealed(b.accounting, p)
        list_push(out, p)
    openpacks_unlock(b)


cdef void batcher_counts(Batcher* b, Accounting* k, BatcherCounts* out, AccountingCounts* sealed) noexcept nogil:
    """Copy the counts here and in ``k``, the accounting of sealed packs, all of one moment.

    Of an engine that was never opened all are 0.

    Locality: any thread.  Locks: takes lock, then accounting.lock, only while numbers are copied.
    """
    pthread_mutex_lock(&b.lock)
    out.accepted = b.accepted
    out.accepted_bytes = b.accepted_bytes
    out.open_messages = b.open_messages
    out.charged = b.charged
    accounting_counts(k, sealed)
    openpacks_unlock(b)


cdef void batcher_left(Batcher* b, int64_t* bytes, int64_t* messages) noexcept nogil:
    """Set what would be accepted now; ``messages`` is -1 without such a limit.  Locality: any.  Locks: takes lock."""
    pthread_mutex_lock(&b.lock)
    bytes[0] = min(b.limit_bytes - b.charged + atomic_load(&b.accounting.released), memory_left(b))
    if b.on_full == OF_BLOCK and not results_fit(b):
        bytes[0] = 0                        # results wait for callbacks
    messages[0] = -1
    if b.limit_messages:
        messages[0] = b.limit_messages - b.accepted + atomic_load(&b.accounting.released_messages)
    openpacks_unlock(b)
