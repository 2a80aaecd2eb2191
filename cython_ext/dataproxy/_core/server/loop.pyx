"""A server loop of the hub: accept, read, commit, answer, in rounds.

A round takes the events of one wait, takes the connections that wait at the listeners, reads the ready connections,
submits all accepted requests as one chain, answers the requests that came back from the store, and writes each
connection's replies once.

Locality: server loop.  Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport strlen

from dataproxy._core.base.buf cimport Buf, buf_free
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport (
    ST_DISK_FULL, ST_FULL, ST_LIMIT, ST_OK, ST_STORE, ST_SYSTEM, ST_WANT_READ, ST_WANT_WRITE,
)
from dataproxy._core.server.answers cimport answer_give, answers_abound, answers_subside
from dataproxy._core.server.committer cimport committer_commit, committer_submit
from dataproxy._core.server.receive cimport READ_CHUNK, loop_read, loop_reread, read_share
from dataproxy._core.server.state cimport (
    LOOP_RUNS, LOOP_STOPS, LISTENERS_MOST, TAG_END, TAG_LISTENER, close_session, count_code, loop_clock, loop_take,
    loop_take_calls, end_session, hold_answers, is_compat, mark_dirty, park_session, unpark_all,
)
from dataproxy._core.server.callback cimport calls_settle
from dataproxy._core.server.rocketmq.ends cimport ends_note
from dataproxy._core.server.rocketmq.lines cimport line_close
from dataproxy._core.server.rocketmq.pulls cimport pulls_end, pulls_follow
from dataproxy._core.server.rocketmq.sends cimport send_settled
from dataproxy._core.server.rocketmq.waits cimport pulls_free, waits_forget
from dataproxy._core.server.tubemq.broker cimport TubeBroker, broker_kept
from dataproxy._core.server.tubemq.confirms cimport confirm_settled
from dataproxy._core.server.tubemq.fetches cimport (
    fetch_settled, fetches_end, fetches_follow, fetches_forget, fetches_free,
)
from dataproxy._core.server.entries cimport ENTRY_CONFIRM, ENTRY_MESSAGES, Entry, entry_footprint, entry_free
from dataproxy._core.server.faults.release cimport release_all, release_due, release_obsolete
from dataproxy._core.server.faults.table cimport POINT_CONNECT, FaultWhat
from dataproxy._core.server.session cimport (
    CLOSE_ANSWERED, CLOSE_FAULT, CLOSE_IDLE, CLOSE_MEMORY, CLOSE_REFUSED, CLOSE_REPLIES, CLOSE_RESET, CLOSE_STOPPED,
    HOLD_ENDING, HOLD_FROZEN, HOLD_QUEUE, HOLD_REPLIES, HOLD_SLOW, Session, session_delivered, session_discard,
    session_flush, session_free, session_linger, session_source, session_unsent, session_watch, table_add, table_find,
    table_touch,
)
from dataproxy._core.net.poller cimport (
    POLL_BATCH, POLL_HANGUP, POLL_READ, POLL_WRITE, PollEvent, poller_add, poller_add_fd, poller_remove,
    poller_remove_fd, poller_wait, wakeup_clear, wakeup_watch,
)
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, atomic_store, relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.plat.clock cimport wall_ms
from dataproxy._core.plat.thread cimport pthread_cond_broadcast, pthread_mutex_lock, pthread_mutex_unlock
from dataproxy._core.server.holders cimport holder_name, holders_join
from dataproxy._core.server.listener cimport FAMILIES, Listener, listener_accept
from dataproxy._core.server.peers cimport peers_join
from dataproxy._core.server.faults.misbehaviour cimport misbehave_connect
from dataproxy._core.base.address cimport Address, address_text
from dataproxy._core.net.tls cimport tls_adopt
from dataproxy._core.net.transport cimport transport_adopt
from dataproxy._core.plat.socket cimport close

cdef enum:
    REFUSE_CODE = 114           # the request could not be queued
    NAME_CODE = 113             # the store cannot take this group or stream
    SCRATCH_KEEP = 4194304      # larger working buffers are given back
    LINGER_US = 1000000         # time for a peer to end the stream after it got our last reply
    FRAME_MORE = 65536          # bytes of a frame that its limit does not count: lengths of TubeMQ's slices
    ACCEPT_ROUND = 64           # connections taken in one round
    ACCEPT_PAUSE_US = 100000    # after running out of descriptors


cdef int loop_run(ServerLoop* d) noexcept nogil:
    """Run rounds until the hub stops and everything accepted is answered, or its deadline passes.

    Locks: takes HubShared.mutex.
    """
    cdef int status = _run(d)
    fetches_free(d)
    pulls_free(d)
    atomic_store(&d.ended, 1)
    _tell(d)
    return status


cdef void _tell(ServerLoop* d) noexcept nogil:
    """Wake threads that wait until this server loop has carried out changes.  Locks: takes HubShared.mutex."""
    pthread_mutex_lock(&d.shared.mutex)
    pthread_cond_broadcast(&d.shared.followed)
    pthread_mutex_unlock(&d.shared.mutex)


cdef int _run(ServerLoop* d) noexcept nogil:
    """Run rounds."""
    cdef PollEvent events[POLL_BATCH]
    cdef int status = ST_OK
    cdef int n
    if wakeup_watch(&d.wakeup, &d.poller, <void*>TAG_WAKEUP) != ST_OK:
        return ST_SYSTEM
    d.now_us = loop_clock(d)
    _accept_resume(d)
    while True:
        n = poller_wait(&d.poller, events, POLL_BATCH, loop_timeout(d))
        if n < 0:
            status = ST_SYSTEM
            break
        d.now_us = loop_clock(d)
        d.wall_ms = wall_ms()
        loop_round(d, events, n)
        if not _goes_on(d):
            break
    while d.table.idle_first != NULL:
        close_session(d, d.table.idle_first, CLOSE_STOPPED)
    _bury(d)
    return status


cdef void loop_round(ServerLoop* d, PollEvent* events, int n) noexcept nogil:
    """Act on one wait's events."""
    cdef Session* s
    cdef uint64_t tag
    cdef int i
    d.read_share = read_share(n)
    for i in range(n):
        tag = <uint64_t>events[i].tag
        if tag == TAG_WAKEUP:
            wakeup_clear(&d.wakeup)
            _settle(d, loop_take(d))
            calls_settle(d, loop_take_calls(d))
        elif tag < TAG_END:
            if atomic_load(&d.shared.phase) == LOOP_RUNS:
                _accept_ready(d, tag)
        else:
            s = table_find(&d.table, tag)
            if s != NULL:
                _session_event(d, s, events[i].ready)
    # After wakeup_clear: an order that comes later wakes the loop again.
    if atomic_load(&d.shared.orders) != relaxed_load(&d.followed):
        _follow(d)
    if d.delayed != NULL:
        release_due(d)
    _expire(d)
    _submit(d)
    fetches_follow(d)
    pulls_follow(d)
    _relax(d)
    _flush(d)
    while d.resumed != NULL:
        _resume(d)
        _submit(d)
        _flush(d)
    _bury(d)
    if d.request.entry.cap > SCRATCH_KEEP:
        buf_free(&d.request.entry)
    if d.request.scratch.cap > SCRATCH_KEEP:
        buf_free(&d.request.scratch)


cdef void _follow(ServerLoop* d) noexcept nogil:
    """Carry out changes of listeners and faults, and say so.  Locks: takes HubShared.mutex."""
    cdef int64_t orders = atomic_load(&d.shared.orders)
    _accept_follow(d)
    release_obsolete(d)
    atomic_store(&d.followed, orders)
    _tell(d)


cdef int64_t loop_timeout(ServerLoop* d) noexcept nogil:
    """Return the time to the next deadline in microseconds, -1 if there is none."""
    cdef int64_t until = -1
    cdef int64_t at
    if d.table.idle_first != NULL:
        until = d.table.idle_first.active_us + d.shared.read_idle_us
    if d.accept_again_us > 0 and (until < 0 or d.accept_again_us < until):
        until = d.accept_again_us
    if d.linger_until_us > 0 and (until < 0 or d.linger_until_us < until):
        until = d.linger_until_us
    if d.fetch_due_us > 0 and (until < 0 or d.fetch_due_us < until):
        until = d.fetch_due_us
    if d.pull_due_us > 0 and (until < 0 or d.pull_due_us < until):
        until = d.pull_due_us
    if d.delayed != NULL and (until < 0 or d.delayed.due_us < until):
        until = d.delayed.due_us
    if atomic_load(&d.shared.phase) != LOOP_RUNS:
        at = atomic_load(&d.shared.deadline_us)
        if until < 0 or at < until:
            until = at
    if until < 0:
        return -1
    return until - d.now_us if until > d.now_us else 0


cdef bint _goes_on(ServerLoop* d) noexcept nogil:
    """Tell whether the loop has more to do; starts draining when the hub stops."""
    cdef int64_t phase = atomic_load(&d.shared.phase)
    cdef Session* s
    cdef Session* following
    if phase == LOOP_RUNS:
        return True
    if phase == LOOP_STOPS or d.now_us >= atomic_load(&d.shared.deadline_us):
        return False
    if d.accepting or d.accept_again_us > 0:
        _accept_pause(d, 0)
    release_all(d)
    fetches_end(d)
    pulls_end(d)
    following = d.table.idle_first
    while following != NULL:
        s = following
        following = s.idle_next
        if not s.lingers:
            end_session(d, s, CLOSE_STOPPED)
        elif d.now_us - s.active_us < LINGER_US:
            continue
        elif session_delivered(s):
            close_session(d, s, s.reason)
        else:
            table_touch(&d.table, s, d.now_us)
    _flush(d)
    d.linger_until_us = _linger_until(d)
    _bury(d)
    return d.table.count > 0 or d.outstanding > 0


cdef int64_t _linger_until(ServerLoop* d) noexcept nogil:
    """Return when the first lingering connection is given up, 0 without one."""
    cdef Session* s = d.table.idle_first
    while s != NULL:
        if s.lingers:
            return s.active_us + LINGER_US
        s = s.idle_next
    return 0


cdef void _session_event(ServerLoop* d, Session* s, int ready) noexcept nogil:
    """Act on one connection's readiness."""
    if s.lingers:
        if ready & POLL_HANGUP or session_discard(s) != ST_OK:
            close_session(d, s, s.reason)
        return
    if ready & POLL_WRITE:
        mark_dirty(d, s)
    if ready & (POLL_READ | POLL_HANGUP) or s.transport.more:
        if s.hold == 0 and d.choked:
            park_session(d, s)
        if s.hold == 0:
            loop_read(d, s)
        elif ready & POLL_HANGUP and s.hold & HOLD_FROZEN:
            # Like a stopped process: bytes that the peer has sent are read when the session continues.
            poller_remove(&d.poller, &s.transport)
            s.faults.deaf = True
        elif ready & POLL_HANGUP:
            close_session(d, s, CLOSE_RESET)


cdef void _submit(ServerLoop* d) noexcept nogil:
    """Submit this round's requests to the store as one chain; nothing is read while the store has no room for them."""
    cdef Entry* chain = d.chain
    cdef Entry* entry = chain
    cdef int status
    if chain == NULL:
        return
    if committer_commit(d.shared.committer, chain):
        d.chain = NULL
        d.chain_last = NULL
        _settle(d, chain)
        return
    status = committer_submit(d.shared.committer, chain)
    if status == ST_FULL:
        d.choked = True     # the committer wakes this loop when there is room
        return
    d.chain = NULL
    d.chain_last = NULL
    if status == ST_OK:
        return
    while entry != NULL:
        entry.status = ST_STORE
        entry = entry.next
    _settle(d, chain)


cdef void _relax(ServerLoop* d) noexcept nogil:
    """Read again once the queue is half empty."""
    if d.choked and d.chain == NULL and relaxed_load(&d.queued_bytes) <= d.shared.queue_bytes // 2:
        d.choked = False
        unpark_all(d)


cdef void _settle(ServerLoop* d, Entry* chain) noexcept nogil:
    """Answer requests that are back from the store, in commit order."""
    cdef Entry* entry
    cdef Session* s
    while chain != NULL:
        entry = chain
        chain = entry.next
        relaxed_store(&d.queued_bytes, relaxed_load(&d.queued_bytes) - <int64_t>entry_footprint(entry))
        d.outstanding -= 1
        if entry.kind != ENTRY_MESSAGES:
            if entry.status == ST_OK:
                broker_kept(<TubeBroker*>d.shared.broker, entry)
        elif entry.status == ST_OK:
            _count_stored(d, entry)
        else:
            count_code(d, NAME_CODE if entry.status == ST_LIMIT else REFUSE_CODE)
        s = table_find(&d.table, entry.session)
        if s == NULL:
            relaxed_add(&d.counters.unanswered, 1)
            if entry.joint != NULL:
                send_settled(d, NULL, entry)
        else:
            dp_assert(s.pending > 0, "an entry that comes back was sent: pending=%ld", s.pending)
            s.pending -= 1
            s.owed_bytes -= entry.reply.n
            s.confirms -= entry.kind != ENTRY_MESSAGES
            if entry.joint != NULL:
                send_settled(d, s, entry)
            elif entry.kind == ENTRY_MESSAGES:
                _answer(d, s, entry)
            elif entry.kind == ENTRY_CONFIRM:
                confirm_settled(d, s, entry)
            else:
                fetch_settled(d, s, entry)
        entry_free(entry)


cdef void _count_stored(ServerLoop* d, const Entry* entry) noexcept nogil:
    """Count the messages of a request that the store took."""
    if entry.duplicates == 0:
        relaxed_add(&d.counters.entries, 1)
        relaxed_add(&d.counters.records, entry.records)
    elif entry.duplicates < entry.items:
        relaxed_add(&d.counters.entries, 1)
        relaxed_add(&d.counters.records, entry.items - entry.duplicates)


cdef void _answer(ServerLoop* d, Session* s, Entry* entry) noexcept nogil:
    """Answer one settled request, in its turn.  Locks: takes FaultTable.mutex with a fault."""
    cdef Slice reply = entry.reply
    cdef const FaultWhat* fault = entry.fault
    cdef Buf* other = &d.request.reply      # in place of the success that was prepared
    cdef const char* words = "Put msg event to channel failure: the store refused it"
    cdef int code = REFUSE_CODE
    cdef int status = ST_OK
    mark_dirty(d, s)
    if entry.status != ST_OK and reply.n > 0:
        if entry.status == ST_LIMIT:
            code = NAME_CODE
            words = "GroupId or streamId refused: over 255 bytes, or the store has no room for another name"
        if entry.status == ST_DISK_FULL:
            words = "Put msg event to channel failure: the disk of the store is full"
        other.n = 0
        status = s.wire.refuse(reply.p, reply.n, code, words, other)
        reply = slice_of(other.p, other.n)
        fault = NULL
    elif entry.unanswered:
        reply.n = 0
    elif s.wire.tell_stored != NULL and reply.n > 0:
        other.n = 0
        status = s.wire.tell_stored(reply.p, reply.n, entry.partition, entry.offset, other)
        reply = slice_of(other.p, other.n)
    elif entry.reach_ms >= 0 and reply.n > 0 and not is_compat(d, s):
        other.n = 0
        status = s.wire.tell_known(reply.p, reply.n, entry.duplicates, entry.conflicts, entry.reach_ms // 1000, other)
        reply = slice_of(other.p, other.n)
    if status == ST_OK:
        status = answer_give(d, s, entry.place, reply, fault)
    if status != ST_OK:
        close_session(d, s, CLOSE_MEMORY)


cdef void _resume(ServerLoop* d) noexcept nogil:
    """Serve frames that were received while there was no room for their answers."""
    cdef Session* s
    while d.resumed != NULL:
        s = d.resumed
        d.resumed = s.resumed_next
        s.resumed = False
        if not s.closed:
            loop_reread(d, s)


cdef void _flush(ServerLoop* d) noexcept nogil:
    """Write replies, apply the limit of unread ones, close what has ended."""
    cdef Session* s
    cdef size_t sent = 0
    cdef size_t unsent
    cdef int status
    while d.dirty != NULL:
        s = d.dirty
        d.dirty = s.dirty_next
        s.dirty = False
        if s.closed:
            continue
        status = session_flush(s, &sent)
        relaxed_add(&d.counters.bytes_out, <int64_t>sent)
        if status != ST_OK and status != ST_WANT_WRITE and status != ST_WANT_READ:
            close_session(d, s, CLOSE_RESET)
            continue
        unsent = session_unsent(s)
        if s.hold & HOLD_ENDING and s.pending == 0 and unsent == 0 and _part(d, s):
            continue
        if unsent > d.shared.reply_bytes and is_compat(d, s):
            close_session(d, s, CLOSE_REPLIES)
            continue
        _bound_answers(d, s)
        hold_answers(d, s, sent > 0)
        if not s.closed and session_watch(s, &d.poller) != ST_OK:
            close_session(d, s, CLOSE_RESET)


cdef void _bound_answers(ServerLoop* d, Session* s) noexcept nogil:
    """Stop reading a session with too many answers to come; read it again when most of them are sent."""
    if not s.hold & HOLD_REPLIES:
        if answers_abound(d, s):
            s.hold |= HOLD_REPLIES
    elif answers_subside(d, s):
        s.hold &= ~(<int>HOLD_REPLIES)
        table_touch(&d.table, s, d.now_us)
        if s.received.end > s.received.start and not s.resumed and not s.hold & HOLD_ENDING:
            s.resumed = True
            s.resumed_next = d.resumed
            d.resumed = s


cdef bint _part(ServerLoop* d, Session* s) noexcept nogil:
    """Close a connection that has no more answers to send, or let it linger; true if it was closed.

    A hub that stops may leave requests unread.  Closing a socket with unread bytes resets the stream, and replies on
    their way would be lost.
    """
    cdef bint gently = s.reason == CLOSE_STOPPED or s.reason == CLOSE_ANSWERED
    gently = gently or (s.reason == CLOSE_FAULT and not s.faults.resets)
    if not s.lingers and gently and session_linger(s) == ST_OK:
        table_touch(&d.table, s, d.now_us)
    elif not s.lingers:
        close_session(d, s, s.reason)
    return s.closed


cdef void _expire(ServerLoop* d) noexcept nogil:
    """Close connections that were silent for too long; time in which they waited for the hub does not count."""
    cdef Session* s
    if d.accept_again_us > 0 and d.now_us >= d.accept_again_us:
        _accept_resume(d)
    while True:
        s = d.table.idle_first
        if s == NULL or d.now_us - s.active_us < d.shared.read_idle_us:
            return
        if s.hold & (HOLD_QUEUE | HOLD_FROZEN | HOLD_SLOW) or s.pending > 0:
            table_touch(&d.table, s, d.now_us)
        else:
            close_session(d, s, CLOSE_IDLE)


cdef void _bury(ServerLoop* d) noexcept nogil:
    """Free the connections closed in this round."""
    cdef Session* s
    while d.graves != NULL:
        s = d.graves
        d.graves = s.grave_next
        fetches_forget(d, s)
        waits_forget(d, s)
        line_close(d, s)
        session_free(s)


cdef void _watch(ServerLoop* d) noexcept nogil:
    """Make the poller watch exactly the open listeners, while connections are taken."""
    cdef Listener* slot
    cdef bint wanted
    cdef int i, family
    for i in range(d.shared.listener_count):
        slot = &d.shared.listeners[i]
        wanted = d.accepting and atomic_load(&slot.shut) == 0
        for family in range(<int>FAMILIES):
            if slot.fds[family] >= 0:
                _watch_one(d, i, family, wanted)


cdef void _watch_one(ServerLoop* d, int listener, int family, bint wanted) noexcept nogil:
    """Add one socket of a listener to the poller, or remove it."""
    cdef int fd = d.shared.listeners[listener].fds[family]
    cdef uint64_t tag = TAG_LISTENER + <uint64_t>(family * <int>LISTENERS_MOST + listener)
    if wanted and not d.watched[family][listener]:
        if poller_add_fd(&d.poller, fd, <void*>tag, POLL_READ) != ST_OK:
            d.accept_again_us = d.now_us + ACCEPT_PAUSE_US
            return
        d.watched[family][listener] = True
    elif d.watched[family][listener] and not wanted:
        poller_remove_fd(&d.poller, fd)
        d.watched[family][listener] = False


cdef void _accept_pause(ServerLoop* d, int64_t again_us) noexcept nogil:
    """Stop taking connections; ``again_us`` 0 means for good."""
    d.accepting = False
    d.accept_again_us = again_us
    _watch(d)


cdef void _accept_resume(ServerLoop* d) noexcept nogil:
    """Take connections (again)."""
    d.accepting = True
    d.accept_again_us = 0
    _watch(d)


cdef void _accept_follow(ServerLoop* d) noexcept nogil:
    """Watch the listeners that are open now, and close the connections of those that were killed.

    Connections that wait already are taken first, because they came before the change.
    """
    cdef Session* following = d.table.idle_first
    cdef bint killed[LISTENERS_MOST]
    cdef bint any_killed = False
    cdef int64_t kills
    cdef Session* s
    cdef int i, family
    if d.accepting:
        _watch(d)
    for i in range(d.shared.listener_count):
        for family in range(<int>FAMILIES):
            if d.watched[family][i]:
                _accept_from(d, i, family)
    for i in range(d.shared.listener_count):
        kills = atomic_load(&d.shared.listeners[i].kills)
        killed[i] = kills != d.kills[i]
        any_killed |= killed[i]
        d.kills[i] = kills
    while any_killed and following != NULL:
        s = following
        following = s.idle_next
        if killed[s.listener]:
            close_session(d, s, CLOSE_FAULT)


cdef void _accept_ready(ServerLoop* d, uint64_t tag) noexcept nogil:
    """Take the connections that wait at the socket of a tag, up to the bound of a round."""
    cdef int place = <int>(tag - TAG_LISTENER)
    _accept_from(d, place % <int>LISTENERS_MOST, place // <int>LISTENERS_MOST)


cdef void _accept_from(ServerLoop* d, int listener, int family) noexcept nogil:
    """Take the connections that wait at one socket."""
    cdef Listener* slot = &d.shared.listeners[listener]
    cdef Address peer
    cdef int fd = -1
    cdef int status
    cdef int taken = 0
    while taken < ACCEPT_ROUND:
        taken += 1
        status = listener_accept(slot, family, &fd, &peer)
        if status == ST_WANT_READ:
            return
        if status != ST_OK:
            if atomic_load(&slot.shut):
                _watch(d)
                return
            # Epoll is level-triggered: without a pause, a connection that cannot be taken wakes the loop all the time.
            relaxed_add(&d.counters.accept_pauses, 1)
            _accept_pause(d, d.now_us + ACCEPT_PAUSE_US)
            return
        relaxed_add(&d.counters.accepted, 1)
        if atomic_add(&d.shared.connections, 1) > d.shared.max_connections:
            _turn_away(d, fd, CLOSE_REFUSED)
        else:
            _welcome(d, fd, &peer, listener)


cdef void _turn_away(ServerLoop* d, int fd, int reason) noexcept nogil:
    """Close a connection that got no session."""
    atomic_add(&d.shared.connections, -1)
    relaxed_add(&d.counters.closed[reason], 1)
    close(fd)


cdef void _welcome(ServerLoop* d, int fd, const Address* peer, int listener) noexcept nogil:
    """Make a session for a new connection.  Locks: takes Peers.mutex for a producer of DataProxy."""
    cdef int port
    cdef Session* s = table_add(&d.table, d.shared.listeners[listener].max_frame + FRAME_MORE + READ_CHUNK)
    if s == NULL:
        _turn_away(d, fd, CLOSE_MEMORY)
        return
    s.holder = holders_join(&d.holders, holder_name(peer))
    table_touch(&d.table, s, d.now_us)
    relaxed_store(&d.sessions, d.table.count)
    port = address_text(peer, s.source)
    s.source_n = <unsigned char>strlen(s.source)
    s.listener = listener
    s.wire = d.shared.listeners[listener].wire
    s.number = atomic_add(&d.shared.listeners[listener].accepted, 1)
    s.interest = POLL_READ
    if listener < d.shared.producer_listeners:
        s.peer = peers_join(&d.peers, s.id, listener, session_source(s), port, d.now_us)
    if d.shared.remoting != NULL and s.wire == d.shared.remoting_wire:
        s.remoting = True
        ends_note(fd, peer, &s.near, &s.far)
    if s.holder == NULL:
        transport_adopt(&s.transport, fd, NULL)
        close_session(d, s, CLOSE_MEMORY)
        return
    if (_adopt(d, s, fd) != ST_OK
            or poller_add(&d.poller, &s.transport, <void*>s.id, POLL_READ) != ST_OK):
        close_session(d, s, CLOSE_RESET)
        return
    if relaxed_load(&d.shared.faults.armed) & POINT_CONNECT:
        misbehave_connect(d, s)


cdef int _adopt(ServerLoop* d, Session* s, int fd) noexcept nogil:
    """Give a session its socket; ST_OK, ST_SYSTEM or ST_NO_MEMORY."""
    if d.shared.tls != NULL:
        return tls_adopt(&s.transport, fd, d.shared.tls)
    return transport_adopt(&s.transport, fd, NULL)
