"""State of a server loop: inbox, queue bound, ending and closing of connections.

Locks: none, except where a function says otherwise.
"""

from libc.string cimport memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.status cimport ST_OK, ST_SYSTEM
from dataproxy._core.server.entries cimport entry_free_chain, ids_free, ids_init
from dataproxy._core.server.faults.table cimport held_free_all
from dataproxy._core.server.holders cimport (
    HOLDS_ANSWERS, HOLDS_FRAMES, Holding, HoldingKind, holders_free, holders_init, holders_leave, holders_payer,
    holders_set,
)
from dataproxy._core.server.session cimport (
    CLOSE_MEMORY, CLOSE_REPLIES, HOLD_ENDING, HOLD_QUEUE, session_free, session_source, session_unsent, session_watch,
    table_find, table_free, table_init, table_remove, table_touch,
)
from dataproxy._core.server.calls cimport call_free_chain
from dataproxy._core.server.peers cimport peers_end, peers_free, peers_init
from dataproxy._core.net.poller cimport (
    poller_close, poller_open, poller_remove, wakeup_close, wakeup_open, wakeup_signal,
)
from dataproxy._core.net.recvbuf cimport recvbuf_free, recvbuf_init
from dataproxy._core.plat.atomic cimport atomic_add, relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.plat.clock cimport now_us
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from dataproxy._core.wire.api cimport REQ_REPLY


cdef enum:
    LOAD_FULL = 65534


cdef int loop_init(ServerLoop* d, HubShared* shared) noexcept nogil:
    """Make a server loop that does not run yet.

    Locality: owner.
    """
    memset(d, 0, sizeof(ServerLoop))
    d.shared = shared
    d.poller.epfd = -1
    d.wakeup.fd = -1
    d.profile = shared.profile
    pthread_mutex_init(&d.mutex, NULL)
    table_init(&d.table)
    holders_init(&d.holders)
    peers_init(&d.peers)
    buf_init(&d.request.reply)
    buf_init(&d.request.entry)
    buf_init(&d.request.scratch)
    ids_init(&d.id_reader, shared.wire, shared.window_key)
    d.profile.borrow_body = d.id_reader.key == NULL     # ids are read from the whole entry
    recvbuf_init(&d.spare, 0)
    if poller_open(&d.poller) != ST_OK or wakeup_open(&d.wakeup) != ST_OK:
        return ST_SYSTEM
    return ST_OK


cdef void loop_free(ServerLoop* d) noexcept nogil:
    """Release everything, connections included.

    Locality: owner, after the loop and the committer have ended.
    """
    cdef Session* s
    while d.graves != NULL:
        s = d.graves
        d.graves = s.grave_next
        session_free(s)
    table_free(&d.table)
    holders_free(&d.holders)
    peers_free(&d.peers)
    entry_free_chain(d.inbox)
    entry_free_chain(d.chain)
    call_free_chain(d.called)
    held_free_all(d.delayed)
    d.inbox = NULL
    d.chain = NULL
    d.called = NULL
    d.delayed = NULL
    buf_free(&d.request.reply)
    buf_free(&d.request.entry)
    buf_free(&d.request.scratch)
    ids_free(&d.id_reader)
    recvbuf_free(&d.spare)
    loop_release(d)
    pthread_mutex_destroy(&d.mutex)


cdef void loop_release(ServerLoop* d) noexcept nogil:
    """Close the descriptors; the rest of the server loop can still be read.

    Locality: owner, after the loop and the committer have ended.
    """
    wakeup_close(&d.wakeup)
    poller_close(&d.poller)


cdef int64_t loop_clock(ServerLoop* d) noexcept nogil:
    """Return the server loop's time in microseconds, with the skew that tests may set.

    Locality: any thread.
    """
    return now_us() + relaxed_load(&d.shared.clock_skew_us)


cdef void loop_done(void* origin, Entry* chain) noexcept nogil:
    """Hand entries back to the server loop they came from.

    Locality: any thread.
    Locks: takes ServerLoop.mutex.
    """
    cdef ServerLoop* d = <ServerLoop*>origin
    cdef Entry* last = chain
    if chain == NULL:       # the committer has room again
        wakeup_signal(&d.wakeup)
        return
    while last.next != NULL:
        last = last.next
    pthread_mutex_lock(&d.mutex)
    if d.inbox == NULL:
        d.inbox = chain
    else:
        d.inbox_last.next = chain
    d.inbox_last = last
    pthread_mutex_unlock(&d.mutex)
    wakeup_signal(&d.wakeup)


cdef Entry* loop_take(ServerLoop* d) noexcept nogil:
    """Empty the inbox.

    Locality: server loop.
    Locks: takes ServerLoop.mutex.
    """
    cdef Entry* chain
    pthread_mutex_lock(&d.mutex)
    chain = d.inbox
    d.inbox = NULL
    d.inbox_last = NULL
    pthread_mutex_unlock(&d.mutex)
    return chain


cdef void loop_answered(void* origin, Call* call) noexcept nogil:
    """Hand an answered call back to the server loop it came from.

    Locality: any thread.
    Locks: takes ServerLoop.mutex.
    """
    cdef ServerLoop* d = <ServerLoop*>origin
    call.next = NULL
    pthread_mutex_lock(&d.mutex)
    if d.called == NULL:
        d.called = call
    else:
        d.called_last.next = call
    d.called_last = call
    pthread_mutex_unlock(&d.mutex)
    wakeup_signal(&d.wakeup)


cdef Call* loop_take_calls(ServerLoop* d) noexcept nogil:
    """Take the answered calls out of the inbox.

    Locality: server loop.
    Locks: takes ServerLoop.mutex.
    """
    cdef Call* chain
    pthread_mutex_lock(&d.mutex)
    chain = d.called
    d.called = NULL
    d.called_last = NULL
    pthread_mutex_unlock(&d.mutex)
    return chain


cdef bint is_compat(const ServerLoop* d, const Session* s) noexcept nogil:
    """Tell whether the session's listener copies the reference server.

    Locality: server loop.
    """
    return relaxed_load(&d.shared.listeners[s.listener].compat) != 0


cdef void take_profile(ServerLoop* d, Session* s) noexcept nogil:
    """Judge requests from now on by the settings of the session's listener.

    Locality: server loop.
    """
    cdef Listener* listener = &d.shared.listeners[s.listener]
    cdef int64_t load = relaxed_load(&listener.load)
    if load == LOAD_QUEUE:
        load = relaxed_load(&d.queued_bytes) * LOAD_FULL // d.shared.queue_bytes
        if load > LOAD_FULL:
            load = LOAD_FULL
    d.profile.load = <int>load
    d.profile.compat = relaxed_load(&listener.compat) != 0
    d.profile.service_code = <int>relaxed_load(&listener.service_code)
    d.profile.port = listener.port
    d.profile.peer = session_source(s)
    d.profile.least_token = relaxed_load(&d.shared.least_token)
    d.profile.most_token = relaxed_load(&d.shared.most_token)
    d.profile.partitions = <uint32_t>relaxed_load(&d.shared.named_partitions)


cdef void mark_dirty(ServerLoop* d, Session* s) noexcept nogil:
    """Put the session on the list of those that are written or closed at the end of the round.

    Locality: server loop.
    """
    if not s.dirty:
        s.dirty = True
        s.dirty_next = d.dirty
        d.dirty = s


cdef void park_session(ServerLoop* d, Session* s) noexcept nogil:
    """Stop reading a session until the queue is shorter.

    Locality: server loop.
    """
    if s.parked:
        return
    s.parked = True
    s.hold |= HOLD_QUEUE
    s.parked_prev = NULL
    s.parked_next = d.parked
    if d.parked != NULL:
        d.parked.parked_prev = s
    d.parked = s
    session_watch(s, &d.poller)


cdef void _unpark(ServerLoop* d, Session* s) noexcept nogil:
    """Take a session out of the parked ones.  Locality: server loop."""
    if s.parked_prev != NULL:
        s.parked_prev.parked_next = s.parked_next
    else:
        d.parked = s.parked_next
    if s.parked_next != NULL:
        s.parked_next.parked_prev = s.parked_prev
    s.parked = False
    s.hold &= ~(<int>HOLD_QUEUE)


cdef void unpark_all(ServerLoop* d) noexcept nogil:
    """Read all sessions again; the time in which they waited for the hub does not count as idle.

    Locality: server loop.
    """
    cdef Session* s
    while d.parked != NULL:
        s = d.parked
        _unpark(d, s)
        table_touch(&d.table, s, d.now_us)
        session_watch(s, &d.poller)


cdef void end_session(ServerLoop* d, Session* s, int reason) noexcept nogil:
    """Read no more; close as soon as all accepted requests are answered.

    Locality: server loop.
    """
    if s.closed or s.hold & HOLD_ENDING:
        return
    s.hold |= HOLD_ENDING
    s.reason = reason
    mark_dirty(d, s)


cdef void close_session(ServerLoop* d, Session* s, int reason) noexcept nogil:
    """Close the connection; its memory is released at the end of the round.

    Locality: server loop.
    Locks: takes Peers.mutex.
    """
    if s.closed:
        return
    s.closed = True
    if s.parked:
        _unpark(d, s)
    peers_end(&d.peers, s.peer, reason)
    s.peer = NULL
    recvbuf_free(&s.received)
    relaxed_store(&d.queued_bytes, relaxed_load(&d.queued_bytes) - <int64_t>s.waiting_bytes)
    s.waiting_bytes = 0
    if s.holder != NULL:
        _hold(d, s, HOLDS_FRAMES, 0, True)
        _hold(d, s, HOLDS_ANSWERS, 0, True)
        holders_leave(&d.holders, s.holder)
        if not d.collecting:
            _tell_held(d)
    table_remove(&d.table, s)
    s.grave_next = d.graves
    d.graves = s
    # Counted before the peer can notice.
    relaxed_add(&d.counters.closed[reason], 1)
    relaxed_store(&d.sessions, d.table.count)
    atomic_add(&d.shared.connections, -1)
    poller_remove(&d.poller, &s.transport)
    s.transport.ops.close(&s.transport)


cdef void _hold(ServerLoop* d, Session* s, HoldingKind kind, int64_t bytes, bint progress) noexcept nogil:
    """Note how many bytes a session holds.  Locality: server loop."""
    s.holdings[<int>kind].session = s.id
    holders_set(&d.holders, s.holder, &s.holdings[<int>kind], kind, bytes, progress)


cdef void _tell_held(ServerLoop* d) noexcept nogil:
    """Publish the held bytes to other threads.  Locality: server loop."""
    relaxed_store(&d.frame_bytes, d.holders.bytes[<int>HOLDS_FRAMES])
    relaxed_store(&d.answer_bytes, d.holders.bytes[<int>HOLDS_ANSWERS])


cdef void _collect(ServerLoop* d, HoldingKind kind, int reason) noexcept nogil:
    """Close connections that hold the most memory until the bound holds again, and only then publish the held bytes.

    Bytes of the connection that is being read count only when the round goes on to the next connection.
    Locality: server loop.
    """
    cdef Holding* payer
    d.collecting = True
    while d.holders.bytes[<int>kind] > d.shared.held_bytes:
        payer = holders_payer(&d.holders, kind)
        if payer == NULL:
            break
        close_session(d, table_find(&d.table, payer.session), reason)
    d.collecting = False
    _tell_held(d)


cdef void hold_frames(ServerLoop* d, Session* s, bint progress) noexcept nogil:
    """Note the receive memory of a session; ``progress``: it has completed a frame.  May close any session.

    Locality: server loop.
    """
    _hold(d, s, HOLDS_FRAMES, <int64_t>s.received.cap, progress)
    _collect(d, HOLDS_FRAMES, CLOSE_MEMORY)


cdef void hold_answers(ServerLoop* d, Session* s, bint progress) noexcept nogil:
    """Note the unread answers of a session; ``progress``: the peer has taken some.  May close any session.

    Locality: server loop.
    """
    _hold(d, s, HOLDS_ANSWERS, <int64_t>s.output.cap if session_unsent(s) > 0 else 0, progress)
    _collect(d, HOLDS_ANSWERS, CLOSE_REPLIES)


cdef int refuse_request(ServerLoop* d, const Session* s, int code, const char* words) noexcept nogil:
    """Turn the request that was just judged into a refusal; ST_OK or ST_NO_MEMORY.

    Locality: server loop.
    """
    cdef Request* r = &d.request
    cdef Buf success = r.reply
    cdef int status = ST_OK
    r.entry.n = 0
    if success.n > 0:
        status = s.wire.refuse(success.p, success.n, code, words, &r.entry)
        r.reply = r.entry
        r.entry = success
        r.entry.n = 0
    r.action = REQ_REPLY
    r.code = code
    r.records = 0
    return status


cdef void count_code(ServerLoop* d, int code) noexcept nogil:
    """Count a refusal by its code.

    Locality: server loop.
    """
    if code > 0:
        relaxed_add(&d.counters.refused[code if code < LOOP_CODES else LOOP_CODES - 1], 1)
