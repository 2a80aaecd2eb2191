"""Replies of a proxy, parsed by the wire and applied to packs and links.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp, memcpy

from dataproxy._core.pack.pack cimport PK_BACKOFF, PK_IN_FLIGHT, PK_QUEUED, Pack
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NEED_DATA, ST_OK, ST_PROTOCOL
from dataproxy._core.conn.router cimport load_add, load_average, proxy_doubted, proxy_heard
from dataproxy._core.conn.inflight cimport attempt_open, attempt_refused, inflight_get
from dataproxy._core.conn.connection cimport (
    LE_FRAMING, LE_MISDIRECTED, LE_REFUSED, LE_UNEXPECTED, LE_UNKNOWN_FRAME, LF_CLOSE, LOAD_UNKNOWN, RC_FRAMING, RC_OK,
    Link, LinkPool,
)
from dataproxy._core.conn.retry cimport reason_note, reason_note_link, retry_class, retry_refused
from dataproxy._core.conn.sendq cimport mark_dirty
from dataproxy._core.conn.settle cimport settle_delivered
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.wire.api cimport EV_ACK, EV_HEARTBEAT_ACK, WireEvent

cdef enum:
    TOLD_US = 1000000       # shortest time between two reports of ignored answers; all are counted


cdef void _acked(LinkPool* pool, Link* link, Pack* p) noexcept nogil:
    """Act on a success for ``p``, which has an open attempt over ``link``."""
    cdef Link* queued_on
    memcpy(p.node, link.peer.label, sizeof(p.node))
    if p.state == PK_QUEUED:
        queued_on = pool.links[p.link]
        if p == queued_on.queue.head and queued_on.head_sent > 0:
            p.answered = True       # settled when all its bytes are written: the peer must get whole frames
            return
    settle_delivered(pool, p)


cdef void _counts_for_nothing(
    LinkPool* pool, Link* link, int kind, const WireEvent* event, int64_t now_us,
) noexcept nogil:
    relaxed_add(&pool.unmatched, 1)
    if link.told_us == 0 or now_us - link.told_us >= TOLD_US:
        link.told_us = now_us if now_us else 1
        pool.event(pool.event_context, kind, link.peer.label, event.code,
                   event.message if event.code else slice_of(NULL, 0))


cdef void _refused(LinkPool* pool, Link* link, Pack* p, const WireEvent* event, int64_t now_us) noexcept nogil:
    """Act on a refusal of ``p``: it answers the oldest of its open attempts over ``link``."""
    cdef bint newest = attempt_refused(p, link)
    reason_note(p, event.code, event.message)
    if newest and (p.state == PK_IN_FLIGHT or p.state == PK_BACKOFF):
        retry_refused(pool, link, p, event.code, event.message, now_us)
    # else an older attempt was refused, and the newer one decides


cdef void _refused_unnamed(LinkPool* pool, Link* link, const WireEvent* event, int64_t now_us) noexcept nogil:
    """Act on a refusal that names no frame: it is for the only frame that waits for an answer here, if there is one."""
    if link.owed == 1 and link.flight.n == 1:
        link.owed = 0
        relaxed_add(&link.counters.acked_frames, 1)
        _refused(pool, link, link.flight.head, event, now_us)
        return
    relaxed_add(&pool.unmatched, 1)
    reason_note_link(link, event.code, event.message)
    pool.event(pool.event_context, LE_REFUSED, link.peer.label, event.code, event.message)


cdef void _out_of_step(LinkPool* pool, Link* link, int code) noexcept nogil:
    """Ask for a new connection because the server has lost the frame boundaries of this one.

    The server would misread all following frames too.  The sequence number in its answer comes from wrong bytes as
    well, so it is ignored.
    """
    link.close_event = LE_FRAMING
    link.close_detail = code
    mark_dirty(pool, link, LF_CLOSE)


cdef void _note_known(LinkPool* pool, const WireEvent* event) noexcept nogil:
    """Count the messages of a frame that a server with deduplication reports as known."""
    cdef int64_t shortest = relaxed_load(&pool.reach)
    relaxed_add(&pool.known, event.known)
    relaxed_add(&pool.differed, event.differed)
    relaxed_add(&pool.filtered, 1)
    if shortest < 0 or event.reach < shortest:
        relaxed_store(&pool.reach, event.reach)


cdef void _ack(LinkPool* pool, Link* link, const WireEvent* event, int64_t now_us) noexcept nogil:
    cdef Pack* p
    cdef int kind = RC_OK if event.code == 0 else retry_class(&pool.config, event.code)
    cdef bint success = kind == RC_OK
    if kind == RC_FRAMING:
        _out_of_step(pool, link, event.code)
    if not event.has_seq and not success:
        _refused_unnamed(pool, link, event, now_us)
        return
    p = inflight_get(&pool.in_flight, event.seq) if event.has_seq else NULL
    if p == NULL:
        _counts_for_nothing(pool, link, LE_UNEXPECTED, event, now_us)
        return
    if not attempt_open(p, link):
        _counts_for_nothing(pool, link, LE_MISDIRECTED, event, now_us)
        return
    if not p.answered:
        link.owed -= 1
    relaxed_add(&link.counters.acked_frames, 1)
    if p.state == PK_IN_FLIGHT and p.link == link.index:
        p.sent_us = now_us          # the next frame's ack timeout starts now
    if success:
        if event.reach >= 0:
            _note_known(pool, event)
        _acked(pool, link, p)
    else:
        _refused(pool, link, p, event, now_us)


cdef void _heartbeat_answered(LinkPool* pool, Link* link, int load) noexcept nogil:
    link.unanswered = 0
    relaxed_store(&link.counters.unanswered, 0)
    load_add(&link.load, load if load >= 0 else LOAD_UNKNOWN)
    relaxed_store(&link.counters.load, load_average(&link.load))


cdef int foreign_protocol(Slice data) noexcept nogil:
    """Return the ForeignProtocol that bytes which are no reply look like."""
    if data.n >= 5 and memcmp(data.p, b"HTTP/", 5) == 0:
        return FP_HTTP
    if data.n >= 3 and (data.p[0] == 0x15 or data.p[0] == 0x16) and data.p[1] == 3 and data.p[2] <= 4:
        return FP_TLS
    return FP_UNKNOWN


cdef int take_bytes(
    LinkPool* pool, Link* link, const uint8_t* p, size_t n, int64_t now_us, size_t* used,
) noexcept nogil:
    """Apply every whole reply in p[0:n]; ``used`` gets the number of consumed bytes.

    ST_OK, or ST_PROTOCOL/ST_LIMIT if the link must be closed.
    """
    cdef WireEvent event
    cdef size_t at = 0, size = 0
    cdef int status
    link.last_read_us = now_us
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
        link.failures = 0
        if proxy_doubted(pool, link):
            proxy_heard(pool, link.peer.label)
        if event.kind == EV_ACK:
            _ack(pool, link, &event, now_us)
        elif event.kind == EV_HEARTBEAT_ACK:
            _heartbeat_answered(pool, link, event.load)
        else:
            pool.event(pool.event_context, LE_UNKNOWN_FRAME, link.peer.label, event.msg_type, slice_of(NULL, 0))
        at += size
    used[0] = at
    return ST_OK
