"""PULL (11): messages from the store's pages to the bytes that are sent.

A request that finds nothing at the end of its queue waits, if its client lets it, and is answered as soon as the queue
has a message that it wants.  Requests that somebody has to decide about go to the thread, which may let them wait in
the same way.

Locality: server loop.  Locks: takes Remoting.mutex, CallQueue.mutex, and those that the store's visitor takes.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_reserve
from dataproxy._core.base.siphash cimport hash_bytes
from dataproxy._core.base.slice cimport Slice, slice_is, slice_of, slice_text
from dataproxy._core.base.status cimport ST_CLOSED, ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.atomic cimport atomic_load, relaxed_add
from dataproxy._core.server.answers cimport call_forgive, call_owe, call_pay
from dataproxy._core.server.arrivals cimport BUCKETS, bucket_of
from dataproxy._core.server.calls cimport ROLE_OWED, Call, call_free, calls_put
from dataproxy._core.server.holders cimport HOLDS_ANSWERS
from dataproxy._core.server.rocketmq.ends cimport host_of
from dataproxy._core.server.rocketmq.filters cimport filter_expression, filter_tags, filter_takes
from dataproxy._core.server.rocketmq.lines cimport Line, Wait, command_ask, command_refuse
from dataproxy._core.server.rocketmq.messages cimport Source, message_seen
from dataproxy._core.server.rocketmq.remoting cimport (
    FILTER_ASKED, Remoting, remoting_asked, remoting_commit, remoting_pulled, remoting_readable, remoting_wanted,
)
from dataproxy._core.server.rocketmq.waits cimport (
    TICK_US, TICKS, Pulls, pulls_of, wait_find, wait_free, wait_link, wait_new, waits_due,
)
from dataproxy._core.server.session cimport CLOSE_MEMORY, HOLD_ENDING, Session, session_unsent, table_find
from dataproxy._core.server.state cimport LOOP_RUNS, count_code, end_session, mark_dirty
from dataproxy._core.server.store.visits cimport Seen, Visit
from dataproxy._core.wire.rocketmq.const cimport (
    ANSWER_NO_PERMISSION, ANSWER_PULL_NOT_FOUND, ANSWER_PULL_OFFSET_MOVED, ANSWER_PULL_RETRY,
    ANSWER_SUBSCRIPTION_NOT_EXIST, ANSWER_SUBSCRIPTION_NOT_LATEST, ANSWER_SUBSCRIPTION_PARSE_FAILED, ANSWER_SUCCESS,
    ANSWER_SYSTEM_BUSY, ANSWER_SYSTEM_ERROR, ANSWER_TOPIC_NOT_EXIST, FLAG_ONE_WAY,
)
from dataproxy._core.wire.rocketmq.header cimport Command, read_command
from dataproxy._core.wire.rocketmq.pull cimport (
    PULL_COMMIT, PULL_SUBSCRIPTION, PULL_SUSPEND, Pulled, PullRequest, put_pulled, read_pull,
)
from dataproxy._core.wire.rocketmq.serve cimport answer_head, put_refusal
from dataproxy._core.wire.rocketmq.stored cimport StoredMessage, put_stored, stored_size
from dataproxy._core.wire.rocketmq.write cimport (
    CommandWriter, write_begin, write_end, write_header, write_number,
)


ctypedef struct Pulling:        # one request while it is worked on
    ServerLoop* d
    Session* s
    Pulls* f
    Slice frame
    Command command
    PullRequest asked
    int32_t code                # ANSWER_PULL_* where no message is sent
    int sent                    # messages
    bint again                  # it has waited


cdef void pull_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil:
    """Answer a request for messages, let it wait, or give it to the thread."""
    cdef Remoting* remoting = <Remoting*>d.shared.remoting
    cdef Pulling x
    cdef int32_t code
    if r.version & FLAG_ONE_WAY:        # messages for nobody
        return
    memset(&x, 0, sizeof(Pulling))
    x.d, x.s, x.f, x.frame = d, s, pulls_of(d), r.call
    if x.f == NULL or read_command(r.call.p, r.call.n, &x.f.command, &x.command) != ST_OK:
        end_session(d, s, CLOSE_MEMORY)
        return
    if read_pull(&x.command, &x.asked) != ST_OK:
        _refuse(&x, ANSWER_SYSTEM_ERROR, x.asked.wrong)
        return
    remoting_pulled(remoting, (<Line*>s.line).farewell.connection, x.asked.group, x.asked.topic, d.now_us)
    if remoting_asked(remoting, x.asked.group):
        command_ask(d, s, r)
        return
    code = _want(&x)
    if code == FILTER_ASKED:
        command_ask(d, s, r)
        return
    if code != ANSWER_SUCCESS:
        _refuse(&x, code, _words(code))
        return
    if x.asked.sys_flag & PULL_COMMIT and x.asked.commit_offset > 0 and x.asked.group.n <= GROUP_MOST:
        remoting_commit(remoting, (<Line*>s.line).farewell.connection, x.asked.group, x.asked.topic, x.asked.queue,
                        x.asked.commit_offset)
    _pull(&x, NULL)


cdef int32_t _want(Pulling* x) noexcept nogil:
    """Set the filter of a request: ANSWER_SUCCESS, the code that refuses it, or FILTER_ASKED."""
    cdef Remoting* remoting = <Remoting*>x.d.shared.remoting
    cdef int filter = 0
    cdef int32_t code = remoting_readable(remoting, x.asked.topic, x.asked.queue)
    if code != ANSWER_SUCCESS:
        return code
    if x.asked.sys_flag & PULL_SUBSCRIPTION:
        if x.asked.expression_type.n and not slice_is(x.asked.expression_type, b"TAG"):
            return FILTER_ASKED
        return filter_expression(x.f, x.asked.subscription)
    code = remoting_wanted(remoting, (<Line*>x.s.line).farewell.connection, x.asked.group, x.asked.topic,
                           x.asked.sub_version, &filter, &x.f.tags)
    if code != ANSWER_SUCCESS or filter == FILTER_ASKED:
        return code if code != ANSWER_SUCCESS else FILTER_ASKED
    return filter_tags(x.f)


cdef const char* _words(int32_t code) noexcept nogil:
    """Return the remark of a refusal."""
    if code == ANSWER_TOPIC_NOT_EXIST:
        return b"the topic does not exist"
    if code == ANSWER_NO_PERMISSION:
        return b"the topic cannot be read"
    if code == ANSWER_SUBSCRIPTION_NOT_EXIST:
        return b"the consumer's group info not exist: it has no subscription of the topic on this connection"
    if code == ANSWER_SUBSCRIPTION_NOT_LATEST:
        return b"the consumer's subscription not latest: its heartbeat is still to come"
    if code == ANSWER_SUBSCRIPTION_PARSE_FAILED:
        return b"parse the consumer's subscription failed: it has more than 256 tags"
    return b"the queue does not exist, or no memory is left"


cdef void _refuse(Pulling* x, int32_t code, const char* words) noexcept nogil:
    """Answer with a code and no offsets."""
    command_refuse(x.d, x.s, x.command.form, x.command.opaque, code, words)


cdef const char* _remark(const Pulling* x, int32_t code) noexcept nogil:
    """Return the name that a broker gives to what it has found."""
    if code == ANSWER_SUCCESS:
        return b"FOUND"
    if code == ANSWER_PULL_NOT_FOUND:
        return b"OFFSET_OVERFLOW_ONE"
    if code == ANSWER_PULL_RETRY:
        return b"NO_MATCHED_MESSAGE"
    if x.asked.offset < <int64_t>x.f.visit.first:
        return b"OFFSET_TOO_SMALL"
    return b"OFFSET_OVERFLOW_BADLY"


cdef void _tell(Pulling* x, int32_t code, int64_t next_) noexcept nogil:
    """Answer that there is no message, and where to go on."""
    cdef Visit* v = &x.f.visit
    cdef Command head
    cdef Pulled p
    memset(&p, 0, sizeof(Pulled))
    answer_head(&head, x.command.form, x.command.opaque)
    p.code, p.offsets, p.next_offset = code, True, next_
    p.min_offset, p.max_offset = <int64_t>v.first, <int64_t>v.next
    p.remark = slice_text(_remark(x, code))
    if put_pulled(&x.s.output, &head, &p) != ST_OK:
        end_session(x.d, x.s, CLOSE_MEMORY)
        return
    relaxed_add(&x.d.counters.replies, 1)
    mark_dirty(x.d, x.s)


cdef bint _pull(Pulling* x, Wait* waited) noexcept nogil:
    """Answer with messages, or that there are none, or wait; tell whether ``waited`` goes on waiting."""
    cdef Remoting* remoting = <Remoting*>x.d.shared.remoting
    cdef Visit* v = &x.f.visit
    cdef int bucket = bucket_of(x.asked.topic, <uint32_t>x.asked.queue)
    cdef int64_t arrived = atomic_load(&remoting.news.arrived[bucket])
    cdef int status
    x.again = waited != NULL
    if _is_full(x):             # no more than the peer takes; it asks again
        v.first, v.next = 0, <uint64_t>max(x.asked.offset, 0)
        _tell(x, ANSWER_PULL_NOT_FOUND, x.asked.offset)
        return False
    status = _visit(remoting, x)
    if status == ST_NO_MEMORY:
        end_session(x.d, x.s, CLOSE_MEMORY)
    elif status == ST_CLOSED:
        _tell(x, x.code, <int64_t>(v.first if x.asked.offset < <int64_t>v.first else v.next))
    elif status == ST_LIMIT:
        _refuse(x, ANSWER_SYSTEM_ERROR, b"a message is larger than any client reads; set the offset behind it")
    elif status != ST_OK:
        _refuse(x, ANSWER_SYSTEM_ERROR, b"the store could not be read there; set the offset behind it if that stays")
    elif x.sent == 0:
        return _nothing(x, waited, bucket, arrived)
    return False


cdef bint _is_full(const Pulling* x) noexcept nogil:
    """Tell whether a connection, or all of the loop's together, have too many answers to send."""
    cdef int64_t most = x.d.shared.held_bytes // 2
    cdef size_t unsent = session_unsent(x.s)
    # Who reads all that it gets is not made to wait by those who do not.
    return (unsent > PULLS_UNSENT or <int64_t>x.f.made > most
            or (unsent > 0 and x.d.holders.bytes[<int>HOLDS_ANSWERS] + <int64_t>x.f.made > most))


cdef int _visit(Remoting* remoting, Pulling* x) noexcept nogil:
    """Look into the store, and write the answer if there is a message."""
    cdef Visit* v = &x.f.visit
    cdef int status
    v.topic = x.asked.topic
    v.partition = <uint32_t>x.asked.queue
    v.most_entries = min(max(x.asked.most, 1), <int32_t>PULL_MESSAGES)
    v.enough_bytes = v.most_bytes = PULL_ENOUGH
    v.place = _place
    v.take = _take
    v.context = <void*>x
    status = remoting.visit(remoting.store, v)
    v.streams = NULL
    v.n_streams = 0
    if x.sent:
        relaxed_add(&remoting.pulls, 1)
        relaxed_add(&remoting.messages, x.sent)
        relaxed_add(&remoting.bytes, <int64_t>v.seen_bytes)
    return status


cdef int _place(void* context) noexcept nogil:
    """Begin where the request says; ST_CLOSED: there is no such place in the queue."""
    cdef Pulling* x = <Pulling*>context
    cdef Visit* v = &x.f.visit
    if x.asked.offset < <int64_t>v.first or x.asked.offset > <int64_t>v.next:
        x.code = ANSWER_PULL_OFFSET_MOVED
        return ST_CLOSED
    v.offset = <uint64_t>x.asked.offset
    v.streams = <const Slice*>x.f.streams.p
    v.n_streams = x.f.streams.n // sizeof(Slice)
    return ST_OK


cdef int _take(void* context) noexcept nogil:
    """Write the answer with what was seen, if any of it is wanted."""
    cdef Pulling* x = <Pulling*>context
    cdef Visit* v = &x.f.visit
    cdef Buf* out = &x.s.output
    cdef size_t before = out.n
    cdef CommandWriter w
    cdef Command head
    cdef int status
    if v.seen.n == 0:
        return ST_OK
    answer_head(&head, x.command.form, x.command.opaque)
    head.code, head.extended, head.remark = ANSWER_SUCCESS, True, slice_text(_remark(x, ANSWER_SUCCESS))
    write_begin(&w, out, &head)
    write_number(&w, b"suggestWhichBrokerId", 0)
    write_number(&w, b"nextBeginOffset", <int64_t>v.stop)
    write_number(&w, b"minOffset", <int64_t>v.first)
    write_number(&w, b"maxOffset", <int64_t>v.next)
    write_header(&w)
    status = w.status if w.status != ST_OK else _messages(x, out)
    if status != ST_OK or x.sent == 0:
        out.n = before
        return status
    status = write_end(&w)
    if status != ST_OK:
        x.sent = 0
        return status
    x.f.made += out.n - before
    relaxed_add(&x.d.counters.replies, 1)
    mark_dirty(x.d, x.s)
    return ST_OK


cdef int _messages(Pulling* x, Buf* out) noexcept nogil:
    """Append the messages that are wanted; ST_OK or ST_NO_MEMORY."""
    cdef Visit* v = &x.f.visit
    cdef const Seen* seen = <const Seen*>v.seen.p
    cdef Source source
    cdef StoredMessage m
    cdef size_t i
    source.topic, source.log, source.queue = x.asked.topic, v.log, x.asked.queue
    source.host = host_of(&x.s.near)
    for i in range(v.seen.n // sizeof(Seen)):
        if message_seen(&source, &seen[i], &x.f.properties, &m) != ST_OK:
            return ST_NO_MEMORY
        if not filter_takes(x.f, seen[i].stream, m.properties):
            continue
        if buf_reserve(out, stored_size(&m)) != ST_OK:
            return ST_NO_MEMORY
        out.n = <size_t>(put_stored(out.p + out.n, &m) - out.p)
        x.sent += 1
    return ST_OK


# ---- Waiting.


cdef bint _nothing(Pulling* x, Wait* waited, int bucket, int64_t arrived) noexcept nogil:
    """Wait, or answer that there is nothing; tell whether ``waited`` goes on waiting."""
    cdef int64_t stop = <int64_t>x.f.visit.stop
    cdef bint passed = stop > x.asked.offset       # messages that are not wanted: nobody asks for them again
    if waited != NULL and waited.due_us > x.d.now_us and _may_wait(x):
        _note(x, waited, arrived)
        return True
    if waited == NULL and not passed and _wait(x, bucket, arrived):
        return False
    _tell(x, ANSWER_PULL_RETRY if passed else ANSWER_PULL_NOT_FOUND, stop)
    return False


cdef inline bint _may_wait(const Pulling* x) noexcept nogil:
    return not x.s.hold & HOLD_ENDING and atomic_load(&x.d.shared.phase) == LOOP_RUNS


cdef uint64_t _mark(Pulling* x) noexcept nogil:
    """Return a number for group, topic and queue of a request."""
    cdef Remoting* remoting = <Remoting*>x.d.shared.remoting
    return (hash_bytes(&remoting.routes.secret, x.asked.group.p, x.asked.group.n).first
            ^ hash_bytes(&remoting.routes.secret, x.asked.topic.p, x.asked.topic.n).second
            ^ <uint64_t><uint32_t>x.asked.queue * <uint64_t>0x9E3779B97F4A7C15)


cdef bint _wait(Pulling* x, int bucket, int64_t arrived) noexcept nogil:
    """Let a request wait; False: it is not to, and is answered now.  An older one for the same ends."""
    cdef Line* line = <Line*>x.s.line
    cdef int64_t suspend_ms = x.asked.suspend_ms
    cdef uint64_t mark = _mark(x)
    cdef Wait* older = wait_find(line, mark)
    cdef Wait* w
    if older != NULL:
        _end(x.d, older)
    if not x.asked.sys_flag & PULL_SUSPEND or suspend_ms <= 0 or not _may_wait(x):
        return False
    w = wait_new(x.d, line, x.s.id, x.frame, x.d.now_us + min(suspend_ms, 3600000) * 1000)
    if w == NULL:
        return False
    w.mark = mark
    wait_link(x.d, w, bucket)
    _note(x, w, arrived)
    return True


cdef void _note(Pulling* x, Wait* w, int64_t arrived) noexcept nogil:
    """Note what a request that waits has seen."""
    cdef Remoting* remoting = <Remoting*>x.d.shared.remoting
    w.arrived = arrived
    if atomic_load(&remoting.news.arrived[w.bucket]) != arrived:    # it came before anybody knew that it is waited for
        x.f.again = True
        x.d.pull_due_us = x.d.now_us


cdef bint _again(ServerLoop* d, Session* s, Wait* w) noexcept nogil:
    """Look for the messages of a request that waits; tell whether it goes on waiting."""
    cdef Pulling x
    cdef int32_t code
    memset(&x, 0, sizeof(Pulling))
    x.d, x.s, x.f = d, s, <Pulls*>d.pulls
    x.frame = slice_of(<const uint8_t*>(w + 1), w.n)
    if (read_command(x.frame.p, x.frame.n, &x.f.command, &x.command) != ST_OK
            or read_pull(&x.command, &x.asked) != ST_OK):
        end_session(d, s, CLOSE_MEMORY)
        return False
    code = _want(&x)
    if code == FILTER_ASKED:            # its subscription is another one by now: the client asks again
        x.f.visit.first = x.f.visit.next = <uint64_t>max(x.asked.offset, 0)
        _tell(&x, ANSWER_PULL_NOT_FOUND, x.asked.offset)
        return False
    if code != ANSWER_SUCCESS:
        _refuse(&x, code, _words(code))
        return False
    return _pull(&x, w)


cdef void _end(ServerLoop* d, Wait* w) noexcept nogil:
    """Answer a request that waits no longer."""
    cdef Session* s = table_find(&d.table, w.session)
    w.due_us = 0
    _look(d, s, w)


cdef void _look(ServerLoop* d, Session* s, Wait* w) noexcept nogil:
    """Look after a request that waits: its queue has got entries, or its time has come."""
    cdef Call* call = w.call
    if s == NULL:
        wait_free(d, w)
    elif call != NULL:
        w.call = NULL
        wait_free(d, w)
        _call_again(d, s, call)
    elif not _again(d, s, w):
        wait_free(d, w)


cdef void pulls_follow(ServerLoop* d) noexcept nogil:
    """Answer requests whose queues have got entries, or that have waited for long enough."""
    cdef Pulls* f = <Pulls*>d.pulls
    cdef Remoting* remoting = <Remoting*>d.shared.remoting
    cdef int64_t changes
    if f == NULL:
        return
    if f.waits > 0:
        changes = atomic_load(&remoting.news.changes)
        if changes != f.changes or f.again:
            f.changes = changes
            f.again = False
            _follow_arrivals(d, remoting, f)
    _follow_time(d, f)
    waits_due(d)
    f.made = 0          # what was made is sent now, and counted with its connection


cdef void _follow_arrivals(ServerLoop* d, Remoting* remoting, Pulls* f) noexcept nogil:
    """Look again for whoever waits for a bucket that has got entries."""
    cdef Wait* w
    cdef Wait* following
    cdef int64_t arrived
    cdef int i
    for i in range(<int>BUCKETS):
        if f.buckets[i] == NULL:
            continue
        arrived = atomic_load(&remoting.news.arrived[i])
        w = f.buckets[i]
        while w != NULL:
            following = w.peers.next
            if w.arrived < arrived:         # one that has looked since then has seen more
                _look(d, table_find(&d.table, w.session), w)
            w = following


cdef void _follow_time(ServerLoop* d, Pulls* f) noexcept nogil:
    """End the waits whose time has come."""
    cdef int64_t now = d.now_us // TICK_US
    cdef int64_t tick = max(f.tick + 1, now - TICKS + 1)
    cdef Wait* w
    cdef Wait* following
    while f.waits > 0 and tick <= now:
        w = f.ends[tick % TICKS]
        while w != NULL:
            following = w.tick.next
            if w.due_us // TICK_US <= now:
                _end(d, w)
            w = following
        tick += 1
    f.tick = now


cdef void pulls_end(ServerLoop* d) noexcept nogil:
    """Answer all that wait."""
    cdef Pulls* f = <Pulls*>d.pulls
    cdef int i
    if f == NULL:
        return
    for i in range(<int>BUCKETS):
        while f.buckets[i] != NULL:
            _end(d, f.buckets[i])
    waits_due(d)


# ---- Requests that the thread answers.


cdef void call_hold(ServerLoop* d, Session* s, Call* call) noexcept nogil:
    """Let a request of the thread's wait until the log is longer than it says, or its time comes."""
    cdef Pulls* f = pulls_of(d)
    cdef Line* line = <Line*>s.line
    cdef Remoting* remoting = <Remoting*>d.shared.remoting
    cdef WaitWish wish
    cdef Slice topic
    cdef Wait* w
    memcpy(&wish, call.answer.p, sizeof(WaitWish))
    topic = slice_of(call.answer.p + sizeof(WaitWish), call.answer.n - sizeof(WaitWish))
    call.answer.n = 0
    call.role = ROLE_OWED
    w = wait_new(d, line, s.id, slice_of(NULL, 0), wish.until_us) if f != NULL and line != NULL else NULL
    if (w == NULL or call.request.n > HELD_MOST or s.hold & HOLD_ENDING
            or atomic_load(&d.shared.phase) != LOOP_RUNS):
        free(w)                 # in no list yet
        _answer_call(d, s, call, ANSWER_SYSTEM_BUSY, b"too many requests of this connection wait")
        return
    call_forgive(s)             # a connection that ends does not wait for it
    w.call = call
    wait_link(d, w, bucket_of(topic, <uint32_t>wish.queue))
    w.arrived = atomic_load(&remoting.news.arrived[w.bucket])
    # The thread has looked before the wait was known: it looks once more, if anything has come since.
    if _end_of(remoting, f, topic, <uint32_t>wish.queue) > wish.offset:
        _end(d, w)


cdef int _see_end(void* context) noexcept nogil:
    return ST_CLOSED


cdef int64_t _end_of(Remoting* remoting, Pulls* f, Slice topic, uint32_t queue) noexcept nogil:
    """Return the offset that the next message of a queue gets."""
    cdef Visit* v = &f.visit
    v.topic, v.partition, v.place = topic, queue, _see_end
    remoting.visit(remoting.store, v)
    return <int64_t>v.next


cdef void _call_again(ServerLoop* d, Session* s, Call* call) noexcept nogil:
    """Give a request that has waited to the thread again."""
    cdef Remoting* remoting = <Remoting*>d.shared.remoting
    call_owe(d, s)
    if calls_put(&remoting.queue, call) != ST_OK:
        _answer_call(d, s, call, ANSWER_SYSTEM_BUSY, b"too many requests of this address wait for an answer")


cdef void _answer_call(ServerLoop* d, Session* s, Call* call, int32_t code, const char* words) noexcept nogil:
    """Answer a request that is owed an answer, and release it."""
    count_code(d, code)
    put_refusal(&call.answer, call.service, <int32_t>call.serial, code, words)
    call_pay(d, s, call.answer.p, call.answer.n)
    call_free(call)
