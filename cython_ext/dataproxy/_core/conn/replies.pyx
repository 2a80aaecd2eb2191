"""Replies of a proxy, parsed by the wire and applied to packs and connections.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp, memcpy

from dataproxy._core.pack.pack cimport PK_BACKOFF, PK_IN_FLIGHT, PK_QUEUED, Pack
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NEED_DATA, ST_OK, ST_PROTOCOL
from dataproxy._core.conn.clusters cimport part_of
from dataproxy._core.conn.balance.outliers cimport outlier_answer, outlier_probed
from dataproxy._core.conn.balance.router cimport load_add, load_average, proxy_doubted, proxy_heard, weigh_connections
from dataproxy._core.conn.inflight cimport attempt_open, attempt_refused, inflight_get
from dataproxy._core.conn.connection cimport (
    CE_DRAINED, CE_FRAMING, CE_MISDIRECTED, CE_REFUSED, CE_UNEXPECTED, CE_UNKNOWN_FRAME, CF_CLOSE, CF_WRITE,
    LOAD_UNKNOWN, RC_DRAINED, RC_FRAMING, RC_OK, Connection, ConnectionPool,
)
from dataproxy._core.conn.retry cimport (
    node_refused, reason_note, reason_note_connection, retry_class, retry_refused,
)
from dataproxy._core.conn.sendq cimport mark_dirty, sendq_cut, sendq_shake
from dataproxy._core.conn.settle cimport settle_delivered
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.wire.api cimport ACK_NONE, EV_ACK, EV_HEARTBEAT_ACK, WireEvent

cdef enum:
    TOLD_US = 1000000       # shortest time between two reports of ignored answers; all are counted


cdef void _acked(ConnectionPool* pool, Connection* conn, Pack* p) noexcept nogil:
    """Act on a success for ``p``, which has an open attempt over ``conn``."""
    cdef Connection* queued_on
    memcpy(p.node, conn.peer.label, sizeof(p.node))
    if p.state == PK_QUEUED:
        queued_on = pool.connections[p.conn]
        if p == queued_on.queue.head and queued_on.head_sent > 0:
            p.answered = True       # settled when all its bytes are written: the peer must get whole frames
            return
    settle_delivered(pool, p)


cdef void _counts_for_nothing(
    ConnectionPool* pool, Connection* conn, int kind, const WireEvent* event, int64_t now_us,
) noexcept nogil:
    relaxed_add(&pool.unmatched, 1)
    if conn.told_us == 0 or now_us - conn.told_us >= TOLD_US:
        conn.told_us = now_us if now_us else 1
        pool.event(pool.event_context, kind, conn.peer.label, event.code,
                   event.message if event.code else slice_of(NULL, 0))


cdef void _refused(
    ConnectionPool* pool, Connection* conn, Pack* p, const WireEvent* event, int64_t now_us,
) noexcept nogil:
    """Act on a refusal of ``p``: it answers the oldest of its open attempts over ``conn``."""
    cdef bint newest = attempt_refused(p, conn)
    if event.unsure:                    # no answer follows, and the frame may be stored all the same
        p.open_attempts += 1
    reason_note(p, event.code, event.message)
    if newest and (p.state == PK_IN_FLIGHT or p.state == PK_BACKOFF):
        retry_refused(pool, conn, p, event.code, event.message, now_us)
    # else an older attempt was refused, and the newer one decides


cdef void _refused_unnamed(
    ConnectionPool* pool, Connection* conn, const WireEvent* event, int64_t now_us,
) noexcept nogil:
    """Act on a refusal that names no frame: it is for the only frame that waits for an answer here, if there is one."""
    if conn.owed == 1 and conn.flight.n == 1:
        conn.owed = 0
        relaxed_add(&conn.counters.acked_frames, 1)
        _refused(pool, conn, conn.flight.head, event, now_us)
        return
    relaxed_add(&pool.unmatched, 1)
    reason_note_connection(conn, event.code, event.message)
    pool.event(pool.event_context, CE_REFUSED, conn.peer.label, event.code, event.message)


cdef void _out_of_step(ConnectionPool* pool, Connection* conn, int code) noexcept nogil:
    """Ask for a new socket because the server has lost the frame boundaries on this one.

    The server would misread all following frames too.  The sequence number in its answer comes from wrong bytes as
    well, so it is ignored.
    """
    conn.close_event = CE_FRAMING
    conn.close_detail = code
    mark_dirty(pool, conn, CF_CLOSE)


cdef void _note_known(ConnectionPool* pool, const WireEvent* event) noexcept nogil:
    """Count the messages of a frame that a server with deduplication reports as known."""
    cdef int64_t shortest = relaxed_load(&pool.reach)
    relaxed_add(&pool.known, event.known)
    relaxed_add(&pool.differed, event.differed)
    relaxed_add(&pool.filtered, 1)
    if shortest < 0 or event.reach < shortest:
        relaxed_store(&pool.reach, event.reach)


cdef void _unasked(
    ConnectionPool* pool, Connection* conn, int kind, const WireEvent* event, int64_t now_us,
) noexcept nogil:
    """Act on an answer that nobody asked for: its frame has its result, ``sent``, which stays.

    A success counts for nothing.  A refusal is told, because it is all that a user hears of lost messages, a drained
    proxy is avoided, and a server that has lost its place gets a new connection.
    """
    if kind == RC_OK:
        return
    if kind == RC_FRAMING:
        _out_of_step(pool, conn, event.code)
    node_refused(pool, conn, kind, now_us)
    if conn.told_us == 0 or now_us - conn.told_us >= TOLD_US:
        conn.told_us = now_us if now_us else 1
        pool.event(pool.event_context, CE_DRAINED if kind == RC_DRAINED else CE_REFUSED, conn.peer.label, event.code,
                   event.message)


cdef void _ack(ConnectionPool* pool, Connection* conn, const WireEvent* event, int64_t now_us) noexcept nogil:
    cdef Pack* p
    cdef int kind = RC_OK if event.code == 0 else retry_class(&pool.config, event.code)
    cdef bint success = kind == RC_OK
    if pool.config.ack == ACK_NONE:
        _unasked(pool, conn, kind, event, now_us)
        return
    if not success:
        if kind == RC_FRAMING:
            _out_of_step(pool, conn, event.code)
        if not event.has_seq:
            _refused_unnamed(pool, conn, event, now_us)
            return
    p = inflight_get(&pool.in_flight, event.seq) if event.has_seq else NULL
    if p == NULL:
        _counts_for_nothing(pool, conn, CE_UNEXPECTED, event, now_us)
        return
    if not attempt_open(p, conn):
        _counts_for_nothing(pool, conn, CE_MISDIRECTED, event, now_us)
        return
    if not p.answered:
        conn.owed -= 1
    relaxed_add(&conn.counters.acked_frames, 1)
    if p.state == PK_IN_FLIGHT and p.conn == conn.index:
        p.sent_us = now_us          # the next frame's ack timeout starts now
        outlier_answer(conn, now_us - p.written_us)
    if success:
        if event.reach >= 0:
            _note_known(pool, event)
        _acked(pool, conn, p)
    else:
        _refused(pool, conn, p, event, now_us)


cdef void _answer_in_turn(
    ConnectionPool* pool, Connection* conn, const WireEvent* event, int64_t now_us,
) noexcept nogil:
    """Act on an answer without a number: it belongs to the one request that waits on the connection.

    An answer that nobody waits for ends the connection: it would be taken for the next one.  A server may refuse a
    request that it has not read to its end, as gateways do with one that is too large.
    """
    cdef Pack* p
    cdef int kind = RC_OK if event.code == 0 else retry_class(&pool.config, event.code)
    cdef bint early = conn.owed == 0 and conn.head_sent > 0 and kind != RC_OK
    if early:
        sendq_cut(pool, conn, now_us)
    p = conn.flight.head
    if conn.owed == 0:
        _counts_for_nothing(pool, conn, CE_UNEXPECTED, event, now_us)
        mark_dirty(pool, conn, CF_CLOSE)
        return
    conn.owed = 0
    if event.closes or early:
        conn.renewed = True
        mark_dirty(pool, conn, CF_CLOSE)
    if p == NULL:
        _heartbeat_noted(pool, conn, LOAD_UNKNOWN)
        if kind != RC_OK:
            pool.event(pool.event_context, CE_DRAINED if kind == RC_DRAINED else CE_REFUSED, conn.peer.label,
                       event.code, event.message)
            node_refused(pool, conn, kind, now_us)
        else:
            outlier_probed(pool, conn, now_us)
    else:
        relaxed_add(&conn.counters.acked_frames, 1)
        outlier_answer(conn, now_us - p.written_us)
        if kind == RC_OK:
            memcpy(p.node, conn.peer.label, sizeof(p.node))
            settle_delivered(pool, p)
        elif event.unsure:          # the attempt stays open
            reason_note(p, event.code, event.message)
            retry_refused(pool, conn, p, event.code, event.message, now_us)
        else:
            _refused(pool, conn, p, event, now_us)
    mark_dirty(pool, conn, CF_WRITE)


cdef void _heartbeat_noted(ConnectionPool* pool, Connection* conn, int load) noexcept nogil:
    conn.unanswered = 0
    relaxed_store(&conn.counters.unanswered, 0)
    load_add(&conn.load, load if load >= 0 else LOAD_UNKNOWN)
    relaxed_store(&conn.counters.load, load_average(&conn.load))
    sendq_shake(pool, conn)


cdef void _heartbeat_answered(ConnectionPool* pool, Connection* conn, int load, int64_t now_us) noexcept nogil:
    _heartbeat_noted(pool, conn, load)
    if conn.part >= 0:
        weigh_connections(part_of(pool, conn))
    outlier_probed(pool, conn, now_us)


cdef int foreign_protocol(const ConnectionPool* pool, Slice data) noexcept nogil:
    """Return the ForeignProtocol that bytes which are no reply look like."""
    if not pool.in_turn and data.n >= 5 and memcmp(data.p, b"HTTP/", 5) == 0:
        return FP_HTTP
    if data.n >= 3 and (data.p[0] == 0x15 or data.p[0] == 0x16) and data.p[1] == 3 and data.p[2] <= 4:
        return FP_TLS
    return FP_UNKNOWN


cdef int take_bytes(
    ConnectionPool* pool, Connection* conn, const uint8_t* p, size_t n, int64_t now_us, size_t* used,
) noexcept nogil:
    """Apply every whole reply in p[0:n]; ``used`` gets the number of consumed bytes.

    ST_OK, or ST_PROTOCOL/ST_LIMIT if the connection must be closed.
    """
    cdef WireEvent event
    cdef size_t at = 0, size = 0
    cdef int status
    while at < n:
        status = pool.wire.delimit(p + at, n - at, pool.config.max_reply, &size)
        if status == ST_NEED_DATA:
            break
        if status != ST_OK:
            used[0] = at
            return status
        if pool.wire.parse_reply(p + at, size, &event) != ST_OK:
            used[0] = at
            return ST_PROTOCOL
        conn.last_read_us = now_us      # not with each byte: a reply may claim more bytes than ever come
        conn.failures = 0
        if pool.doubted and proxy_doubted(pool, conn):
            proxy_heard(pool, conn.peer.label)
        if event.kind == EV_ACK and pool.in_turn:
            _answer_in_turn(pool, conn, &event, now_us)
        elif event.kind == EV_ACK:
            _ack(pool, conn, &event, now_us)
        elif event.kind == EV_HEARTBEAT_ACK:
            _heartbeat_answered(pool, conn, event.load, now_us)
        else:
            pool.event(pool.event_context, CE_UNKNOWN_FRAME, conn.peer.label, event.msg_type, slice_of(NULL, 0))
        at += size
    used[0] = at
    return ST_OK
