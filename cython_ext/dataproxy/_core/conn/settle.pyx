"""Final results of packs.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t

from dataproxy._core.pack.keyqueue cimport KeyQueue
from dataproxy._core.pack.pack cimport (
    OUT_DELIVERED, OUT_DROPPED, OUT_FAILED, OUT_MIXED, OUT_SENT, PK_BACKOFF, PK_HELD, PK_IN_FLIGHT, PK_QUEUED,
    PK_TAKEN, PK_WAITING, Pack, list_push, list_remove, pack_enter, pack_hold, pack_state_name,
)
from dataproxy._core.pack.settled cimport settled_mark
from dataproxy._core.pack.parts cimport parts_new, parts_release
from dataproxy._core.base.status cimport ST_FULL, ST_OK
from dataproxy._core.base.timers cimport timers_arm, timers_cancel
from dataproxy._core.conn.clusters cimport part_for
from dataproxy._core.conn.balance.router cimport budget_earn
from dataproxy._core.conn.inflight cimport attempts_end, inflight_remove
from dataproxy._core.conn.connection cimport LC_DISPLACED, ClusterPart, Connection, ConnectionPool
from dataproxy._core.conn.split cimport (
    split_attempts, split_begin, split_end, split_halve, split_next, split_rest, split_tries, split_waits,
)
from dataproxy._core.conn.unknown cimport unknown_leave
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_store


cdef void detach(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Take ``p`` out of the list it is in; its number stays in the in-flight table.

    Not for a frame that is partly written: the peer would lose the frame boundaries.
    """
    cdef Connection* conn
    if p.state == PK_IN_FLIGHT:
        conn = pool.connections[p.conn]
        if p.next != NULL and p.next.sent_us < p.sent_us:
            p.next.sent_us = p.sent_us
        list_remove(&conn.flight, p)
        conn.flight_bytes -= <int64_t>p.frame_n
        dp_assert(conn.flight_bytes >= 0, "flight_bytes >= 0: flight_bytes=%ld, frame_n=%zu",
                  conn.flight_bytes, p.frame_n)
        relaxed_add(&pool.flight_bytes, -<int64_t>p.frame_n)
        relaxed_store(&conn.counters.in_flight, conn.flight.n)
    elif p.state == PK_WAITING:
        list_remove(&pool.waiting, p)
        if p.aside:
            pool.aside -= 1
        else:
            relaxed_add(&pool.unwritten, -1)
    elif p.state == PK_BACKOFF:
        list_remove(&pool.backoff, p)
    elif p.state == PK_QUEUED:
        conn = pool.connections[p.conn]
        list_remove(&conn.queue, p)
        conn.queue_bytes -= <int64_t>p.frame_n
        relaxed_add(&pool.unwritten, -1)
        dp_assert(conn.queue_bytes >= 0, "queue_bytes >= 0: queue_bytes=%ld, frame_n=%zu", conn.queue_bytes, p.frame_n)
        relaxed_store(&conn.counters.waiting, conn.queue.n)
    elif p.state == PK_HELD:
        list_remove(&(<KeyQueue*>p.key_queue).held, p)
    else:
        dp_assert(p.state == PK_TAKEN, "a pack in no list is taken: state=%s, seq=%u", pack_state_name(p.state), p.seq)
        return
    pack_enter(p, PK_TAKEN)


cdef void _leave_key_queue(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Mark the key queue, so that its next pack is sent at the end of this round, when no list is being changed."""
    cdef KeyQueue* key_queue = <KeyQueue*>p.key_queue
    if key_queue.active == p:
        key_queue.active = NULL
        if key_queue.held.head != NULL and not key_queue.freed:
            key_queue.freed = True
            key_queue.next_freed = pool.freed
            pool.freed = key_queue


cdef void _untie(ConnectionPool* pool, Pack* p, bint delivered) noexcept nogil:
    """Tell those whom the result of ``p`` concerns."""
    if p.key_queue != NULL:
        _leave_key_queue(pool, p)
    if p.unknown_counted or p.unknown_us != 0:
        unknown_leave(pool, p, delivered)


cdef void _settle(ConnectionPool* pool, Pack* p, int outcome, int code) noexcept nogil:
    detach(pool, p)
    timers_cancel(&pool.timers, &p.timer)
    inflight_remove(&pool.in_flight, p.seq)
    attempts_end(p)
    if pool.sheds and outcome != OUT_DROPPED and not pack_hold(p):
        return                  # it has its result; `settle_dropped` follows
    dp_assert(p.tied or p.key_queue == NULL, "a pack with a key queue is tied: seq=%u", p.seq)
    if p.tied:
        _untie(pool, p, outcome == OUT_DELIVERED)
    dp_assert(p.open_attempts >= 0, "open_attempts >= 0: open_attempts=%d, attempts=%d", p.open_attempts, p.attempts)
    settled_mark(p, outcome, code)
    p.conn = -1
    list_push(&pool.settled, p)


cdef void _wait_on(ConnectionPool* pool, Pack* p, int64_t until_us) noexcept nogil:
    """Put ``p``, which is in no list, into backoff until ``until_us`` (microseconds); 0: until timers run next."""
    pack_enter(p, PK_BACKOFF)
    list_push(&pool.backoff, p)
    timers_arm(&pool.timers, &p.timer, until_us)


cdef void _wake_split(ConnectionPool* pool) noexcept nogil:
    """Let the oldest pack that waits for memory to be split try again."""
    cdef Pack* p = pool.backoff.head if pool.split_waiting else NULL
    while p != NULL and not split_waits(p):
        p = p.next
    if p != NULL:
        timers_arm(&pool.timers, &p.timer, 0)


cdef void _settle_part(ConnectionPool* pool, Pack* p, int outcome, int code) noexcept nogil:
    """Store a result of a pack that is to be split, or is being split, and send its next part."""
    detach(pool, p)
    inflight_remove(&pool.in_flight, p.seq)
    if not p.parts.ready:
        pool.split_waiting -= 1
        dp_assert(pool.split_waiting >= 0, "split_waiting >= 0: split_waiting=%ld", pool.split_waiting)
        parts_release(p.parts)
        p.parts = NULL
        _settle(pool, p, outcome, code)
        return
    if outcome != OUT_DELIVERED and (outcome != OUT_FAILED or code < 0):
        split_rest(pool, p, outcome, code)
    elif split_next(pool, p, outcome, code):
        _wait_on(pool, p, 0)
        return
    _end_split(pool, p)


cdef void _end_split(ConnectionPool* pool, Pack* p) noexcept nogil:
    split_end(pool, p)
    _wake_split(pool)
    _settle(pool, p, OUT_MIXED, 0)


cdef void settle_split(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Send the refused frame of ``p`` again in halves, as ``split_can`` allows.

    Without memory for that, all of ``p`` fails, as a pack of a single message does.
    """
    cdef int status = ST_OK
    detach(pool, p)
    inflight_remove(&pool.in_flight, p.seq)
    if p.parts == NULL:
        p.parts = parts_new()
        if p.parts == NULL:
            _settle(pool, p, OUT_FAILED, p.refused)
            return
        pool.split_waiting += 1
    if not p.parts.ready:
        status = split_begin(pool, p)
        if status == ST_FULL:
            _wait_on(pool, p, p.deadline_us)
            return
        pool.split_waiting -= 1
        _wake_split(pool)
    if status != ST_OK:
        parts_release(p.parts)
        p.parts = NULL
        _settle(pool, p, OUT_FAILED, p.refused)
    elif split_halve(pool, p):
        _wait_on(pool, p, 0)
    else:
        _end_split(pool, p)


cdef void settle_delivered(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Give ``p`` its result: stored by the proxy."""
    cdef ClusterPart* part = part_for(pool, p)
    if p.open_attempts > 1:         # the other open attempts may be stored too; a refused attempt is not
        relaxed_add(&pool.duplicates, p.open_attempts - 1)
        relaxed_add(&pool.copies, (p.open_attempts - 1) * <int64_t>p.count)
    if part != NULL:
        budget_earn(&part.budget, p.attempts > 1 and split_attempts(p) > 1 and split_tries(p) > 1)
    if p.parts != NULL:
        _settle_part(pool, p, OUT_DELIVERED, 0)
        return
    _settle(pool, p, OUT_DELIVERED, 0)


cdef void settle_sent(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Give ``p``, which is in no list, its result: the socket took its last byte, and no answer was asked for."""
    _settle(pool, p, OUT_SENT, 0)


cdef void settle_failed(ConnectionPool* pool, Pack* p, int outcome, int code) noexcept nogil:
    """Give ``p`` the result ``outcome`` (failed or expired) with ``code``.

    If ``p`` is being split: the part on its way gets the result if a server refused it; otherwise all messages without
    a result get it.
    """
    if p.parts != NULL:
        _settle_part(pool, p, outcome, code)
        return
    _settle(pool, p, outcome, code)


cdef void settle_dropped(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Release ``p``, which a sender gave up and entered in the accounting."""
    _settle(pool, p, OUT_DROPPED, LC_DISPLACED)
