"""The loop of a consumer: it connects, reads and writes as its connections say, without the GIL.

Locality: its own thread, except where a function says otherwise.  Locks: none of its own; the exchange's are taken
where something is handed over.
"""

from libc.errno cimport ETIMEDOUT
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset, strcmp

from dataproxy._core.base.clock cimport system_clock
from dataproxy._core.base.forks cimport forks_unwatch, forks_watch
from dataproxy._core.base.blocks cimport blocks_drop
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_SYSTEM, ST_WANT_READ, ST_WANT_WRITE
from dataproxy._core.consumer.exchange cimport (
    Command, Peer, exchange_close, exchange_commands, exchange_end, exchange_open,
)
from dataproxy._core.consumer.fetch cimport (
    FetchHooks, fetch_advance, fetch_call_ended, fetch_command, fetch_due, fetch_end, fetch_free, fetch_lost,
    fetch_open,
)
from dataproxy._core.consumer.connection cimport (
    CF_CLOSED, CF_CONNECT, CF_LOST, CF_MEMORY, CF_PROTOCOL, CF_TIMEOUT, CS_CONNECTING, CS_OPEN, CS_WANTED,
    PendingCall, connection_connected, connection_due, connection_free, connection_lost, connection_open,
    connection_take,
)
from dataproxy._core.net.poller cimport (
    POLL_HANGUP, POLL_READ, POLL_WRITE, PollEvent, poller_add, poller_close, poller_open, poller_remove, poller_set,
    poller_wait, wakeup_clear, wakeup_watch,
)
from dataproxy._core.net.recvbuf cimport (
    recvbuf_consume, recvbuf_data, recvbuf_filled, recvbuf_free, recvbuf_init, recvbuf_rest, recvbuf_room,
)
from dataproxy._core.net.tls cimport transport_tls
from dataproxy._core.net.tlsholder cimport holder_leave
from dataproxy._core.net.transport cimport transport_init, transport_tcp
from dataproxy._core.plat.atomic cimport atomic_load, atomic_store, relaxed_add
from dataproxy._core.plat.socket cimport close, iovec
from dataproxy._core.wire.tubemq.const cimport PAYLOAD_MOST
from dataproxy._core.wire.tubemq.frame cimport frame_heads
from dataproxy._core.wire.tubemq.rpc cimport Answer

cdef enum:
    ROUND_EVENTS = 64
    READ_CHUNK = 65536
    READS_A_ROUND = 64          # of one connection, then others are served: four megabytes
    KEPT_BYTES = 1048576        # of an empty receive buffer


cdef int loop_open(Loop* p, Slice client, Slice group, TlsHolder* tls) noexcept nogil:
    """Make a loop that is ready to run; limits are filled by the caller.  A user of ``tls`` is the loop's from now on.

    Locality: its creator.  ST_OK, ST_NO_MEMORY or ST_SYSTEM; after a failure ``loop_free`` follows.
    """
    cdef FetchHooks hooks
    cdef int status
    memset(p, 0, sizeof(Loop))
    p.poller.epfd = -1
    p.clock = system_clock()
    p.transport = transport_tcp() if tls == NULL else transport_tls()
    p.tls = tls
    hooks.context = p
    hooks.connection = _connection
    status = exchange_open(&p.exchange)
    if status == ST_OK:
        status = fetch_open(&p.fetch, &p.exchange, client, group, &hooks)
    if status == ST_OK:
        status = poller_open(&p.poller)
    if status == ST_OK:
        status = wakeup_watch(&p.exchange.loop, &p.poller, &p.exchange.loop)
    if status == ST_OK:
        forks_watch(&p.at_fork, _disown, p)
    return status


cdef void loop_retire(Loop* p) noexcept nogil:
    """Close the epoll set; the thread has ended.  Locality: who joined it."""
    forks_unwatch(&p.at_fork)
    poller_close(&p.poller)


cdef void loop_free(Loop* p) noexcept nogil:
    """Release everything; the thread has ended.  Locality: the last user."""
    cdef Channel* c = p.newest
    cdef Channel* following
    loop_retire(p)
    fetch_free(&p.fetch)
    while c != NULL:
        following = c.next
        if c.open:
            c.transport.ops.close(&c.transport)
        recvbuf_free(&c.received)
        connection_free(&c.connection)
        free(c)
        c = following
    exchange_close(&p.exchange)
    holder_leave(p.tls)
    blocks_drop()


cdef void _call_ended(
    void* context, Connection* conn, const PendingCall* call, const Answer* answer, int fault, int detail,
) noexcept nogil:
    cdef Loop* p = <Loop*>context
    fetch_call_ended(&p.fetch, conn, call, answer, fault, detail, p.clock.now_us(), p.clock.wall_ms())


cdef Connection* _connection(void* context, const Peer* peer) noexcept nogil:
    """Return the connection to a server, which is made if it is not known; NULL without memory."""
    cdef Loop* p = <Loop*>context
    cdef Channel* c = p.newest
    while c != NULL:
        if (c.connection.peer.n == peer.address.n and strcmp(c.connection.name, peer.name) == 0
                and memcmp(&c.connection.peer.raw, &peer.address.raw, peer.address.n) == 0):
            return &c.connection
        c = c.next
    c = <Channel*>calloc(1, sizeof(Channel))
    if c == NULL:
        return NULL
    memcpy(&c.connection.peer, &peer.address, sizeof(peer.address))
    memcpy(c.connection.label, peer.label, sizeof(peer.label))
    memcpy(c.connection.name, peer.name, sizeof(peer.name))
    c.connection.family = peer.family
    connection_open(&c.connection, _call_ended, p)
    transport_init(&c.transport, p.transport)
    recvbuf_init(&c.received, PAYLOAD_MOST + frame_heads(PAYLOAD_MOST) + READ_CHUNK)
    c.next = p.newest
    atomic_store(<int64_t*>&p.newest, <int64_t>c)
    return &c.connection


cdef void _close_channel(Loop* p, Channel* c) noexcept nogil:
    if c.open:
        poller_remove(&p.poller, &c.transport)
        c.transport.ops.close(&c.transport)
        recvbuf_free(&c.received)
        c.open = False


cdef void _lose(Loop* p, Channel* c, int fault, int detail) noexcept nogil:
    cdef int64_t now_us = p.clock.now_us()
    _close_channel(p, c)
    connection_lost(&c.connection, fault, detail, now_us)
    if fault != CF_CLOSED:
        fetch_lost(&p.fetch, &c.connection, now_us)


cdef void _await(Loop* p, Channel* c, int want) noexcept nogil:
    if c.open and want != c.interest:
        c.interest = want
        poller_set(&p.poller, &c.transport, c, want)


cdef void _connect(Loop* p, Channel* c) noexcept nogil:
    cdef int status
    transport_init(&c.transport, p.transport)
    c.transport.context = p.tls
    c.transport.name = c.connection.name
    c.transport.label = c.connection.label
    c.connection.state = CS_CONNECTING
    c.connection.connect_until_us = p.clock.now_us() + p.connect_us
    relaxed_add(&p.connects, 1)
    if c.transport.ops.open(&c.transport, c.connection.family, NULL) != ST_OK:
        _lose(p, c, CF_CONNECT, c.transport.error)
        return
    c.open = True
    c.interest = POLL_WRITE
    status = c.transport.ops.start(&c.transport, &c.connection.peer)
    if status != ST_OK and status != ST_WANT_WRITE:
        _lose(p, c, CF_CONNECT, c.transport.error)
    elif poller_add(&p.poller, &c.transport, c, POLL_WRITE) != ST_OK:
        _lose(p, c, CF_CONNECT, p.poller.error)


cdef void _finish_connect(Loop* p, Channel* c, bint hung_up) noexcept nogil:
    cdef int status = c.transport.ops.finish(&c.transport)
    if (status == ST_WANT_WRITE or status == ST_WANT_READ) and not hung_up:
        _await(p, c, POLL_READ if status == ST_WANT_READ else POLL_WRITE)
    elif status != ST_OK:
        _lose(p, c, CF_CONNECT, c.transport.error)
    else:
        connection_connected(&c.connection)
        _write(p, c)


cdef void _write(Loop* p, Channel* c) noexcept nogil:
    cdef Connection* conn = &c.connection
    cdef iovec part
    cdef size_t sent
    cdef int status = ST_OK
    while conn.out_at < conn.out.n or c.transport.unsent:
        part.iov_base = conn.out.p + conn.out_at
        part.iov_len = conn.out.n - conn.out_at
        sent = 0
        status = c.transport.ops.send(&c.transport, &part, 1 if part.iov_len else 0, &sent)
        conn.out_at += sent
        relaxed_add(&p.sent_bytes, <int64_t>sent)
        if status != ST_OK:
            break
    if status != ST_OK and status != ST_WANT_WRITE and status != ST_WANT_READ:
        _lose(p, c, CF_LOST, c.transport.error if status == ST_SYSTEM else 0)
        return
    if conn.out_at == conn.out.n:
        conn.out_at = conn.out.n = 0
    _await(p, c, POLL_READ | POLL_WRITE if conn.out.n or c.transport.unsent else POLL_READ)


cdef void _read(Loop* p, Channel* c) noexcept nogil:
    cdef uint8_t* at = NULL
    cdef Slice data
    cdef size_t room = 0, got, used = 0
    cdef int status, rounds = READS_A_ROUND
    while rounds > 0:
        rounds -= 1
        status = recvbuf_room(&c.received, READ_CHUNK, &at, &room)
        if status != ST_OK:
            _lose(p, c, CF_MEMORY if status == ST_NO_MEMORY else CF_PROTOCOL, 0)
            return
        got = 0
        status = c.transport.ops.recv(&c.transport, at, room, &got)
        if status == ST_WANT_READ or status == ST_WANT_WRITE:
            break
        if status != ST_OK:
            _lose(p, c, CF_LOST, c.transport.error if status == ST_SYSTEM else 0)
            return
        recvbuf_filled(&c.received, got)
        relaxed_add(&p.read_bytes, <int64_t>got)
        data = recvbuf_data(&c.received)
        status = connection_take(&c.connection, <uint8_t*>data.p, data.n, p.clock.now_us(), &used)
        recvbuf_consume(&c.received, used)
        if status != ST_OK:
            _lose(p, c, CF_PROTOCOL, 0)
            return
        if got < room and not c.transport.more:
            break
    recvbuf_rest(&c.received, KEPT_BYTES)


cdef void _serve(Loop* p, const PollEvent* ready) noexcept nogil:
    cdef Channel* c = <Channel*>ready.tag
    if c.connection.state == CS_CONNECTING:
        _finish_connect(p, c, ready.ready & POLL_HANGUP != 0)
        return
    if ready.ready & (POLL_READ | POLL_HANGUP):
        _read(p, c)
    if ready.ready & POLL_WRITE and c.connection.state == CS_OPEN:
        _write(p, c)


cdef void _work_on_channels(Loop* p, int64_t now) noexcept nogil:
    """Connect where calls wait, write what was made, and end what is too late."""
    cdef Channel* c = p.newest
    cdef int64_t due
    while c != NULL:
        due = connection_due(&c.connection)
        if 0 <= due <= now:
            if c.connection.state == CS_CONNECTING:
                _lose(p, c, CF_CONNECT, ETIMEDOUT)
            else:
                _lose(p, c, CF_TIMEOUT, 0)
        if c.connection.state == CS_WANTED:
            _connect(p, c)
        elif c.connection.state == CS_OPEN and c.connection.out_at < c.connection.out.n:
            _write(p, c)
        c = c.next


cdef int64_t _timeout_us(Loop* p, int64_t now) noexcept nogil:
    cdef int64_t due = fetch_due(&p.fetch, now)
    cdef int64_t other
    cdef Channel* c = p.newest
    while c != NULL:
        other = connection_due(&c.connection)
        if other >= 0 and (due < 0 or other < due):
            due = other
        c = c.next
    if due < 0:
        return -1
    return due - now if due > now else 0


cdef bint _take_commands(Loop* p) noexcept nogil:
    cdef bint stop = False
    cdef Command* c = exchange_commands(&p.exchange, &stop)
    cdef Command* following
    while c != NULL:
        following = c.next
        fetch_command(&p.fetch, c, p.clock.now_us())
        c = following
    return not stop


cdef bint loop_round(Loop* p, const PollEvent* ready, int n) noexcept nogil:
    """Act on the events of one wait, on commands and on time; False if the loop has to end."""
    cdef bint going
    cdef int i
    cdef int64_t now
    for i in range(n):
        if ready[i].tag == &p.exchange.loop:
            wakeup_clear(&p.exchange.loop)
        else:
            _serve(p, &ready[i])
    going = _take_commands(p)
    now = p.clock.now_us()
    fetch_advance(&p.fetch, now)
    _work_on_channels(p, now)
    return going


cdef void loop_run(Loop* p) noexcept nogil:
    """Run until ``exchange_stop``.  The thread blocks only in epoll_wait."""
    cdef PollEvent ready[ROUND_EVENTS]
    cdef Channel* c
    cdef bint going = True
    cdef int n
    while going:
        n = poller_wait(&p.poller, ready, ROUND_EVENTS, _timeout_us(p, p.clock.now_us()))
        going = loop_round(p, ready, max(n, 0))
    fetch_end(&p.fetch)
    c = p.newest
    while c != NULL:
        _lose(p, c, CF_CLOSED, 0)
        c = c.next
    exchange_end(&p.exchange)


cdef void _drop_fd(int* fd) noexcept nogil:
    if fd[0] >= 0:
        close(fd[0])
        fd[0] = -1


cdef void _disown(void* loop) noexcept nogil:
    """Close the inherited copies of a loop's descriptors, and change nothing else.

    Locality: the forked child's only thread, in the hook of fork().
    """
    cdef Loop* p = <Loop*>loop
    cdef Channel* c = <Channel*>atomic_load(<int64_t*>&p.newest)
    _drop_fd(&p.poller.epfd)
    _drop_fd(&p.exchange.loop.fd)
    _drop_fd(&p.exchange.aio.fd)
    while c != NULL:
        if c.transport.ops == transport_tcp() or c.transport.ops == transport_tls():
            _drop_fd(&c.transport.fd)
        c = c.next
