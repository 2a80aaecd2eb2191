"""Routing and retries: decisions on packs, with time as an argument and no descriptor in sight."""

from libc.stdint cimport int64_t

from dataproxy._core.base.pack cimport (
    OUT_EXPIRED, OUT_FAILED, PK_BACKOFF, PK_QUEUED, PK_WAITING, Pack, list_push,
)
from dataproxy._core.base.timers cimport timers_arm
from dataproxy._core.io.backoff cimport backoff_us
from dataproxy._core.io.choose cimport choose_link
from dataproxy._core.io.link cimport (
    LC_TIMEOUT, LE_DRAINED, LE_REFUSED, LF_CLOSE, RC_LATE, RC_NEVER, RC_NODE, RC_OK, Link, LinkConfig, LinkPool,
)
from dataproxy._core.io.sendq cimport mark_dirty, sendq_put
from dataproxy._core.io.settle cimport detach, settle_delivered, settle_failed

cdef enum:
    LATE_FACTOR = 10        # a new stream reaches the nodes within tens of seconds


cdef int retry_class(const LinkConfig* config, int code) noexcept nogil:
    """Return the RetryClass of a server's error code.  Locality: any thread.  Locks: none."""
    if 0 <= code < 256:
        return config.classes[code]
    return config.unknown_class


cdef void route(LinkPool* pool, Pack* p, int64_t now_us) noexcept nogil:
    """Queue ``p``, which is in no list, on a link, or keep it waiting.  Locality: executor.  Locks: none."""
    cdef Link* link = choose_link(pool, now_us)
    if link == NULL:
        p.state = PK_WAITING
        p.link = -1
        list_push(&pool.waiting, p)
    else:
        sendq_put(pool, link, p)


cdef void route_waiting(LinkPool* pool, int64_t now_us) noexcept nogil:
    """Hand what waits to the links, oldest first.  Locality: executor.  Locks: none."""
    cdef Pack* p
    while pool.n_active > 0 and pool.waiting.head != NULL:
        p = pool.waiting.head
        detach(pool, p)
        route(pool, p, now_us)


cdef void _later(LinkPool* pool, Pack* p, int64_t wait_us, int code, int64_t now_us) noexcept nogil:
    """Move ``p`` to the backoff list, or end it when its next attempt would come too late."""
    p.code = code
    if now_us + wait_us >= p.deadline_us:
        settle_failed(pool, p, OUT_EXPIRED, code)
        return
    detach(pool, p)
    p.state = PK_BACKOFF
    list_push(&pool.backoff, p)
    timers_arm(&pool.timers, &p.timer, now_us + wait_us)


cdef void retry_refused(LinkPool* pool, Link* link, Pack* p, int code, int64_t now_us) noexcept nogil:
    """Decide on a frame that the server refused with ``code`` in its newest attempt.

    Locality: executor.
    Locks: none.
    """
    cdef const LinkConfig* config = &pool.config
    cdef int kind = retry_class(config, code)
    cdef int64_t base = config.retry_backoff_us
    p.open_attempts -= 1
    if kind == RC_OK:
        settle_delivered(pool, p)
        return
    pool.event(pool.event_context, LE_DRAINED if kind == RC_NODE else LE_REFUSED, link.peer.label, code)
    if kind == RC_NEVER or (kind == RC_LATE and p.attempts >= config.late_attempts):
        settle_failed(pool, p, OUT_FAILED, code)
        return
    if kind == RC_NODE:
        link.avoid_until_us = now_us + config.avoid_us
    if kind == RC_LATE:
        base *= LATE_FACTOR
    _later(pool, p, backoff_us(p.attempts, base, config.retry_backoff_max_us, &pool.random), code, now_us)


cdef void retry_unanswered(LinkPool* pool, Pack* p, int code, int64_t now_us) noexcept nogil:
    """Decide on a frame whose newest attempt has an unknown outcome.  Locality: executor.  Locks: none."""
    if p.attempts <= 1 and pool.n_active > 0:
        detach(pool, p)         # the first time, another link may have it at once
        p.code = code
        route(pool, p, now_us)
        return
    _later(
        pool, p,
        backoff_us(p.attempts, pool.config.retry_backoff_us, pool.config.retry_backoff_max_us, &pool.random),
        code, now_us,
    )


cdef void retry_due(LinkPool* pool, Pack* p, int64_t now_us) noexcept nogil:
    """Act on a pack's timer: its deadline passed, or its backoff is over.  Locality: executor.  Locks: none."""
    cdef Link* link
    if now_us < p.deadline_us:
        if p.state == PK_BACKOFF:
            timers_arm(&pool.timers, &p.timer, p.deadline_us)
            detach(pool, p)
            route(pool, p, now_us)
        else:
            timers_arm(&pool.timers, &p.timer, p.deadline_us)
        return
    if p.state == PK_QUEUED:
        link = pool.links[p.link]
        if p == link.queue.head and link.head_sent > 0:
            # Half of it is on the wire: only a new connection can end it.  The loss settles it,
            # since its deadline has passed.
            mark_dirty(pool, link, LF_CLOSE)
            return
    settle_failed(pool, p, OUT_EXPIRED, p.code if p.code > 0 else LC_TIMEOUT)     # the last refusal says more
