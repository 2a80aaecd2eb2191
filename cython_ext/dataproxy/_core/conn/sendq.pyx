"""Send queue of a connection.  No descriptor is used here: ``sendq_gather`` gives the bytes to write, and
``sendq_wrote`` is called with the number of bytes that were written.  Held bodies are written from where they lie.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from dataproxy._core.pack.held cimport HeldBody, held_bodies
from dataproxy._core.pack.pack cimport (
    CL_SENT, PK_IN_FLIGHT, PK_QUEUED, PK_TAKEN, Pack, list_push, list_remove, pack_apart, pack_enter, pack_hold,
    pack_let_go,
)
from dataproxy._core.base.slice cimport Slice, slice_text
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.conn.inflight cimport attempt_made, inflight_put
from dataproxy._core.conn.connection cimport CF_WRITE, CS_ACTIVE, TURNS, Connection, ConnectionPool, ProxyLists
from dataproxy._core.conn.progress cimport progress_wrote
from dataproxy._core.conn.settle cimport detach, settle_delivered, settle_sent
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_store, relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.plat.socket cimport iovec
from dataproxy._core.wire.api cimport ACK_NONE, HB_MESSAGE


cdef enum:
    FRAMES = 64             # of one write
    SHAKE_FRAMES = 1000     # their answers take 17 bytes each at most, and a server keeps 64 KiB of them


cdef void mark_dirty(ConnectionPool* pool, Connection* conn, int flag) noexcept nogil:
    """Ask the executor for work on ``conn``."""
    conn.flags |= flag
    if not conn.dirty:
        conn.dirty = True
        conn.next_dirty = pool.dirty
        pool.dirty = conn


cdef void _place(const ConnectionPool* pool, Connection* conn, Pack* p) noexcept nogil:
    """Write into the request which partition of the server takes it: its group's, or the next one in turn."""
    cdef const ProxyLists* lists = &pool.lists
    cdef uint32_t group = <uint32_t>p.group
    cdef uint32_t turn
    cdef int partition = -1, store = 0
    if lists.fixed != NULL and p.group < lists.n_groups:
        partition = lists.fixed[p.group]
    if partition < 0 and conn.peer.partitions > 0:
        turn = conn.turns[group % TURNS]
        conn.turns[group % TURNS] = turn + 1
        turn = turn % <uint32_t>(conn.peer.stores * conn.peer.partitions)
        store = <int>(turn // <uint32_t>conn.peer.partitions)
        partition = <int>(turn % <uint32_t>conn.peer.partitions)
    pool.wire.place(p.frame, store, partition, &lists.admission)


cdef void sendq_put(ConnectionPool* pool, Connection* conn, Pack* p) noexcept nogil:
    """Queue ``p``, which is in no list, on ``conn``."""
    dp_assert(conn.state == CS_ACTIVE, "frames are queued on an active connection: state=%d, connection=%d",
              conn.state, conn.index)
    if pool.wire.place != NULL:
        _place(pool, conn, p)
    pack_enter(p, PK_QUEUED)
    p.conn = conn.index
    list_push(&conn.queue, p)
    conn.queue_bytes += <int64_t>p.frame_n
    relaxed_add(&pool.unwritten, 1)
    relaxed_store(&conn.counters.waiting, conn.queue.n)
    mark_dirty(pool, conn, CF_WRITE)


cdef bint sendq_waits(const ConnectionPool* pool, const Connection* conn) noexcept nogil:
    """Tell whether nothing can be written now: there is nothing, or an answer must come first."""
    return (pool.in_turn and conn.owed > 0) or sendq_empty(conn)


cdef void sendq_shake(ConnectionPool* pool, Connection* conn) noexcept nogil:
    """Ask a server for the answers that it may keep: by a heartbeat, behind the newest frame that has none behind it.

    One heartbeat at a time is under way, so a busy connection sends one in each round trip, and one behind every
    SHAKE_FRAMES frames: a server closes a connection for which it keeps too many answers.
    """
    cdef int64_t frames = relaxed_load(&conn.counters.sent_frames) - conn.shaken_frames
    if not pool.wire.shaken or conn.flight.tail == NULL or conn.flight.tail.sent_end <= conn.heartbeat_end:
        return
    if (conn.unanswered > 0 and frames < SHAKE_FRAMES) or conn.control_sent < conn.control.n:
        return
    if pool.wire.heartbeat(HB_MESSAGE, 0, &conn.control) != ST_OK:
        conn.control.n = 0
        return
    conn.shaken_frames += frames
    if conn.unanswered == 0:                # more than one at a time say nothing about the peer
        conn.unanswered = 1
        relaxed_store(&conn.counters.unanswered, 1)
    mark_dirty(pool, conn, CF_WRITE)


cdef bint sendq_empty(const Connection* conn) noexcept nogil:
    """Tell whether nothing is left to write."""
    return conn.queue.head == NULL and conn.control_sent == conn.control.n


cdef inline int _part(const uint8_t* p, size_t n, size_t* skip, iovec* out) noexcept nogil:
    """Fill ``out`` with what is left of ``n`` bytes behind ``skip``; return 1, or 0 if nothing is left."""
    if skip[0] >= n:
        skip[0] -= n
        return 0
    out.iov_base = <void*>(p + skip[0])
    out.iov_len = n - skip[0]
    skip[0] = 0
    return 1


cdef int _parts(const Pack* p, size_t skip, iovec* out, int most, bint* whole) noexcept nogil:
    """Fill ``out`` with the bytes of a frame from byte ``skip`` on; return the number of parts.

    ``whole`` is False if there was no room for all of them.
    """
    cdef const uint8_t* at = p.frame
    cdef const uint8_t* gap
    cdef const HeldBody* body
    cdef uint32_t i
    cdef int n = 0
    whole[0] = True
    if pack_apart(p) == 0:
        return _part(at, p.frame_n, &skip, out)
    body = held_bodies(p.held)
    for i in range(p.held.gaps):
        if n + 2 >= most:               # the last part needs a place, too
            whole[0] = False
            return n
        gap = p.buf + p.head + body[i].at
        n += _part(at, <size_t>(gap - at), &skip, out + n)
        n += _part(body[i].p, body[i].n, &skip, out + n)
        at = gap
    return n + _part(at, <size_t>(p.frame + (p.frame_n - p.held.bytes) - at), &skip, out + n)


cdef void _address(ConnectionPool* pool, Connection* conn) noexcept nogil:
    """Write the server's name into the request that is written next, if its wire wants that."""
    cdef Slice server = slice_text(conn.peer.label)
    if pool.wire.address == NULL or conn.head_sent > 0:
        return
    if conn.control_sent < conn.control.n:
        pool.wire.address(conn.control.p, conn.control.n, server)
    elif conn.queue.head != NULL:
        pool.wire.address(conn.queue.head.frame, conn.queue.head.frame_n, server)


cdef int sendq_gather(ConnectionPool* pool, Connection* conn, iovec* out, int most, size_t most_bytes) noexcept nogil:
    """Fill ``out`` with the next bytes to write; return the number of parts.

    Call ``sendq_wrote`` afterwards, also after an error: until then no sender can give these packs up.
    """
    cdef int n = 0, parts
    cdef bint whole = True
    cdef size_t total = 0, skip = conn.head_sent
    cdef Pack* p = conn.queue.head
    cdef Pack* following
    conn.gathered = 0
    if pool.in_turn:
        if conn.owed > 0:
            return 0
        most = 1
        _address(pool, conn)
    if conn.control_sent < conn.control.n and skip == 0:
        out[0].iov_base = conn.control.p + conn.control_sent
        out[0].iov_len = conn.control.n - conn.control_sent
        n = 1
    while p != NULL and whole and n < most and total < most_bytes and conn.gathered < FRAMES:
        following = p.next
        if pool.sheds and not p.touched and not pack_hold(p):
            detach(pool, p)             # a sender gave it up; executor_drop follows
            p = following
            continue
        dp_assert(p.state == PK_QUEUED and p.conn == conn.index,
                  "a pack in a send queue is queued on its connection: state=%d, connection=%d, not %d",
                  p.state, p.conn, conn.index)
        dp_assert(skip < p.frame_n, "head_sent < frame_n: head_sent=%zu, frame_n=%zu", skip, p.frame_n)
        dp_assert(p.frame >= p.buf and p.frame + p.frame_n - pack_apart(p) <= p.buf + p.cap,
                  "the frame is in the buffer: frame_n=%zu, apart=%zu, cap=%zu", p.frame_n, pack_apart(p), p.cap)
        parts = _parts(p, skip, out + n, most - n, &whole)
        if parts == 0:
            pack_let_go(p)              # there is no room even for its first bytes
            break
        n += parts
        total += p.frame_n - skip
        skip = 0
        conn.gathered += 1
        p = following
    return n


cdef void _sent(ConnectionPool* pool, Connection* conn, Pack* p) noexcept nogil:
    """End a frame that asks for no answer: its last byte was written."""
    p.attempts += 1
    memcpy(p.node, conn.peer.label, sizeof(p.node))
    relaxed_add(&conn.counters.sent_frames, 1)
    pack_enter(p, PK_TAKEN)
    settle_sent(pool, p)


cdef void _written(ConnectionPool* pool, Connection* conn, Pack* p, int64_t end, int64_t now_us) noexcept nogil:
    list_remove(&conn.queue, p)
    conn.queue_bytes -= <int64_t>p.frame_n
    relaxed_add(&pool.unwritten, -1)
    conn.head_sent = 0
    if pool.config.ack == ACK_NONE:
        _sent(pool, conn, p)
        return
    attempt_made(pool, p, conn)
    conn.owed += 1
    p.sent_us = now_us
    p.written_us = now_us
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


cdef void sendq_cut(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    """Count the first frame as written although its last bytes are not: the peer has answered it, and reads no more.

    The caller closes the connection, on which the rest of the frame must not be missed by what follows.
    """
    dp_assert(conn.queue.head != NULL and conn.head_sent > 0, "a frame is partly written: head_sent=%zu",
              conn.head_sent)
    _written(pool, conn, conn.queue.head, conn.counters.sent_bytes, now_us)
    relaxed_store(&conn.counters.waiting, conn.queue.n)
    relaxed_store(&conn.counters.in_flight, conn.flight.n)


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
            if pool.in_turn:
                conn.owed = 1
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
    sendq_shake(pool, conn)
