"""Send queue of a link.  No descriptor is used here: ``sendq_gather`` gives the bytes to write, and ``sendq_wrote`` is
called with the number of bytes that were written.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from dataproxy._core.pack.pack cimport (
    CL_SENT, PK_IN_FLIGHT, PK_QUEUED, Pack, list_push, list_remove, pack_enter, pack_hold, pack_let_go,
)
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.conn.inflight cimport attempt_made, inflight_put
from dataproxy._core.conn.connection cimport LF_WRITE, LS_ACTIVE, Link, LinkPool
from dataproxy._core.conn.progress cimport progress_wrote
from dataproxy._core.conn.settle cimport detach, settle_delivered
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_store, relaxed_add, relaxed_store
from dataproxy._core.plat.socket cimport iovec


cdef void mark_dirty(LinkPool* pool, Link* link, int flag) noexcept nogil:
    """Ask the executor for work on ``link``."""
    link.flags |= flag
    if not link.dirty:
        link.dirty = True
        link.next_dirty = pool.dirty
        pool.dirty = link


cdef void sendq_put(LinkPool* pool, Link* link, Pack* p) noexcept nogil:
    """Queue ``p``, which is in no list, on ``link``."""
    dp_assert(link.state == LS_ACTIVE, "frames are queued on an active connection: state=%d, link=%d",
              link.state, link.index)
    pack_enter(p, PK_QUEUED)
    p.link = link.index
    list_push(&link.queue, p)
    link.queue_bytes += <int64_t>p.frame_n
    relaxed_store(&link.counters.waiting, link.queue.n)
    mark_dirty(pool, link, LF_WRITE)


cdef bint sendq_empty(const Link* link) noexcept nogil:
    """Tell whether nothing is left to write."""
    return link.queue.head == NULL and link.control_sent == link.control.n


cdef int sendq_gather(LinkPool* pool, Link* link, iovec* out, int most, size_t most_bytes) noexcept nogil:
    """Fill ``out`` with the next bytes to write; return the number of parts.

    Call ``sendq_wrote`` afterwards, also after an error: until then no sender can give these packs up.
    """
    cdef int n = 0
    cdef size_t total = 0, skip = link.head_sent
    cdef Pack* p = link.queue.head
    cdef Pack* following
    link.gathered = 0
    if link.control_sent < link.control.n and skip == 0:
        out[0].iov_base = link.control.p + link.control_sent
        out[0].iov_len = link.control.n - link.control_sent
        n = 1
    while p != NULL and n < most and total < most_bytes:
        following = p.next
        if pool.sheds and not p.touched and not pack_hold(p):
            detach(pool, p)             # a sender gave it up; executor_drop follows
            p = following
            continue
        dp_assert(p.state == PK_QUEUED and p.link == link.index,
                  "a pack in a send queue is queued on its connection: state=%d, link=%d, not %d",
                  p.state, p.link, link.index)
        dp_assert(skip < p.frame_n, "head_sent < frame_n: head_sent=%zu, frame_n=%zu", skip, p.frame_n)
        dp_assert(p.frame >= p.buf and p.frame + p.frame_n <= p.buf + p.cap,
                  "the frame is in the buffer: frame_n=%zu, cap=%zu", p.frame_n, p.cap)
        out[n].iov_base = p.frame + skip
        out[n].iov_len = p.frame_n - skip
        total += p.frame_n - skip
        skip = 0
        n += 1
        link.gathered += 1
        p = following
    return n


cdef void _written(LinkPool* pool, Link* link, Pack* p, int64_t end, int64_t now_us) noexcept nogil:
    list_remove(&link.queue, p)
    link.queue_bytes -= <int64_t>p.frame_n
    link.head_sent = 0
    attempt_made(pool, p, link)
    link.owed += 1
    p.sent_us = now_us
    p.sent_end = end
    if not p.answered:
        memcpy(p.node, link.peer.label, sizeof(p.node))
    relaxed_add(&link.counters.sent_frames, 1)
    if p.attempts > 1:
        relaxed_add(&pool.retries, 1)
    pack_enter(p, PK_IN_FLIGHT)
    list_push(&link.flight, p)
    link.flight_bytes += <int64_t>p.frame_n
    relaxed_add(&pool.flight_bytes, <int64_t>p.frame_n)
    if p.answered or inflight_put(&pool.in_flight, p) != ST_OK:
        # Without memory for the table the ack cannot be matched: the ack timeout resends the frame.
        if p.answered:
            settle_delivered(pool, p)


cdef void _let_go(Link* link) noexcept nogil:
    """Give up the claim on packs that were gathered and of which no byte was written."""
    cdef Pack* p = link.queue.head
    while link.gathered > 0:
        link.gathered -= 1
        dp_assert(p != NULL, "the send queue holds what was gathered: gathered=%d more, queue.n=%ld",
                  link.gathered + 1, link.queue.n)
        pack_let_go(p)
        p = p.next


cdef void sendq_wrote(LinkPool* pool, Link* link, size_t n, int64_t now_us) noexcept nogil:
    """Account for ``n`` written bytes, in the order that ``sendq_gather`` gave."""
    cdef size_t part
    cdef int64_t end
    cdef Pack* p
    dp_assert(link.gathered <= link.queue.n, "gathered <= queue.n: gathered=%d, queue.n=%ld",
              link.gathered, link.queue.n)
    relaxed_add(&link.counters.sent_bytes, <int64_t>n)
    end = link.counters.sent_bytes
    if not link.waits:
        progress_wrote(pool, link, now_us)
    if link.control_sent < link.control.n and link.head_sent == 0:
        part = link.control.n - link.control_sent
        part = part if part < n else n
        link.control_sent += part
        n -= part
        if link.control_sent == link.control.n:
            link.control.n = 0
            link.control_sent = 0
            link.heartbeat_end = end - <int64_t>n
    while n > 0 and link.queue.head != NULL:
        p = link.queue.head
        p.touched = True
        if pool.sheds:
            atomic_store(&p.claim, CL_SENT)
        part = p.frame_n - link.head_sent
        if n < part:
            link.head_sent += n
            break
        n -= part
        link.gathered -= 1
        _written(pool, link, p, end - <int64_t>n, now_us)
    dp_assert(n == 0 or link.queue.head != NULL, "no more bytes are written than were queued: n=%zu more", n)
    if pool.sheds:
        _let_go(link)
    relaxed_store(&link.counters.waiting, link.queue.n)
    relaxed_store(&link.counters.in_flight, link.flight.n)
