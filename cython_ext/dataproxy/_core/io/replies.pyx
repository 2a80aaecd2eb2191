"""Replies of a proxy, parsed by the wire and applied to packs and links."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from dataproxy._core.base.pack cimport PK_BACKOFF, PK_IN_FLIGHT, PK_QUEUED, Pack
from dataproxy._core.base.status cimport ST_NEED_DATA, ST_OK, ST_PROTOCOL
from dataproxy._core.io.attempts cimport attempt_refused
from dataproxy._core.io.inflight cimport inflight_get
from dataproxy._core.io.link cimport LE_UNKNOWN_FRAME, RC_OK, Link, LinkPool
from dataproxy._core.io.load cimport LOAD_UNKNOWN, load_add, load_average
from dataproxy._core.io.retry cimport retry_class, retry_refused
from dataproxy._core.io.settle cimport note_error, settle_delivered
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_store
from dataproxy._core.wire.api cimport EV_ACK, EV_HEARTBEAT_ACK, WireEvent


cdef void _acked(LinkPool* pool, Link* link, Pack* p) noexcept nogil:
    """A success for ``p``, from whichever attempt."""
    cdef Link* queued_on
    memcpy(p.node, link.peer.label, sizeof(p.node))
    if p.state == PK_QUEUED:
        queued_on = pool.links[p.link]
        if p == queued_on.queue.head and queued_on.head_sent > 0:
            p.answered = True       # settled when its bytes are out: the stream must stay in step
            return
    settle_delivered(pool, p)


cdef void _ack(LinkPool* pool, Link* link, const WireEvent* event, int64_t now_us) noexcept nogil:
    cdef Pack* p = NULL
    cdef int attempt
    if event.has_seq:
        p = inflight_get(&pool.in_flight, event.seq)
    if p == NULL:
        relaxed_add(&pool.unmatched, 1)
        return
    relaxed_add(&link.counters.acked_frames, 1)
    if event.code == 0 or retry_class(&pool.config, event.code) == RC_OK:
        _acked(pool, link, p)
        return
    attempt = attempt_refused(p, link)
    if attempt == 0:
        relaxed_add(&pool.unmatched, 1)     # that attempt has its answer already
    elif attempt == p.attempts and (p.state == PK_IN_FLIGHT or p.state == PK_BACKOFF):
        note_error(p, event.message)
        retry_refused(pool, link, p, event.code, now_us)
    # else an older attempt was refused, and the newer one decides


cdef void _heartbeat_answered(LinkPool* pool, Link* link, int load) noexcept nogil:
    link.unanswered = 0
    relaxed_store(&link.counters.unanswered, 0)
    load_add(&link.load, load if load >= 0 else LOAD_UNKNOWN)
    relaxed_store(&link.counters.load, load_average(&link.load))


cdef int take_bytes(
    LinkPool* pool, Link* link, const uint8_t* p, size_t n, int64_t now_us, size_t* used,
) noexcept nogil:
    """Apply every whole reply in p[0:n]; ``used`` gets the bytes consumed.

    Locality: executor.  Locks: none.  ST_OK, or ST_PROTOCOL/ST_LIMIT when the link must be closed.
    """
    cdef WireEvent event
    cdef size_t at = 0, size = 0
    cdef int status
    link.last_read_us = now_us
    while at < n:
        status = pool.wire.delimit(p + at, n - at, pool.config.max_frame, &size)
        if status == ST_NEED_DATA:
            break
        if status != ST_OK:
            used[0] = at
            return status
        if pool.wire.parse_reply(p + at, size, &event) != ST_OK:
            used[0] = at
            return ST_PROTOCOL
        link.failures = 0
        if event.kind == EV_ACK:
            _ack(pool, link, &event, now_us)
        elif event.kind == EV_HEARTBEAT_ACK:
            _heartbeat_answered(pool, link, event.load)
        else:
            pool.event(pool.event_context, LE_UNKNOWN_FRAME, link.peer.label, event.msg_type)
        at += size
    used[0] = at
    return ST_OK
