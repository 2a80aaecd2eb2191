"""Routing and retries: decisions on packs; the time is an argument, and no descriptor is used.

Reasons of refusals are kept for the results of the frames that they may concern.  A refusal may name no frame, if the
server could not read the attributes.  If only one frame on the connection waits for an answer, the refusal is for that
frame.  If several wait, it is not known which one is meant, because refusals may come before the answers to earlier
frames.  Then the refusal is kept for the connection, and a frame that gets no answer there reports it as its last
reason.

Locality: executor, except where a function says otherwise.  Locks: none.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport slice_text
from dataproxy._core.base.timers cimport timers_arm
from dataproxy._core.conn.clusters cimport part_for
from dataproxy._core.conn.connection cimport (
    CE_DRAINED, CE_REFUSED, CF_CLOSE, CLASSES, CS_ACTIVE, LC_NO_SINK_ACK, LC_TIMEOUT, RC_BACK, RC_DRAINED, RC_FEW,
    RC_FRAMING, RC_LATE, RC_NEVER, RC_NODE, RC_SPLIT, REASON_ROOM, ClusterPart,
)
from dataproxy._core.conn.balance.outliers cimport outlier_refusal
from dataproxy._core.conn.balance.router cimport backoff_us, budget_take
from dataproxy._core.conn.sendq cimport mark_dirty, sendq_put
from dataproxy._core.conn.settle cimport detach, settle_failed, settle_split
from dataproxy._core.conn.split cimport split_attempts, split_can, split_tries, split_waits
from dataproxy._core.conn.unknown cimport unknown_over, unknown_pause, unknown_turn, unknown_waits
from dataproxy._core.pack.pack cimport (
    OUT_EXPIRED, OUT_FAILED, PK_BACKOFF, PK_IN_FLIGHT, PK_QUEUED, PK_SETTLED, PK_WAITING, list_push, pack_enter,
)
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_load, relaxed_add, relaxed_load
from dataproxy._core.wire.api cimport ACK_SINK

cdef enum:
    NODE_FACTOR = 10        # a node that is not ready is avoided for a tenth of a drained node's time
    LAST_US = 10000         # no attempt is made if less time than this is left for its answer
    HELD_US = 1000000       # longest wait before the retry budget is asked again
    LONGEST = 400           # bytes of a refusal's text


cdef int retry_class(const ConnectionConfig* config, int code) noexcept nogil:
    """Return the RetryClass of a server's error code.  Locality: any thread."""
    if 0 <= code < CLASSES:
        return config.classes[code]
    return config.unknown_class


cdef void route(ConnectionPool* pool, Pack* p, int64_t now_us) noexcept nogil:
    """Queue ``p``, which is in no list, on a connection, or keep it waiting.

    Locality: executor.  What waits while connections to other clusters work is put aside: it does not count as work for
    them, so that it holds up no other group (``executor_room``).
    """
    cdef ClusterPart* part = part_for(pool, p)
    cdef Connection* conn = pool.choose(pool, part, now_us) if part != NULL else NULL
    if conn == NULL:
        pack_enter(p, PK_WAITING)
        p.conn = -1
        list_push(&pool.waiting, p)
        p.aside = pool.n_active > 0
        if p.aside:
            pool.aside += 1
        else:
            relaxed_add(&pool.unwritten, 1)
    else:
        sendq_put(pool, conn, p)


cdef void route_waiting(ConnectionPool* pool, int64_t now_us) noexcept nogil:
    """Queue the waiting packs on connections, the oldest first; those of other clusters go on waiting in their order.

    Locality: executor.
    """
    cdef int64_t n = pool.waiting.n
    cdef Pack* p
    while pool.n_active > 0 and n > 0:
        n -= 1
        p = pool.waiting.head
        detach(pool, p)
        route(pool, p, now_us)


cdef void _park(ConnectionPool* pool, Pack* p, int64_t wait_us, int64_t now_us) noexcept nogil:
    """Move ``p`` to the backoff list for ``wait_us``, or for less if the deadline is near.

    A wait that would pass the deadline is cut to half of the time left, so that the last attempts have time for
    their answers.  If too little time is left, the frame is not sent again, but it stays pending until the deadline,
    because an earlier attempt may still be answered.
    """
    cdef int64_t left = p.deadline_us - now_us
    if wait_us >= left:
        wait_us = left // 2 if left >= 2 * LAST_US else left
    detach(pool, p)
    pack_enter(p, PK_BACKOFF)
    list_push(&pool.backoff, p)
    timers_arm(&pool.timers, &p.timer, now_us + wait_us)


cdef int64_t _pause(ConnectionPool* pool, Pack* p) noexcept nogil:
    return backoff_us(split_tries(p), pool.config.retry_backoff_us, pool.config.retry_backoff_max_us, &pool.random)


cdef void node_refused(ConnectionPool* pool, Connection* conn, int kind, int64_t now_us) noexcept nogil:
    """Avoid a server for a while if a code of this class says that it does not work now.  Locality: executor."""
    cdef const ConnectionConfig* config = &pool.config
    if kind == RC_DRAINED:
        conn.avoid_until_us = now_us + config.avoid_us
    elif kind == RC_NODE and conn.avoid_until_us < now_us + config.avoid_us // NODE_FACTOR:
        conn.avoid_until_us = now_us + config.avoid_us // NODE_FACTOR


cdef void retry_refused(
    ConnectionPool* pool, Connection* conn, Pack* p, int code, Slice text, int64_t now_us,
) noexcept nogil:
    """Decide on a frame that the server refused with ``code`` and ``text`` in its newest attempt.

    Locality: executor.
    """
    cdef const ConnectionConfig* config = &pool.config
    cdef int kind = retry_class(config, code)
    if kind == RC_LATE and unknown_waits(pool, p, conn.peer.label, code, now_us):
        p.code = code
        _park(pool, p, unknown_pause(pool, p, now_us), now_us)
        return
    pool.event(pool.event_context, CE_DRAINED if kind == RC_DRAINED else CE_REFUSED, conn.peer.label, code, text)
    if kind == RC_NODE or kind == RC_DRAINED or kind == RC_BACK or kind == RC_FEW:
        outlier_refusal(pool, conn, now_us)
    if kind == RC_SPLIT and split_can(pool, p):
        p.code = code
        settle_split(pool, p)
        return
    if kind == RC_NEVER or kind == RC_FRAMING or kind == RC_SPLIT or kind == RC_LATE or (
        kind == RC_FEW and split_tries(p) >= config.late_attempts
    ):
        settle_failed(pool, p, OUT_FAILED, code)
        return
    node_refused(pool, conn, kind, now_us)
    p.code = code
    _park(pool, p, _pause(pool, p), now_us)


cdef void retry_unanswered(ConnectionPool* pool, Pack* p, int code, int64_t now_us) noexcept nogil:
    """Decide on a frame whose newest attempt has an unknown outcome.  Locality: executor."""
    cdef ClusterPart* part = part_for(pool, p)
    p.code = code
    reason_inherit(pool, p)
    if split_tries(p) <= 1 and part != NULL and part.n_active > 0 and budget_take(&part.budget, now_us):
        detach(pool, p)         # after the first attempt, another connection may send it at once
        route(pool, p, now_us)
        return
    _park(pool, p, _pause(pool, p), now_us)


cdef void retry_expired(ConnectionPool* pool, Pack* p) noexcept nogil:
    """End a frame whose deadline passed.  Locality: executor."""
    cdef int code = p.code if p.code != 0 else LC_TIMEOUT       # the newest reason tells more
    cdef Connection* conn
    if p.state == PK_IN_FLIGHT:
        reason_inherit(pool, p)
        if pool.config.ack == ACK_SINK and code < 0:
            code = LC_NO_SINK_ACK
        conn = pool.connections[p.conn]
        if pool.in_turn and conn.state == CS_ACTIVE:
            mark_dirty(pool, conn, CF_CLOSE)        # its answer would look like that of the next request
    settle_failed(pool, p, OUT_EXPIRED, code)


cdef void _retry_now(ConnectionPool* pool, Pack* p, int64_t now_us) noexcept nogil:
    """Send ``p`` again, or keep it back while the retry budget is used up."""
    cdef ClusterPart* part = part_for(pool, p)
    cdef int64_t most = pool.config.retry_backoff_max_us
    cdef int64_t wait_us
    if split_waits(p):
        settle_split(pool, p)
        return
    if p.unknown_waits:
        if unknown_over(pool, p, now_us):
            settle_failed(pool, p, OUT_FAILED, p.code)
            return
        wait_us = unknown_turn(pool, p, now_us)
        if wait_us > 0:
            _park(pool, p, wait_us, now_us)
            return
    elif split_attempts(p) > 0 and part != NULL and not budget_take(&part.budget, now_us):
        relaxed_add(&pool.held_back, 1)
        _park(pool, p, 1 + backoff_us(1, HELD_US, most if 0 < most < HELD_US else HELD_US, &pool.random), now_us)
        return
    timers_arm(&pool.timers, &p.timer, p.deadline_us)
    detach(pool, p)
    route(pool, p, now_us)


cdef void retry_due(ConnectionPool* pool, Pack* p, int64_t now_us) noexcept nogil:
    """Act on a pack's timer: its deadline passed, or its backoff is over.  Locality: executor."""
    cdef Connection* conn
    dp_assert(p.state != PK_SETTLED, "a settled pack has no timer: seq=%u, outcome=%d", p.seq, p.outcome)
    if now_us < p.deadline_us:
        if p.state == PK_BACKOFF:
            _retry_now(pool, p, now_us)
        else:
            timers_arm(&pool.timers, &p.timer, p.deadline_us)
        return
    if p.state == PK_QUEUED:
        conn = pool.connections[p.conn]
        if p == conn.queue.head and conn.head_sent > 0:
            # A part of it is written, so it can end only with its connection.  The loss of the connection then
            # settles it, because its deadline has passed.
            mark_dirty(pool, conn, CF_CLOSE)
            return
    retry_expired(pool, p)


cdef void retry_yield(ConnectionPool* pool) noexcept nogil:
    """Fail packs that wait for unknown streams, the youngest first, until these hold no more than their share.

    They were accepted before the first refusal, and other streams need the room.  Locality: executor.
    """
    cdef Pack* p = pool.backoff.tail
    cdef Pack* before
    while p != NULL and atomic_load(pool.unknown_bytes) > pool.unknown_most:
        before = p.prev
        if p.unknown_waits:
            settle_failed(pool, p, OUT_FAILED, p.code)
        p = before


cdef void reason_note(Pack* p, int code, Slice text) noexcept nogil:
    """Keep the newest refusal of ``p``: its code, and its text cut at 400 bytes."""
    cdef size_t n = text.n if text.n < LONGEST else LONGEST
    cdef char* copy = NULL
    if n > 0:
        copy = <char*>malloc(n + 1)     # without memory only the code is kept
    if copy != NULL:
        memcpy(copy, text.p, n)
        copy[n] = 0
    free(p.error_text)
    p.error_text = copy
    p.refused = code


cdef void reason_note_connection(Connection* conn, int code, Slice text) noexcept nogil:
    """Keep a refusal that came over ``conn`` and names no frame."""
    cdef size_t n = text.n if text.n < REASON_ROOM else REASON_ROOM - 1
    if n > 0:
        memcpy(conn.reason, text.p, n)
    conn.reason[n] = 0
    conn.reason_code = code
    conn.reason_end = relaxed_load(&conn.counters.sent_bytes)


cdef void reason_inherit(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Give ``p``, in flight and without an answer, the refusal that its connection got after ``p`` was written."""
    cdef const Connection* conn
    if p.conn < 0 or p.refused != 0:
        return
    conn = pool.connections[p.conn]
    if conn.reason_code != 0 and p.sent_end <= conn.reason_end:
        reason_note(p, conn.reason_code, slice_text(conn.reason))
