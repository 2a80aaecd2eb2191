"""Send queue of a connection.  No descriptor is used here: ``sendq_gather`` gives the bytes to write, and
``sendq_wrote`` is called with the number of bytes that were written.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from dataproxy._core.pack.pack cimport (
    CL_SENT, PK_IN_FLIGHT, PK_QUEUED, Pack, list_push, list_remove, pack_enter, pack_hold, pack_let_go,
)
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.conn.inflight cimport attempt_made, inflight_put
from dataproxy._core.conn.connection cimport CF_WRITE, CS_ACTIVE, Connection, ConnectionPool
from dataproxy._core.conn.progress cimport progress_wrote
from dataproxy._core.conn.settle cimport detach, settle_delivered
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_store, relaxed_add, relaxed_store
from dataproxy._core.plat.socket cimport iovec


cdef void mark_dirty(ConnectionPool* pool, Connection* conn, int flag) noexcept nogil:
    """Ask the executor for work on ``conn``."""
    conn.flags |= flag
    if not conn.dirty:
        conn.dirty = True
        conn.next_dirty = pool.dirty
        pool.dirty = conn


cdef void sendq_put(ConnectionPool* pool, Connection* conn, Pack* p) noexcept nogil:
    """Queue ``p``, which is in no list, on ``conn``."""
    dp_assert(conn.state == CS_ACTIVE, "frames are queued on an active connection: state=%d, connection=%d",
              conn.state, conn.index)
    pack_enter(p, PK_QUEUED)
    p.conn = conn.index
    list_push(&conn.queue, p)
    conn.queue_bytes += <int64_t>p.frame_n
    relaxed_add(&pool.unwritten, 1)
    relaxed_store(&conn.counters.waiting, conn.queue.n)
    mark_dirty(pool, conn, CF_WRITE)


cdef bint sendq_empty(const Connection* conn) noexcept nogil:
    """Tell whether nothing is left to write."""
    return conn.queue.head == NULL and conn.control_sent == conn.control.n


cdef int sendq_gather(ConnectionPool* pool, Connection* conn, iovec* out, int most, size_t most_bytes) noexcept nogil:
    """Fill ``out`` with the next bytes to write; return the number of parts.

    Call ``sendq_wrote`` afterwards, also after an error: until then no sender can give these packs up.
    """
    cdef int n = 0
    cdef size_t total = 0, skip = conn.head_sent
    cdef Pack* p = conn.queue.head
    cdef Pack* following
    conn.gathered = 0
    if conn.control_sent < conn.control.n and skip == 0:
        out[0].iov_base = conn.control.p + conn.control_sent
        out[0].iov_len = conn.control.n - conn.control_sent
        n = 1
    while p != NULL and n < most and total < most_bytes:
        following = p.next
        if pool.sheds and not p.touched and not pack_hold(p):
            detach(pool, p)             # a sender gave it up; executor_drop follows
            p = following
            continue
        dp_assert(p.state == PK_QUEUED and p.conn == conn.index,
                  "a pack in a send queue is queued on its connection: state=%d, connection=%d, not %d",
                  p.state, p.conn, conn.index)
        dp_assert(skip < p.frame_n, "head_sent < frame_n: head_sent=%zu, frame_n=%zu", skip, p.frame_n)
        dp_assert(p.frame >= p.buf and p.frame + p.frame_n <= p.buf + p.cap,
                  "the frame is in the buffer: frame_n=%zu, cap=%zu", p.frame_n, p.cap)
        out[n].iov_base = p.frame + skip
        out[n].iov_len = p.frame_n - skip
        total += p.frame_n - skip
        skip = 0
        n += 1
        conn.gathered += 1
        p = following
    return n


cdef void _written(ConnectionPool* pool, Connection* conn, Pack* p, int64_t end, int64_t now_us) noexcept nogil:
    list_remove(&conn.queue, p)
    conn.queue_bytes -= <int64_t>p.frame_n
    relaxed_add(&pool.unwritten, -1)
    conn.head_sent = 0
    attempt_made(pool, p, conn)
    conn.owed += 1
    p.sent_us = now_us
    p.sent_end = end
    if not p.answered:
        memcpy(p.node, conn.peer.label, sizeof(p.node))
    relaxed_add(&conn.counters.sent_frames, 1)
    if p.attempts > 1:
        relaxed_add(&pool.retries, 1)
    pack_enter(p, PK_IN_FLIGHT)
    list_push(&conn.flight, p)
    conn.flight_bytes += <int64_t>p.frame_n
    relaxed_add(&pool.flight_bytes, <int64_t>p.frame_n)
    if p.answered or inflight_put(&pool.in_flight, p) != ST_OK:
        # Without memory for the table the ack cannot be matched: the ack timeout resends the frame.
        if p.answered:
            settle_delivered(pool, p)


cdef void _let_go(Connection* conn) noexcept nogil:
    """Give up the claim on packs that were gathered and of which no byte was written."""
    cdef Pack* p = conn.queue.head
    while conn.gathered > 0:
        conn.gathered -= 1
        dp_assert(p != NULL, "the send queue holds what was gathered: gathered=%d more, queue.n=%ld",
                  conn.gathered + 1, conn.queue.n)
        pack_let_go(p)
        p = p.next


cdef void sendq_wrote(ConnectionPool* pool, Connection* conn, size_t n, int64_t now_us) noexcept nogil:
    """Account for ``n`` written bytes, in the order that ``sendq_gather`` gave."""
    cdef size_t part
    cdef int64_t end
    cdef Pack* p
    dp_assert(conn.gathered <= conn.queue.n, "gathered <= queue.n: gathered=%d, queue.n=%ld",
              conn.gathered, conn.queue.n)
    relaxed_add(&conn.counters.sent_bytes, <int64_t>n)
    end = conn.counters.sent_bytes
    if not conn.waits:
        progress_wrote(pool, conn, now_us)
    if conn.control_sent < conn.control.n and conn.head_sent == 0:
        part = conn.control.n - conn.control_sent
        part = part if part < n else n
        conn.control_sent += part
        n -= part
        if conn.control_sent == conn.control.n:
            conn.control.n = 0
            conn.control_sent = 0
            conn.heartbeat_end = end - <int64_t>n
    while n > 0 and conn.queue.head != NULL:
        p = conn.queue.head
        p.touched = True
        if pool.sheds:
            atomic_store(&p.claim, CL_SENT)
        part = p.frame_n - conn.head_sent
        if n < part:
            conn.head_sent += n
            break
        n -= part
        conn.gathered -= 1
        _written(pool, conn, p, end - <int64_t>n, now_us)
    dp_assert(n == 0 or conn.queue.head != NULL, "no more bytes are written than were queued: n=%zu more", n)
    if pool.sheds:
        _let_go(conn)
    relaxed_store(&conn.counters.waiting, conn.queue.n)
    relaxed_store(&conn.counters.in_flight, conn.flight.n)
