"""One executor: the loop that reads and writes sockets as ``conn`` decides.

Only ``executor_post``, ``executor_drop``, ``executor_ask_tick``, ``executor_wake``, ``executor_set_proxies`` and
``executor_stop`` may be called by other threads.  They put something into the inbox and wake the loop.

Locks: none, except where a function says otherwise.
"""

from libc.errno cimport ENOMEM
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.clock cimport system_clock
from dataproxy._core.base.forks cimport forks_unwatch, forks_watch
from dataproxy._core.base.rand cimport rand_next
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_SYSTEM, ST_WANT_READ, ST_WANT_WRITE
from dataproxy._core.base.timers cimport timers_next
from dataproxy._core.conn.clusters cimport lists_copy, lists_free
from dataproxy._core.conn.connection cimport (
    LC_CLOSED, LC_ENCODE, CE_CONNECT_FAILED, CE_HANDSHAKE, CE_LOST, CE_PROTOCOL, CF_CLOSE, CF_CONNECT, CF_LOOK,
    CF_WRITE, CS_ACTIVE, CS_CONNECTING, OUT_REASONS, SWAP_REASONS, Connection, ConnectionConfig, ConnectionCounters,
    ConnectionPool, ProxyLists,
)
from dataproxy._core.conn.framing cimport FrameRules, frame_pack
from dataproxy._core.conn.keyqueues cimport key_queues_advance
from dataproxy._core.conn.retry cimport retry_yield
from dataproxy._core.conn.pool cimport (
    connections_abort, connections_connected, connections_endpoints, connections_expire, connections_free,
    connections_looked, connections_lost, connections_open, connections_shaking,
    connections_submit, connections_take_dirty,
)
from dataproxy._core.conn.replies cimport foreign_protocol, take_bytes
from dataproxy._core.conn.sendq cimport sendq_gather, sendq_waits, sendq_wrote
from dataproxy._core.conn.settle cimport settle_dropped, settle_failed
from dataproxy._core.net.poller cimport (
    POLL_HANGUP, POLL_READ, POLL_WRITE, PollEvent, poller_add, poller_close, poller_open, poller_remove, poller_set,
    poller_wait, wakeup_called, wakeup_clear, wakeup_close, wakeup_open, wakeup_poll, wakeup_rest, wakeup_signal,
    wakeup_watch,
)
from dataproxy._core.net.recvbuf cimport (
    recvbuf_consume, recvbuf_data, recvbuf_filled, recvbuf_free, recvbuf_init, recvbuf_room,
)
from dataproxy._core.net.tls cimport TLS_UNANSWERED, TLS_UNFINISHED, transport_tls
from dataproxy._core.net.tlsholder cimport TlsHolder, holder_join, holder_leave
from dataproxy._core.net.transport cimport transport_init, transport_tcp
from dataproxy._core.pack.pack cimport (
    CL_DROPPED, OUT_FAILED, PK_POSTED, PK_TAKEN, Pack, PackList, PackPool, list_pop, list_push, pack_enter, pool_give,
)
from dataproxy._core.pack.settled cimport settled_tell
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, atomic_store, relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.plat.clock cimport pause_us
from dataproxy._core.plat.sched cimport sched_slice, sched_yield
from dataproxy._core.plat.socket cimport close, iovec
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from dataproxy._core.wire.api cimport WireOps

cdef enum:
    ROUND_EVENTS = 64
    GATHER = 1024                   # parts of one sendmsg: a frame, or the pieces around and of its held bodies
    GATHER_BYTES = 4194304
    WRITES_A_ROUND = 8              # after these, other connections and the inbox are served
    ENCRYPTED_BYTES = 524288        # of one write with TLS, after which answers are read: it takes half a millisecond
    READ_CHUNK = 16384
    READS_A_ROUND = 16
    CROWD = 256                     # answers that are awaited, from which on some are gathered
    GATHER_US = 1000                # for so long
    SLICE_NS = 100000               # shorter than the kernel's default: a sealed pack is sent while it is in the cache


cdef int executor_open(
    Executor* e, int index, const WireOps* wire, const ConnectionConfig* config, const FrameRules* rules,
    PackPool* spares, const ExecutorHooks* hooks, bint sheds, bint nagle, int64_t wall_offset_ms, TlsHolder* tls,
) noexcept nogil:
    """Make an executor that is ready to run; ST_OK, ST_NO_MEMORY or ST_SYSTEM.  Locality: its creator.

    ``sheds``: senders may give up packs that they posted (``executor_drop``).  ``tls``: settings for all connections;
    NULL: they are plain.
    """
    memset(e, 0, sizeof(Executor))
    e.index = index
    memcpy(&e.rules, rules, sizeof(FrameRules))
    e.rules.wall_offset_ms = wall_offset_ms
    memcpy(&e.hooks, hooks, sizeof(ExecutorHooks))
    e.spares = spares
    e.options.nagle = nagle
    e.tick_due_us = -1
    e.transport = transport_tcp() if tls == NULL else transport_tls()
    e.clock = system_clock()
    pthread_mutex_init(&e.lock, NULL)
    pthread_mutex_init(&e.registry, NULL)
    if connections_open(&e.pool, wire, config, hooks.event, hooks.context) != ST_OK:
        return ST_NO_MEMORY
    e.pool.wall_offset_ms = wall_offset_ms
    e.pool.rules = &e.rules
    e.pool.spares = spares
    e.pool.sheds = sheds
    e.pool.unknown = hooks.unknown
    e.pool.unknown_bytes = hooks.unknown_bytes
    e.pool.unknown_most = hooks.unknown_most
    if poller_open(&e.poller) != ST_OK:
        connections_free(&e.pool)
        return ST_SYSTEM
    if wakeup_open(&e.wakeup) != ST_OK or wakeup_watch(&e.wakeup, &e.poller, &e.wakeup) != ST_OK:
        wakeup_close(&e.wakeup)
        poller_close(&e.poller)
        connections_free(&e.pool)
        return ST_SYSTEM
    e.tls = holder_join(tls)
    forks_watch(&e.at_fork, _disown, e)
    return ST_OK


cdef void executor_seed(Executor* e, uint64_t seed) noexcept nogil:
    """Seed the random choices of connections and the jitter of waits.  Locality: its creator."""
    e.pool.random = seed
    rand_next(&e.pool.random)           # the first numbers of neighbouring seeds are alike
    rand_next(&e.pool.random)
    e.pool.cursor = <uint32_t>rand_next(&e.pool.random)


cdef void executor_retire(Executor* e) noexcept nogil:
    """Close the descriptors; the thread has ended, and nobody posts any more, but may still wake.

    Locality: its creator.
    """
    forks_unwatch(&e.at_fork)
    wakeup_close(&e.wakeup)
    poller_close(&e.poller)


cdef void executor_free(Executor* e) noexcept nogil:
    """Release everything, posted packs too; the thread has ended.  Locality: its creator."""
    cdef Pack* p = list_pop(&e.inbox)
    cdef int i
    while p != NULL:
        pool_give(e.spares, p)
        p = list_pop(&e.inbox)
    executor_retire(e)
    for i in range(e.n_channels):
        if e.channels[i].open:
            e.channels[i].transport.ops.close(&e.channels[i].transport)
        recvbuf_free(&e.channels[i].received)
        free(e.channels[i])
    holder_leave(e.tls)
    free(e.channels)
    lists_free(&e.new_lists)
    connections_free(&e.pool)
    pthread_mutex_destroy(&e.lock)
    pthread_mutex_destroy(&e.registry)


cdef void executor_post(Executor* e, Pack* p) noexcept nogil:
    """Hand over a sealed pack; ``executor_wake`` follows, best without a lock.  Locality: any.  Locks: takes lock."""
    pack_enter(p, PK_POSTED)
    atomic_add(&e.posted, 1)
    pthread_mutex_lock(&e.lock)
    list_push(&e.inbox, p)
    pthread_mutex_unlock(&e.lock)


cdef void executor_wake(Executor* e) noexcept nogil:
    """Let the loop look at its inbox.  Locality: any thread.  Locks: none."""
    wakeup_signal(&e.wakeup)


cdef void executor_drop(Executor* e, Pack* p) noexcept nogil:
    """Ask for the release of ``p``, posted here and given up by a sender.  Locality: any thread.  Locks: takes lock."""
    p.dropped_next = NULL
    pthread_mutex_lock(&e.lock)
    if e.dropped == NULL:
        e.dropped = p
    else:
        e.last_dropped.dropped_next = p
    e.last_dropped = p
    pthread_mutex_unlock(&e.lock)
    wakeup_signal(&e.wakeup)


cdef void executor_ask_tick(Executor* e) noexcept nogil:
    """Ask for an early call of ``hooks.tick``; ``executor_wake`` follows.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&e.lock)
    e.tick_asked = True
    pthread_mutex_unlock(&e.lock)


cdef void executor_ask_yield(Executor* e) noexcept nogil:
    """Ask it to give up packs of unknown streams that hold more than their share; ``executor_wake`` follows.

    Locality: any thread.  Locks: takes lock.
    """
    pthread_mutex_lock(&e.lock)
    e.yield_asked = True
    pthread_mutex_unlock(&e.lock)


cdef int executor_set_proxies(Executor* e, const ProxyLists* lists) noexcept nogil:
    """Give new lists of proxies, which are copied; ST_OK or ST_NO_MEMORY.  Locality: any thread.  Locks: takes lock."""
    cdef ProxyLists copy
    if lists_copy(&copy, lists) != ST_OK:
        return ST_NO_MEMORY
    pthread_mutex_lock(&e.lock)
    lists_free(&e.new_lists)
    memcpy(&e.new_lists, &copy, sizeof(ProxyLists))
    e.has_lists = True
    pthread_mutex_unlock(&e.lock)
    wakeup_signal(&e.wakeup)
    return ST_OK


cdef void executor_stop(Executor* e) noexcept nogil:
    """End the loop; packs still pending fail with LC_CLOSED.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&e.lock)
    e.stop_asked = True
    pthread_mutex_unlock(&e.lock)
    wakeup_signal(&e.wakeup)


cdef void _close_channel(Executor* e, Connection* conn) noexcept nogil:
    cdef Channel* c
    if conn.index >= e.n_channels:      # no memory was left for its channel
        return
    c = e.channels[conn.index]
    if c.open:
        poller_remove(&e.poller, &c.transport)
        c.transport.ops.close(&c.transport)
        recvbuf_free(&c.received)
        c.open = False


cdef void _lose(Executor* e, Connection* conn, int event, int detail) noexcept nogil:
    _close_channel(e, conn)
    connections_lost(&e.pool, conn, event, detail, e.clock.now_us())


cdef void _watch(Executor* e, Connection* conn) noexcept nogil:
    """Tell epoll what the connection waits for now."""
    cdef Channel* c = e.channels[conn.index]
    cdef int want = POLL_READ
    if conn.state == CS_CONNECTING:
        want = POLL_WRITE
    elif not sendq_waits(&e.pool, conn) or c.transport.unsent:
        want = POLL_READ | POLL_WRITE
    if c.open:
        _await(e, conn, want)


cdef void _await(Executor* e, Connection* conn, int want) noexcept nogil:
    cdef Channel* c = e.channels[conn.index]
    if want != c.interest:
        c.interest = want
        poller_set(&e.poller, &c.transport, conn, want)


cdef int _grow_channels(Executor* e) noexcept nogil:
    """Make a channel for each new connection, as the connection table may have grown; ST_OK or ST_NO_MEMORY."""
    cdef Channel** grown
    if e.n_channels >= e.pool.n_connections:
        return ST_OK
    grown = <Channel**>realloc(e.channels, <size_t>e.pool.n_connections * sizeof(Channel*))
    if grown == NULL:
        return ST_NO_MEMORY
    e.channels = grown
    while e.n_channels < e.pool.n_connections:
        e.channels[e.n_channels] = <Channel*>calloc(1, sizeof(Channel))
        if e.channels[e.n_channels] == NULL:
            return ST_NO_MEMORY
        transport_init(&e.channels[e.n_channels].transport, e.transport)
        e.channels[e.n_channels].next = e.newest
        atomic_store(<int64_t*>&e.newest, <int64_t>e.channels[e.n_channels])
        e.n_channels += 1
    return ST_OK


cdef void _connect(Executor* e, Connection* conn) noexcept nogil:
    cdef Channel* c
    cdef int status
    dp_assert(conn.state == CS_CONNECTING, "a connection that is asked for is connecting: state=%d, connection=%d",
              conn.state, conn.index)
    if _grow_channels(e) != ST_OK:
        connections_lost(&e.pool, conn, CE_CONNECT_FAILED, ENOMEM, e.clock.now_us())
        return
    c = e.channels[conn.index]
    transport_init(&c.transport, e.transport)
    c.transport.context = e.tls
    c.transport.name = conn.peer.name
    c.transport.label = conn.peer.label
    recvbuf_init(&c.received, e.pool.config.max_reply + READ_CHUNK)
    if c.transport.ops.open(&c.transport, conn.peer.family, &e.options) != ST_OK:
        connections_lost(&e.pool, conn, CE_CONNECT_FAILED, c.transport.error, e.clock.now_us())
        return
    c.open = True
    c.interest = POLL_WRITE
    status = c.transport.ops.start(&c.transport, &conn.peer.address)
    if status != ST_OK and status != ST_WANT_WRITE:
        _lose(e, conn, CE_CONNECT_FAILED, c.transport.error)
        return
    if poller_add(&e.poller, &c.transport, conn, POLL_WRITE) != ST_OK:
        _lose(e, conn, CE_CONNECT_FAILED, c.transport.error)
        return
    if status == ST_OK:
        connections_connected(&e.pool, conn, e.clock.now_us())


cdef void _finish_connect(Executor* e, Connection* conn, bint hung_up) noexcept nogil:
    cdef Channel* c = e.channels[conn.index]
    cdef int status = c.transport.ops.finish(&c.transport)
    if (status == ST_WANT_WRITE or status == ST_WANT_READ) and not hung_up:
        _await(e, conn, POLL_READ if status == ST_WANT_READ else POLL_WRITE)
        if _handshake_fault(e, conn):
            connections_shaking(&e.pool, conn, e.clock.now_us())
        return                      # the handshake is not complete; connect_timeout bounds it
    if status != ST_OK:
        _lose(e, conn, CE_CONNECT_FAILED, c.transport.error)
        return
    connections_connected(&e.pool, conn, e.clock.now_us())
    _watch(e, conn)


cdef void _read(Executor* e, Connection* conn) noexcept nogil:
    cdef Channel* c = e.channels[conn.index]
    cdef uint8_t* p = NULL
    cdef Slice data
    cdef size_t room = 0, got, used = 0
    cdef int status, rounds = READS_A_ROUND
    dp_assert(c.open, "an open channel is read: connection=%d, state=%d", conn.index, conn.state)
    while rounds > 0:
        rounds -= 1
        if recvbuf_room(&c.received, READ_CHUNK, &p, &room) != ST_OK:
            _lose(e, conn, CE_LOST, 0)
            return
        got = 0
        status = c.transport.ops.recv(&c.transport, p, room, &got)
        if status == ST_WANT_READ or status == ST_WANT_WRITE:
            break
        if status != ST_OK:
            _lose(e, conn, CE_LOST, c.transport.error if status == ST_SYSTEM else 0)
            return
        recvbuf_filled(&c.received, got)
        relaxed_add(&conn.counters.read_bytes, <int64_t>got)
        data = recvbuf_data(&c.received)
        status = take_bytes(&e.pool, conn, data.p, data.n, e.clock.now_us(), &used)
        if status != ST_OK:
            _lose(e, conn, CE_PROTOCOL, foreign_protocol(&e.pool, slice_of(data.p + used, data.n - used)))
            return
        dp_assert(used <= data.n, "used <= data.n: used=%zu, data.n=%zu", used, data.n)
        recvbuf_consume(&c.received, used)
        if got < room and not c.transport.more:     # all was read; level-triggered epoll reports later bytes
            break
    if c.transport.unsent:
        _watch(e, conn)


cdef void _write(Executor* e, Connection* conn) noexcept nogil:
    cdef Channel* c = e.channels[conn.index]
    cdef iovec parts[GATHER]
    cdef size_t sent
    cdef size_t most = GATHER_BYTES if e.tls == NULL else ENCRYPTED_BYTES
    cdef int n, status, rounds = WRITES_A_ROUND if e.tls == NULL else 1
    while rounds > 0 and conn.state == CS_ACTIVE and c.open:
        rounds -= 1
        n = sendq_gather(&e.pool, conn, parts, GATHER, most)
        if n == 0 and not c.transport.unsent:
            break
        sent = 0
        status = c.transport.ops.send(&c.transport, parts, n, &sent)
        sendq_wrote(&e.pool, conn, sent, e.clock.now_us())      # with TLS, records may have gone before a failure
        if status == ST_WANT_WRITE or status == ST_WANT_READ:
            break
        if status != ST_OK:
            _lose(e, conn, CE_LOST, c.transport.error)
            return
    _watch(e, conn)


cdef void _look(Executor* e, Connection* conn) noexcept nogil:
    # Bytes that wait in the socket count as received: after a pause of this thread they may not have been read yet.
    cdef Channel* c = e.channels[conn.index]
    _read(e, conn)
    if conn.state == CS_ACTIVE and not conn.flags & CF_CLOSE:
        connections_looked(&e.pool, conn, c.transport.ops.held(&c.transport), e.clock.now_us())


cdef int _handshake_fault(const Executor* e, const Connection* conn) noexcept nogil:
    """Return what is known about a connect that takes long: 0, or how far the peer has answered the handshake."""
    cdef int error = e.channels[conn.index].transport.error if conn.index < e.n_channels else 0
    return error if error == TLS_UNANSWERED or error == TLS_UNFINISHED else 0


cdef void _tell_handshake(Executor* e, Connection* conn) noexcept nogil:
    """Tell that a handshake takes long, if one is under way."""
    cdef int detail = _handshake_fault(e, conn)
    if detail:
        e.pool.event(e.pool.event_context, CE_HANDSHAKE, conn.peer.label, detail, slice_of(NULL, 0))


cdef void _work_on_connections(Executor* e) noexcept nogil:
    """Do the work that ``Connection.flags`` ask for: closes first, then connects, then writes and looks."""
    cdef Connection* conn = connections_take_dirty(&e.pool)
    cdef int flags, event, detail
    while conn != NULL:
        flags = conn.flags
        conn.flags = 0
        if flags & CF_CLOSE:
            event = conn.close_event
            detail = conn.close_detail
            conn.close_event = 0
            conn.close_detail = 0
            if event == CE_CONNECT_FAILED and detail == 0:
                detail = _handshake_fault(e, conn)
            _lose(e, conn, event, detail)
        elif flags & CF_CONNECT:
            _connect(e, conn)
        else:
            if flags & CF_WRITE and conn.state == CS_ACTIVE:
                _write(e, conn)
            if flags & CF_LOOK and conn.state == CS_ACTIVE:
                _look(e, conn)
            elif flags & CF_LOOK and conn.state == CS_CONNECTING:
                _tell_handshake(e, conn)
        conn = connections_take_dirty(&e.pool)


cdef void _submit(Executor* e, Pack* p, int64_t now) noexcept nogil:
    pack_enter(p, PK_TAKEN)
    if e.pool.sheds and atomic_load(&p.claim) == CL_DROPPED:
        return                          # in no list; it comes again through executor_drop
    if frame_pack(e.pool.wire, &e.rules, e.spares, p) != ST_OK:
        settle_failed(&e.pool, p, OUT_FAILED, LC_ENCODE)
        return
    connections_submit(&e.pool, p, now)


cdef void _take_lists(Executor* e, ProxyLists* lists, int64_t now) noexcept nogil:
    # Locks: takes registry, because the connection table may grow while statistics are read.
    pthread_mutex_lock(&e.registry)
    connections_endpoints(&e.pool, lists, now)
    pthread_mutex_unlock(&e.registry)
    lists_free(lists)


cdef bint _take_inbox(Executor* e) noexcept nogil:
    """Act on what other threads put into the inbox; False if the loop has to end.  Locks: takes lock."""
    cdef bint gives_way
    cdef PackList packs
    cdef Pack* p
    cdef Pack* dropped
    cdef ProxyLists lists
    cdef bint tick, stop, listed
    cdef int64_t now, taken
    pthread_mutex_lock(&e.lock)
    packs = e.inbox
    taken = packs.n
    memset(&e.inbox, 0, sizeof(PackList))
    dropped = e.dropped
    e.dropped = NULL
    memcpy(&lists, &e.new_lists, sizeof(ProxyLists))
    memset(&e.new_lists, 0, sizeof(ProxyLists))
    listed = e.has_lists
    e.has_lists = False
    tick = e.tick_asked
    e.tick_asked = False
    stop = e.stop_asked
    gives_way = e.yield_asked
    e.yield_asked = False
    pthread_mutex_unlock(&e.lock)
    now = e.clock.now_us()
    if gives_way:
        retry_yield(&e.pool)
    if listed:
        _take_lists(e, &lists, now)
    p = list_pop(&packs)
    while p != NULL:
        _submit(e, p, now)
        p = list_pop(&packs)
    atomic_add(&e.posted, -taken)
    while dropped != NULL:
        p = dropped
        dropped = p.dropped_next
        settle_dropped(&e.pool, p)
    if tick:
        e.tick_due_us = now             # in this round, which then takes what the tick posts
    return not stop


cdef int64_t _timeout_us(const Executor* e, int64_t now) noexcept nogil:
    cdef int64_t due = timers_next(&e.pool.timers)
    if e.tick_due_us >= 0 and (due < 0 or e.tick_due_us < due):
        due = e.tick_due_us
    if due < 0:
        return -1
    return due - now if due > now else 0


cdef void _hand_over(Executor* e) noexcept nogil:
    settled_tell(&e.hooks.settled, &e.pool.settled)


cdef void _serve(Executor* e, const PollEvent* ready) noexcept nogil:
    cdef Connection* conn = <Connection*>ready.tag
    if conn.state == CS_CONNECTING:
        _finish_connect(e, conn, ready.ready & POLL_HANGUP != 0)
        return
    if ready.ready & (POLL_READ | POLL_HANGUP):
        _read(e, conn)
    if conn.flags & CF_CLOSE:       # a reply that was just read requires it: nothing more may be written there
        return
    if ready.ready & POLL_WRITE and conn.state == CS_ACTIVE and e.channels[conn.index].open:
        _write(e, conn)


cdef bint executor_round(Executor* e, const PollEvent* ready, int n) noexcept nogil:
    """Act on the events of one wait, on the inbox and on timers; False if the loop has to end.

    Locality: executor.  Locks: takes lock and registry, never both at once; the hooks take their own.
    """
    cdef bint going
    cdef int i
    cdef int64_t now
    for i in range(n):
        if ready[i].tag == &e.wakeup:
            wakeup_clear(&e.wakeup)
        else:
            _serve(e, &ready[i])
    going = _take_inbox(e)
    now = e.clock.now_us()
    pthread_mutex_lock(&e.registry)     # a connection may change its proxy
    connections_expire(&e.pool, now)
    pthread_mutex_unlock(&e.registry)
    if e.tick_due_us >= 0 and now >= e.tick_due_us:
        e.tick_due_us = e.hooks.tick(e.hooks.context, now)
        going = _take_inbox(e) and going
    key_queues_advance(&e.pool, now)
    _work_on_connections(e)
    while key_queues_advance(&e.pool, now):
        _work_on_connections(e)
    _hand_over(e)
    return going


cdef void executor_end(Executor* e) noexcept nogil:
    """Settle all remaining packs and close every connection.  Locality: executor.  Locks: the hooks take their own."""
    connections_abort(&e.pool, LC_CLOSED)
    _work_on_connections(e)
    _hand_over(e)


cdef int _busy_poll(Executor* e, PollEvent* ready) noexcept nogil:
    """Look for events for ``busy_poll`` without sleeping, at most until something is due; return their number.

    Other threads that want the core get it between two looks.
    """
    cdef int64_t now = e.clock.now_us()
    cdef int64_t until = now + e.busy_poll_us
    cdef int64_t timeout = _timeout_us(e, now)
    cdef int n
    if 0 <= timeout < e.busy_poll_us:
        until = now + timeout
    wakeup_poll(&e.wakeup)
    while True:
        n = max(poller_wait(&e.poller, ready, ROUND_EVENTS - 1, 0), 0)
        if n or wakeup_called(&e.wakeup) or e.clock.now_us() >= until:
            break
        sched_yield()
    if not wakeup_rest(&e.wakeup):
        ready[n].tag = &e.wakeup            # the signal may have written nothing
        ready[n].ready = POLL_READ
        n += 1
    return n


cdef inline bint _crowded(const Executor* e) noexcept nogil:
    """Tell whether so many answers are awaited that a moment's wait for several of them delays none noticeably.

    Only where each message is a frame of its own: there every answer would wake the thread up, and a wake-up costs more
    than all the rest of a message.
    """
    return e.pool.wire.place != NULL and e.pool.in_flight.n >= CROWD


cdef void executor_run(Executor* e) noexcept nogil:
    """Run until ``executor_stop``.  Locality: the executor's own thread, without the GIL.

    Locks: takes lock, only for the inbox; the hooks take their own.  The thread blocks only in epoll_wait, and in a
    short pause.
    """
    cdef PollEvent ready[ROUND_EVENTS]
    cdef bint going = True
    cdef int n
    sched_slice(SLICE_NS)
    while going:
        n = _busy_poll(e, ready) if e.busy_poll_us else 0
        if n == 0 and _crowded(e):
            pause_us(GATHER_US)
        if n == 0:
            n = poller_wait(&e.poller, ready, ROUND_EVENTS, _timeout_us(e, e.clock.now_us()))
        going = executor_round(e, ready, n)
    executor_end(e)


cdef void executor_count(Executor* e, ExecutorCounts* sums) noexcept nogil:
    """Add what the executor has counted to ``sums``.  Locality: any thread."""
    cdef ConnectionPool* pool = &e.pool
    cdef int i
    sums.retries += relaxed_load(&pool.retries)
    sums.held_back += relaxed_load(&pool.held_back)
    sums.unmatched += relaxed_load(&pool.unmatched)
    sums.duplicates += relaxed_load(&pool.duplicates)
    sums.copies += relaxed_load(&pool.copies)
    sums.known += relaxed_load(&pool.known)
    sums.differed += relaxed_load(&pool.differed)
    sums.filtered += relaxed_load(&pool.filtered)
    for i in range(OUT_REASONS):
        sums.outs[i] += relaxed_load(&pool.outs[i])
    sums.returns += relaxed_load(&pool.returns)
    for i in range(SWAP_REASONS):
        sums.swaps[i] += relaxed_load(&pool.swaps[i])


cdef int64_t executor_take_reach(Executor* e) noexcept nogil:
    """Return the shortest time in s that servers said to remember ids, since the last call; -1: none.

    Locality: one thread, with nothing in flight.
    """
    cdef int64_t reach = relaxed_load(&e.pool.reach)
    relaxed_store(&e.pool.reach, -1)
    return reach


cdef void _copy_connection(Connection* conn, ConnectionCopy* out) noexcept nogil:
    cdef ConnectionCounters* c = &conn.counters
    memcpy(out.label, conn.peer.label, sizeof(out.label))
    out.cluster = conn.peer.cluster
    out.counters.state = relaxed_load(&c.state)
    out.counters.sent_bytes = relaxed_load(&c.sent_bytes)
    out.counters.read_bytes = relaxed_load(&c.read_bytes)
    out.counters.sent_frames = relaxed_load(&c.sent_frames)
    out.counters.acked_frames = relaxed_load(&c.acked_frames)
    out.counters.waiting = relaxed_load(&c.waiting)
    out.counters.in_flight = relaxed_load(&c.in_flight)
    out.counters.unanswered = relaxed_load(&c.unanswered)
    out.counters.load = relaxed_load(&c.load)
    out.counters.connects = relaxed_load(&c.connects)
    out.counters.losses = relaxed_load(&c.losses)
    out.counters.standby = relaxed_load(&c.standby)
    out.counters.out = relaxed_load(&c.out)
    out.counters.answer_us = relaxed_load(&c.answer_us)


cdef ConnectionCopy* executor_connections(Executor* e, int* n) noexcept nogil:
    """Return copies of the counters of all ``n`` connections, which the caller frees; NULL without memory.

    Locality: any thread.  Locks: takes registry.
    """
    cdef ConnectionCopy* out
    cdef int i
    pthread_mutex_lock(&e.registry)
    n[0] = e.pool.n_connections
    out = <ConnectionCopy*>malloc(<size_t>(n[0] + 1) * sizeof(ConnectionCopy))
    if out != NULL:
        for i in range(n[0]):
            _copy_connection(e.pool.connections[i], &out[i])
    pthread_mutex_unlock(&e.registry)
    return out


cdef void _drop_fd(int* fd) noexcept nogil:
    if fd[0] >= 0:
        close(fd[0])
        fd[0] = -1


cdef void _disown(void* executor) noexcept nogil:
    """Close the inherited copies of an executor's descriptors, and change nothing else.

    Locality: the forked child's only thread, in the hook of fork().

    The connections continue in the parent.  So nothing is shut down, and nothing is removed from the epoll set, which
    both processes share.
    """
    cdef Executor* e = <Executor*>executor
    cdef Channel* c = <Channel*>atomic_load(<int64_t*>&e.newest)
    _drop_fd(&e.poller.epfd)
    _drop_fd(&e.wakeup.fd)
    while c != NULL:
        # The number of another kind may stand for something else.
        if c.transport.ops == transport_tcp() or c.transport.ops == transport_tls():
            _drop_fd(&c.transport.fd)
        c = c.next
