"""Read a connection, judge its frames, chain what is to be stored.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport malloc
from libc.string cimport memset

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_EOF, ST_LIMIT, ST_NEED_DATA, ST_OK, ST_WANT_READ, ST_WANT_WRITE
from dataproxy._core.server.answers cimport answer_give, answer_place, answers_abound
from dataproxy._core.server.state cimport (
    close_session, count_code, end_session, hold_frames, mark_dirty, park_session, refuse_request, take_profile,
)
from dataproxy._core.server.entries cimport Entry, Middle, entry_footprint, entry_new, ids_read
from dataproxy._core.server.faults.table cimport DO_REPLY, POINT_BYTES, FaultWhat
from dataproxy._core.server.holders cimport HOLDS_FRAMES
from dataproxy._core.server.peers cimport peers_count
from dataproxy._core.server.rocketmq.dispatch cimport command_begin
from dataproxy._core.server.tubemq.dispatch cimport call_begin
from dataproxy._core.server.faults.misbehaviour cimport (
    FRAME_GOES_ON, FRAME_STAYS, misbehave_after, misbehave_frame, misbehave_received, misbehave_room,
)
from dataproxy._core.server.session cimport (
    CLOSE_ANSWERED, CLOSE_MEMORY, CLOSE_OVERSIZE, CLOSE_PEER, CLOSE_PROTOCOL, CLOSE_RESET, CLOSE_TLS, HOLD_ENDING,
    HOLD_FROZEN,
    HOLD_REPLIES, session_source, table_touch,
)
from dataproxy._core.net.recvbuf cimport (
    recvbuf_consume, recvbuf_data, recvbuf_filled, recvbuf_free, recvbuf_init, recvbuf_rest, recvbuf_room,
)
from dataproxy._core.net.tls cimport TLS_FIRST, transport_tls
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.plat.clock cimport wall_ms
from dataproxy._core.wire.api cimport REQ_CALL, REQ_CLOSE, REQ_STORE, FrameMark, Request

cdef enum:
    QUEUE_FULL = 114            # the reference server refuses order messages with it; others wait
    HELD_SPARSE = 16            # a block is cut to its data when they fill less than a 16th of it


cdef int64_t read_share(int ready) noexcept nogil:
    """Return the bytes to read from each of ``ready`` connections in a round, so that small requests do not wait long.

    Locality: any thread.
    """
    cdef int64_t share
    if ready <= 1:
        return READ_ROUND
    share = READ_SHARED // (ready - 1)
    return share if share > READ_LEAST else <int64_t>READ_LEAST


cdef void loop_read(ServerLoop* d, Session* s) noexcept nogil:
    """Read what a connection has sent, up to the bound of a round, and act on every whole frame.

    Locality: server loop.
    """
    cdef int64_t budget = d.read_share
    cdef int64_t receive_ms = d.wall_ms
    cdef uint8_t* p = NULL
    cdef bint progress = False
    cdef size_t room = 0
    cdef size_t got = 0
    cdef int status
    if s.received.cap == 0 and d.spare.cap > 0:
        s.received = d.spare
        recvbuf_init(&d.spare, s.received.limit)
    take_profile(d, s)
    while budget > 0 and s.hold == 0:
        if recvbuf_room(&s.received, READ_CHUNK, &p, &room) != ST_OK:
            end_session(d, s, CLOSE_MEMORY)
            break
        if room > <size_t>budget:
            room = <size_t>budget
        if relaxed_load(&d.shared.faults.armed) & POINT_BYTES:
            room = misbehave_room(d, s, room)
        status = s.transport.ops.recv(&s.transport, p, room, &got)
        if status == ST_WANT_READ or status == ST_WANT_WRITE:
            break
        if status == ST_EOF:
            end_session(d, s, CLOSE_PEER)
            break
        if status != ST_OK:
            close_session(d, s, CLOSE_TLS if s.transport.error > TLS_FIRST else CLOSE_RESET)
            return
        if s.transport.ops == transport_tls():      # others took milliseconds of this round, for handshakes and records
            d.wall_ms = receive_ms = wall_ms()
        relaxed_add(&d.counters.bytes_in, <int64_t>got)
        recvbuf_filled(&s.received, got)
        if not d.profile.compat:
            table_touch(&d.table, s, d.now_us)
        budget -= <int64_t>got
        s.received_bytes += <int64_t>got
        progress |= _frames(d, s, receive_ms)
        if relaxed_load(&d.shared.faults.armed) & POINT_BYTES:
            misbehave_received(d, s)
        if relaxed_load(&d.queued_bytes) > d.shared.queue_bytes:
            d.choked = True
            park_session(d, s)
        if got < room and not s.transport.more:
            break
    if s.transport.unsent > 0 or s.transport.more:
        mark_dirty(d, s)
    _rest(d, s, progress)


cdef void loop_reread(ServerLoop* d, Session* s) noexcept nogil:
    """Act on the whole frames that are still in the receive buffer.

    Locality: server loop.
    """
    take_profile(d, s)
    _rest(d, s, _frames(d, s, d.wall_ms))


cdef void _rest(ServerLoop* d, Session* s, bint progress) noexcept nogil:
    """Give back receive memory, and enforce the budget of half-received frames.

    Locality: server loop.
    """
    cdef int64_t others = d.holders.bytes[<int>HOLDS_FRAMES] - s.holdings[<int>HOLDS_FRAMES].bytes
    if s.hold & HOLD_ENDING:
        recvbuf_free(&s.received)
    elif s.received.end == s.received.start:
        if d.spare.cap == 0:
            d.spare = s.received
            recvbuf_init(&s.received, s.received.limit)
        else:
            recvbuf_free(&s.received)
    elif ((s.received.end - s.received.start) * HELD_SPARSE < s.received.cap
            or others + <int64_t>s.received.cap > d.shared.held_bytes // 2):
        # Large blocks are kept from round to round if there are few connections, not if there are many.
        recvbuf_rest(&s.received, 0)
    hold_frames(d, s, progress)


cdef bint _frames(ServerLoop* d, Session* s, int64_t receive_ms) noexcept nogil:
    """Act on the whole frames that were received, while there is room for their answers; tell whether there was one.

    Locality: server loop.
    """
    cdef Slice data = recvbuf_data(&s.received)
    cdef size_t most = d.shared.listeners[s.listener].max_frame
    cdef size_t at = 0
    cdef size_t size = 0
    cdef int64_t frames = 0
    cdef int status
    while at < data.n and not s.hold & (HOLD_ENDING | HOLD_FROZEN | HOLD_REPLIES):
        if s.wire.delimit_on != NULL:
            status = s.wire.delimit_on(&s.mark, data.p + at, data.n - at, most, &size)
        else:
            status = s.wire.delimit(data.p + at, data.n - at, most, &size)
        if status == ST_NEED_DATA:
            break
        if status == ST_LIMIT:
            end_session(d, s, CLOSE_OVERSIZE)
            break
        if status != ST_OK:
            end_session(d, s, CLOSE_PROTOCOL)
            break
        if not _serve(d, s, data.p + at, size, receive_ms):
            break
        frames += 1
        at += size
        memset(&s.mark, 0, sizeof(FrameMark))
        if answers_abound(d, s):
            s.hold |= HOLD_REPLIES
            mark_dirty(d, s)
    recvbuf_consume(&s.received, at)
    if frames > 0:
        relaxed_add(&d.counters.frames, frames)
        if s.peer != NULL:
            relaxed_store(&s.peer.seen_us, d.now_us)
        if d.profile.compat:
            table_touch(&d.table, s, d.now_us)
    return frames > 0


cdef bint _serve(ServerLoop* d, Session* s, const uint8_t* p, size_t n, int64_t receive_ms) noexcept nogil:
    """Judge one frame: reply at once, or append an entry to the chain.  False: the frame stays in the buffer.

    Locality: server loop.
    """
    cdef Request* r = &d.request
    if s.wire.serve(&d.profile, p, n, receive_ms, r) != ST_OK:
        end_session(d, s, CLOSE_MEMORY)
        return True
    if relaxed_load(&d.shared.faults.armed) != 0:
        return _serve_badly(d, s, p, n, receive_ms)
    if s.faults != NULL:
        s.faults.judged = False     # the frame that a freeze held up goes on after the last fault was taken out
    _act(d, s, r, receive_ms, NULL)
    if r.closes:
        end_session(d, s, CLOSE_ANSWERED)
    return True


cdef bint _serve_badly(ServerLoop* d, Session* s, const uint8_t* p, size_t n, int64_t receive_ms) noexcept nogil:
    """Ask the table of faults about a judged frame before it is replied to or stored.

    Locality: server loop.
    Locks: takes FaultTable.mutex.
    """
    cdef FaultWhat what
    cdef int fate = misbehave_frame(d, s, p, n, receive_ms, &what)
    if fate == FRAME_GOES_ON:
        _act(d, s, &d.request, receive_ms, &what)
        misbehave_after(d, s, &what)
        if d.request.closes:
            end_session(d, s, CLOSE_ANSWERED)
    return fate != FRAME_STAYS


cdef void _act(ServerLoop* d, Session* s, Request* r, int64_t receive_ms, const FaultWhat* what) noexcept nogil:
    """Store, answer or close, as ``r`` says; ``what`` is how a fault changes the reply, NULL without one.

    Locality: server loop.
    """
    if r.action == REQ_CLOSE:
        end_session(d, s, CLOSE_PROTOCOL)
        return
    if what != NULL and not what.actions & DO_REPLY:
        what = NULL
    if (r.action == REQ_STORE and d.profile.compat and r.order and r.reply.n > 0
            and relaxed_load(&d.queued_bytes) > d.shared.queue_bytes
            and refuse_request(d, s, QUEUE_FULL, "Put msg event to channel failure: the queue is full") != ST_OK):
        end_session(d, s, CLOSE_MEMORY)
        return
    if r.action == REQ_STORE:
        _chain(d, s, r, receive_ms, what)
        return
    if r.action == REQ_CALL:
        if s.remoting:
            command_begin(d, s, r)
        else:
            call_begin(d, s, r)
        return
    if r.code != 0:
        count_code(d, r.code)
    elif r.heartbeat:
        relaxed_add(&d.counters.heartbeats, 1)
    if r.reply.n > 0 and answer_give(d, s, answer_place(s), slice_of(r.reply.p, r.reply.n), what) != ST_OK:
        end_session(d, s, CLOSE_MEMORY)


cdef void _chain(ServerLoop* d, Session* s, Request* r, int64_t receive_ms, const FaultWhat* what) noexcept nogil:
    """Copy an accepted request into an entry at the end of this round's chain.

    Locality: server loop.
    Locks: takes Peers.mutex for a stream that is new on a connection.
    """
    cdef Entry parts
    cdef Entry* entry
    cdef Middle middle
    middle.bytes = r.body
    middle.at = r.body_at
    parts.next = NULL
    parts.origin = <void*>d
    parts.session = s.id
    parts.group = r.group
    parts.stream = r.stream
    parts.partition = _partition(d, r)
    parts.records = r.records
    parts.data_time_ms = r.data_time_ms
    parts.receive_ms = receive_ms
    parts.value = slice_of(r.entry.p, r.entry.n)
    parts.reply = slice_of(r.reply.p, r.reply.n)
    parts.unanswered = r.unanswered
    parts.ids = slice_of(NULL, 0)
    parts.items = 0
    parts.offset = 0
    parts.duplicates = 0
    parts.status = ST_OK
    if d.id_reader.key != NULL and ids_read(&d.id_reader, &parts) != ST_OK:
        end_session(d, s, CLOSE_MEMORY)
        return
    entry = entry_new(&parts, session_source(s), d.profile.node_ip, &middle, d.shared.committer.ops)
    if entry == NULL:
        end_session(d, s, CLOSE_MEMORY)
        return
    if what != NULL:
        entry.fault = <FaultWhat*>malloc(sizeof(FaultWhat))
        if entry.fault != NULL:
            entry.fault[0] = what[0]
    if d.chain == NULL:
        d.chain = entry
    else:
        d.chain_last.next = entry
    d.chain_last = entry
    if s.peer != NULL:
        peers_count(&d.peers, s.peer, r.group, r.stream, r.records)
    entry.place = answer_place(s)
    s.owed_bytes += entry.reply.n
    s.pending += 1
    d.outstanding += 1
    relaxed_store(&d.queued_bytes, relaxed_load(&d.queued_bytes) + <int64_t>entry_footprint(entry))


cdef uint32_t _partition(ServerLoop* d, Request* r) noexcept nogil:
    """Choose the log, unless the request names it: one partition for each key, else for each stream.

    So both keep their order.

    Locality: server loop.
    """
    cdef Slice key = r.partition_key if r.partition_key.n > 0 else r.stream
    cdef uint32_t digest = 2166136261U
    cdef size_t i
    if r.partition >= 0:
        return <uint32_t>r.partition
    if d.shared.partitions <= 1:
        return 0
    for i in range(key.n):
        digest = (digest ^ key.p[i]) * 16777619U
    return digest % d.shared.partitions
