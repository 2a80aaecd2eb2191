"""What becomes of each partition that is held: asked for, ready, confirmed, delayed, given back.

One pack of a partition is under way, or with the application, at a time.  A confirm and the request for the next pack
are written together (docs/decisions/0027-one-pack-of-a-partition.md).

Locality: the fetching thread.  Locks: the exchange's, where something is handed over; registry, where the list of
partitions changes.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.consumer.exchange cimport (
    CM_CALL, CM_CONFIRM, CM_DROP, CM_FOLLOW, CM_HOLD, CM_PAUSE, CM_RELEASE, CM_RESUME, CM_ROLL_BACK, CM_RULES,
    EK_ANSWER, EK_BROKEN, EK_FAULT, EK_LOST, EK_RELEASED, EK_TOLD, Command, Exchange, Peer, command_free,
    exchange_count, exchange_fetched, exchange_hand, exchange_passed, exchange_settle, exchange_taken, exchange_tell,
    exchange_withdraw,
)
from dataproxy._core.consumer.flow cimport FlowAnswer, FlowRules, flow_begin, flow_wait_ms
from dataproxy._core.consumer.connection cimport (
    CF_CLOSED, CF_MEMORY, CK_COMMIT, CK_CONTROL, CK_GET, Connection, PendingCall, connection_call, connection_written,
)
from dataproxy._core.consumer.tubepack cimport (
    PC_CLOSED, PC_LATE, PC_UNANSWERED, PO_CONFIRMED, PO_EXPIRED, PO_HELD, PO_ROLLED_BACK, TubePack,
    tubepack_hold, tubepack_let_go, tubepack_read,
)
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_load, relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from dataproxy._core.wire.tubemq.commit cimport CommitRequest, Committed, commit_size, put_commit, read_committed
from dataproxy._core.wire.tubemq.const cimport RPC_SUCCESS, UNKNOWN
from dataproxy._core.wire.tubemq.get cimport GetRequest, Got, get_size, put_get
from dataproxy._core.wire.tubemq.rpc cimport Answer

cdef enum:
    READ_SERVICE = 2
    GET = 17
    COMMIT = 18
    LARGEST_PACK = 524288       # bytes that a broker puts into one answer, unless a single message has more
    TEXT_MOST = 800             # bytes of a broker's text that are told
    FIRST_NOTHING_MS = 2        # first wait after an answer without messages; doubled with each


cdef enum:                      # a broker's codes, and the waits after them in ms
    FOUND = 200
    MOVED = 301
    NOT_OWNER = 401
    FORBIDDEN = 403
    NOTHING = 404
    UNKNOWN_READER = 411
    TAKEN = 412
    CREDENTIALS = 415
    TOO_FAST = 452
    MOVED_MS = 200
    FORBIDDEN_MS = 2000
    TOO_FAST_MS = 400
    OTHER_MS = 300


cdef int _copy(uint8_t** to, size_t* n, Slice s) noexcept nogil:
    to[0] = <uint8_t*>malloc(s.n + 1)
    if to[0] == NULL:
        return ST_NO_MEMORY
    if s.n:
        memcpy(to[0], s.p, s.n)
    n[0] = s.n
    return ST_OK


cdef int fetch_open(Fetch* f, Exchange* x, Slice client, Slice group, const FetchHooks* hooks) noexcept nogil:
    """Begin without partitions; limits are filled by the caller.  ST_OK or ST_NO_MEMORY, then ``fetch_free`` follows.

    Locality: its creator.
    """
    memset(f, 0, sizeof(Fetch))
    f.exchange = x
    pthread_mutex_init(&f.registry, NULL)
    memcpy(&f.hooks, hooks, sizeof(FetchHooks))
    f.largest = LARGEST_PACK
    if _copy(&f.client, &f.client_n, client) != ST_OK or _copy(&f.group, &f.group_n, group) != ST_OK:
        return ST_NO_MEMORY
    return ST_OK


cdef void _free_hold(Hold* h) noexcept nogil:
    free(h.topic)
    free(h.filters)
    free(h)


cdef void fetch_free(Fetch* f) noexcept nogil:
    """Release everything.  Locality: the last user."""
    cdef int i
    for i in range(f.n_holds):
        tubepack_let_go(f.holds[i].pack)
        _free_hold(f.holds[i])
    free(f.holds)
    free(f.client)
    free(f.group)
    pthread_mutex_destroy(&f.registry)


cdef HoldCopy* fetch_holds(Fetch* f, int* n) noexcept nogil:
    """Return copies of what is known of all ``n`` partitions, which the caller frees; NULL without memory.

    Locality: any thread.  Locks: takes registry.
    """
    cdef HoldCopy* out
    cdef int i
    pthread_mutex_lock(&f.registry)
    n[0] = f.n_holds
    out = <HoldCopy*>malloc(<size_t>(f.n_holds + 1) * sizeof(HoldCopy))
    if out != NULL:
        for i in range(f.n_holds):
            out[i].number = f.holds[i].number
            out[i].offset = relaxed_load(&f.holds[i].offset)
            out[i].max_offset = relaxed_load(&f.holds[i].max_offset)
            out[i].backlog = relaxed_load(&f.holds[i].backlog)
    pthread_mutex_unlock(&f.registry)
    return out


cdef Slice _cut(Slice s) noexcept nogil:
    return slice_of(s.p, min(s.n, <size_t>TEXT_MOST))


# --- states


cdef void _enter(Fetch* f, Hold* h, int state) noexcept nogil:
    relaxed_add(&f.states[h.state], -1)
    h.state = state
    relaxed_add(&f.states[state], 1)


cdef void _rest_until(Fetch* f, Hold* h, int64_t due_us, int64_t now_us) noexcept nogil:
    """Let a partition wait for its next turn, which comes at a time or at once."""
    h.due_us = max(due_us, now_us)
    if h.paused:
        _enter(f, h, HS_FROZEN)
    else:
        _enter(f, h, HS_DELAYED if h.due_us > now_us else HS_IDLE)


cdef void _rest(Fetch* f, Hold* h, int64_t wait_ms, int64_t now_us) noexcept nogil:
    _rest_until(f, h, now_us + wait_ms * 1000, now_us)


cdef void _settle(Fetch* f, Hold* h, int outcome, int64_t code) noexcept nogil:
    """End what a partition has to do with its pack."""
    cdef TubePack* p = h.pack
    h.pack = NULL
    f.held_bytes -= p.memory
    exchange_settle(f.exchange, p, outcome, code)


cdef Hold* _find(Fetch* f, int64_t number) noexcept nogil:
    cdef int i
    for i in range(f.n_holds):
        if f.holds[i].number == number:
            return f.holds[i]
    return NULL


cdef void _keep_free(Fetch* f, Hold* h, int64_t bytes) noexcept nogil:
    """Keep so many bytes of the limit for a partition's next pack, in place of those that are kept for it now."""
    f.kept_free += bytes - h.kept_free
    h.kept_free = bytes


cdef void _remove(Fetch* f, Hold* h) noexcept nogil:
    """Forget a partition, whose pack has its outcome.  Locks: takes registry."""
    cdef int i = 0
    dp_assert(h.pack == NULL, "a partition without a pack is removed: number=%ld, state=%d", h.number, h.state)
    _keep_free(f, h, 0)                     # what still comes for it is not kept
    while f.holds[i] != h:
        i += 1
    pthread_mutex_lock(&f.registry)
    f.n_holds -= 1
    f.holds[i] = f.holds[f.n_holds]
    pthread_mutex_unlock(&f.registry)
    relaxed_add(&f.states[h.state], -1)
    _free_hold(h)


cdef void _finish_release(Fetch* f, Hold* h) noexcept nogil:
    exchange_tell(f.exchange, EK_RELEASED, h.number, 0, 0, slice_of(NULL, 0), slice_of(NULL, 0))
    _remove(f, h)


cdef void _lose(Fetch* f, Hold* h, int32_t code) noexcept nogil:
    """A broker has said that this reader does not hold the partition any more."""
    if h.pack != NULL:
        if h.state == HS_READY and exchange_withdraw(f.exchange, h.pack):
            _settle(f, h, PO_ROLLED_BACK, code)
        else:
            _settle(f, h, PO_EXPIRED, code)
    exchange_tell(f.exchange, EK_LOST, h.number, code, 0, slice_of(NULL, 0), slice_of(NULL, 0))
    _remove(f, h)


# --- requests


cdef bint _ask(Fetch* f, Hold* h, int64_t now_us) noexcept nogil:
    """Write the request for the next pack; False without memory."""
    cdef GetRequest g
    cdef uint8_t* to
    memset(&g, 0, sizeof(GetRequest))
    g.client = slice_of(f.client, f.client_n)
    g.group = slice_of(f.group, f.group_n)
    g.topic = slice_of(h.topic, h.topic_n)
    g.partition = h.partition
    to = connection_call(h.connection, CK_GET, h.number, READ_SERVICE, GET, get_size(&g), now_us, f.call_us)
    if to == NULL:
        return False
    put_get(to, &g)
    connection_written(h.connection)
    f.asked += 1
    # Where there was nothing a broker may let the request wait, and packs of others are not to wait for that one.
    _keep_free(f, h, 0 if h.nothing_ms and not h.needs else max(f.largest, h.needs))
    return True


cdef bint _tell_consumed(Fetch* f, Hold* h, int64_t now_us) noexcept nogil:
    """Write the confirm of a partition's pack; False without memory."""
    cdef CommitRequest c
    cdef uint8_t* to
    memset(&c, 0, sizeof(CommitRequest))
    c.client = slice_of(f.client, f.client_n)
    c.group = slice_of(f.group, f.group_n)
    c.topic = slice_of(h.topic, h.topic_n)
    c.partition = h.partition
    c.consumed = True
    to = connection_call(h.connection, CK_COMMIT, h.number, READ_SERVICE, COMMIT, commit_size(&c), now_us, f.call_us)
    if to == NULL:
        return False
    put_commit(to, &c)
    connection_written(h.connection)
    return True


cdef bint _has_room(const Fetch* f, const Hold* h, int64_t leaving) noexcept nogil:
    """Tell whether a partition's next pack may come; ``leaving``: bytes of one that is about to have its outcome."""
    cdef int64_t bytes = f.held_bytes - leaving + f.kept_free
    return bytes <= 0 or bytes + max(f.largest, h.needs) <= f.most_bytes


cdef int64_t _rules_wait(Fetch* f, Hold* h, FlowAnswer* a, int64_t now_us, int64_t wall_ms) noexcept nogil:
    a.filtered = h.n_filters > 0
    return flow_wait_ms(&h.flow, &f.rules[0], &f.rules[1], a, now_us, wall_ms)


cdef void _confirm(Fetch* f, Hold* h, int64_t now_us) noexcept nogil:
    """Tell the broker that a pack was consumed, and with it ask for the next one if nothing is against it.

    Partitions whose turn has come, and for which there was no room, go before this one's next pack.
    """
    cdef int64_t leaving = h.pack.memory - relaxed_load(&f.states[<int>HS_IDLE]) * f.largest
    if not _tell_consumed(f, h, now_us):
        _settle(f, h, PO_EXPIRED, PC_UNANSWERED)
        if h.releasing:
            _finish_release(f, h)
        else:
            _rest(f, h, OTHER_MS, now_us)
        return
    _enter(f, h, HS_CONFIRMING)
    h.ahead = False
    if not h.releasing and not h.paused and h.next_us <= now_us and _has_room(f, h, leaving):
        h.ahead = _ask(f, h, now_us)


cdef void _give_back(Fetch* f, Hold* h, int outcome, int64_t code, int64_t now_us) noexcept nogil:
    """End a pack that was not consumed: it comes again, to this reader or to the next one."""
    _settle(f, h, outcome, code)
    if h.releasing:
        _finish_release(f, h)
    else:
        _rest_until(f, h, h.next_us, now_us)


# --- answers


cdef void _take_pack(Fetch* f, Hold* h, const Got* got, TubePack* p, int64_t now_us, int64_t wall_ms) noexcept nogil:
    """Take the pack of an answer."""
    cdef FlowAnswer a
    memset(&a, 0, sizeof(FlowAnswer))
    a.code, a.bytes, a.backlog = FOUND, <int64_t>got.bytes, got.backlog
    a.escape, a.slow = got.escape, got.slow
    h.next_us = now_us + _rules_wait(f, h, &a, now_us, wall_ms) * 1000
    h.nothing_ms = 0
    if p.came == 0:                         # the broker has moved on by itself
        tubepack_let_go(p)
        exchange_count(f.exchange, 0, 0, 1, 0)
        _rest_until(f, h, h.next_us, now_us)
        return
    f.largest = max(p.memory, f.largest - (f.largest - LARGEST_PACK) // 8)     # one large pack is soon forgotten
    if f.held_bytes > 0 and f.held_bytes + p.memory > f.most_bytes:
        h.needs = p.memory                  # there is no room for it: it comes again when there is
        tubepack_let_go(p)
        _rest_until(f, h, h.next_us, now_us)
        return
    h.needs = 0
    p.hold = h.number
    exchange_count(f.exchange, p.broken, p.came - p.n - p.broken, 0, 0)
    h.pack = p
    f.held_bytes += p.memory
    if p.n == 0:                            # the broker waits for a confirm all the same
        exchange_passed(f.exchange, p)
        _confirm(f, h, now_us)
        return
    _enter(f, h, HS_READY)
    tubepack_hold(p)                        # the list's use, then the application's
    exchange_fetched(f.exchange, p)


cdef int64_t _wait_after(Fetch* f, Hold* h, int32_t code, int32_t asked_ms) noexcept nogil:
    """Return the wait in ms after an answer without a pack, before the rules are asked."""
    if code == NOTHING:             # the wait that a broker asks for is none then: it may be a number of bytes
        h.nothing_ms = min(max(2 * h.nothing_ms, <int64_t>FIRST_NOTHING_MS), f.nothing_ms)
        return h.nothing_ms
    if code == TOO_FAST:
        return asked_ms if asked_ms > 0 else TOO_FAST_MS
    if code == MOVED:
        return MOVED_MS
    return FORBIDDEN_MS if code == FORBIDDEN else OTHER_MS


cdef void _take_nothing(Fetch* f, Hold* h, const Got* got, int64_t now_us, int64_t wall_ms) noexcept nogil:
    cdef FlowAnswer a
    memset(&a, 0, sizeof(FlowAnswer))
    a.code, a.backlog = got.code, got.backlog
    a.wait_ms = _wait_after(f, h, got.code, got.wait_ms)
    a.escape, a.slow = got.escape, got.slow
    exchange_count(f.exchange, 0, 0, got.code == NOTHING, got.code != NOTHING)
    if got.code != NOTHING:
        exchange_tell(f.exchange, EK_TOLD, h.number, got.code, 0, _cut(got.text), slice_of(NULL, 0))
    _rest(f, h, _rules_wait(f, h, &a, now_us, wall_ms), now_us)


cdef bint _ends_reader(int32_t code) noexcept nogil:
    return code == UNKNOWN_READER or code == TAKEN or code == CREDENTIALS


cdef int _read_pack(
    const Hold* h, Connection* conn, const Answer* answer, Got* got, TubePack** out,
) noexcept nogil:
    """Read an answer; its pack keeps the block that the answer came in."""
    cdef int status
    if answer.status != RPC_SUCCESS:
        return ST_PROTOCOL
    if conn.block == NULL:
        return ST_NO_MEMORY
    status = tubepack_read(answer.data, conn.block, h.filters, h.n_filters, got, out)
    if status == ST_OK:
        conn.block = NULL
    return status


cdef void _get_ended(
    Fetch* f, Hold* h, Connection* conn, const Answer* answer, int64_t now_us, int64_t wall_ms,
) noexcept nogil:
    cdef Got got
    cdef TubePack* pack = NULL
    cdef int status
    if h.state == HS_CONFIRMING:            # its confirm has no end yet, and this pack is not waited for any more
        h.ahead = False
        return
    if h.state != HS_ASKED:
        return
    if answer == NULL:                      # as soon as a new connection may be made
        _rest(f, h, max(conn.again_us - now_us, <int64_t>0) // 1000, now_us)
        return
    status = _read_pack(h, conn, answer, &got, &pack)
    if status == ST_NO_MEMORY:
        _rest(f, h, OTHER_MS, now_us)
        return
    if status != ST_OK:
        exchange_count(f.exchange, 0, 0, 0, 1)
        exchange_tell(f.exchange, EK_TOLD, h.number, 0, answer.status, _cut(answer.exception), _cut(answer.trace))
        _rest(f, h, OTHER_MS, now_us)
        return
    if got.offset != UNKNOWN:
        relaxed_store(&h.offset, got.offset)
    if got.max_offset != UNKNOWN:
        relaxed_store(&h.max_offset, got.max_offset)
    if got.backlog != UNKNOWN:
        relaxed_store(&h.backlog, got.backlog)
    if got.code == FOUND and not h.paused:
        _take_pack(f, h, &got, pack, now_us, wall_ms)
        return
    if got.code == FOUND:                   # paused since it was asked for: the broker gives the same pack again
        _rest(f, h, 0, now_us)
    elif _ends_reader(got.code):
        _lose(f, h, got.code)
    else:
        _take_nothing(f, h, &got, now_us, wall_ms)
    tubepack_let_go(pack)


cdef void _commit_ended(Fetch* f, Hold* h, const Answer* answer, int64_t now_us) noexcept nogil:
    cdef Committed done
    cdef int32_t code = 0
    if h.state != HS_CONFIRMING:
        return
    memset(&done, 0, sizeof(Committed))
    if answer != NULL and answer.status == RPC_SUCCESS and read_committed(answer.data, &done) == ST_OK:
        code = done.code
    if code == FOUND:
        if done.offset != UNKNOWN:
            relaxed_store(&h.offset, done.offset)
        if done.max_offset != UNKNOWN:
            relaxed_store(&h.max_offset, done.max_offset)
        _settle(f, h, PO_CONFIRMED, 0)
    else:
        _settle(f, h, PO_EXPIRED, code if code > 0 else PC_UNANSWERED)     # codes below 0 are of this side
    if h.releasing:
        _finish_release(f, h)
    elif (code == NOT_OWNER or _ends_reader(code)):
        _lose(f, h, code)
    elif h.ahead:
        h.ahead = False
        _enter(f, h, HS_ASKED)
    else:
        _rest_until(f, h, h.next_us, now_us)


cdef void fetch_call_ended(
    Fetch* f, Connection* conn, const PendingCall* call, const Answer* answer, int fault, int detail, int64_t now_us,
    int64_t wall_ms,
) noexcept nogil:
    """Take the end of a call."""
    cdef Hold* h
    cdef Slice none = slice_of(NULL, 0)
    if call.kind == CK_CONTROL:
        if answer == NULL:
            exchange_tell(f.exchange, EK_FAULT, call.number, fault, detail, none, none)
        elif answer.status == RPC_SUCCESS and conn.block != NULL:
            if exchange_hand(f.exchange, EK_ANSWER, call.number, answer.status, answer.data, conn.block) == ST_OK:
                conn.block = NULL
        elif answer.status == RPC_SUCCESS:
            exchange_tell(f.exchange, EK_ANSWER, call.number, answer.status, 0, answer.data, none)
        else:
            exchange_tell(f.exchange, EK_ANSWER, call.number, answer.status, 0, answer.exception, answer.trace)
        return
    if call.kind == CK_GET:
        f.asked -= 1
    h = _find(f, call.number)
    if h == NULL:                           # it was given back meanwhile
        return
    if call.kind == CK_GET:
        _keep_free(f, h, 0)
    if answer == NULL and fault != CF_CLOSED:
        exchange_tell(f.exchange, EK_BROKEN, h.number, fault, detail, none, none)
    if call.kind == CK_GET:
        _get_ended(f, h, conn, answer, now_us, wall_ms)
    elif call.kind == CK_COMMIT:
        _commit_ended(f, h, answer, now_us)


cdef void fetch_lost(Fetch* f, const Connection* conn, int64_t now_us) noexcept nogil:
    """Take back what came over a connection that was lost, unless the application has it.

    A broker that was started again does not know its readers: a partition may be another member's by now, and it may
    have confirmed the same pack.  Locality: the fetching thread.
    """
    cdef Hold* h
    cdef int i = f.n_holds
    while i > 0:                            # from the end: a partition may be removed
        i -= 1
        h = f.holds[i]
        if h.connection == conn and h.state == HS_READY and exchange_withdraw(f.exchange, h.pack):
            _give_back(f, h, PO_ROLLED_BACK, 0, now_us)


# --- commands


cdef int _grow(Fetch* f) noexcept nogil:
    """Make room for one more.  Locks: takes registry."""
    cdef Hold** grown
    cdef int cap = 2 * f.cap if f.cap else 16
    if f.n_holds < f.cap:
        return ST_OK
    pthread_mutex_lock(&f.registry)
    grown = <Hold**>realloc(f.holds, <size_t>cap * sizeof(Hold*))
    if grown != NULL:
        f.holds = grown
        f.cap = cap
    pthread_mutex_unlock(&f.registry)
    return ST_OK if grown != NULL else ST_NO_MEMORY


cdef int _hold(Fetch* f, Command* c) noexcept nogil:
    """Begin with a partition, which takes over topic and filters of the command; ST_OK or ST_NO_MEMORY."""
    cdef Hold* h = <Hold*>calloc(1, sizeof(Hold))
    cdef Connection* connection = f.hooks.connection(f.hooks.context, &c.peer)
    if h == NULL or connection == NULL or _grow(f) != ST_OK:
        free(h)
        return ST_NO_MEMORY
    h.number, h.connection, h.partition = c.number, connection, c.partition
    h.topic, h.topic_n = c.data, c.n
    h.filters, h.n_filters = c.filters, c.n_filters
    c.data, c.filters = NULL, NULL
    h.offset, h.max_offset = c.offset, c.end if c.end >= 0 else UNKNOWN
    h.backlog = 0 if c.offset == c.end else UNKNOWN
    flow_begin(&h.flow)
    h.paused = c.paused
    h.state = HS_FROZEN if h.paused else HS_IDLE
    relaxed_add(&f.states[h.state], 1)
    pthread_mutex_lock(&f.registry)
    f.holds[f.n_holds] = h
    f.n_holds += 1
    pthread_mutex_unlock(&f.registry)
    return ST_OK


cdef void _release(Fetch* f, Hold* h, int64_t until_us, int64_t why) noexcept nogil:
    if h.state == HS_READY and exchange_withdraw(f.exchange, h.pack):
        _settle(f, h, PO_ROLLED_BACK, why)
    h.releasing = True
    h.until_us, h.why = until_us, why
    if h.pack == NULL:
        _finish_release(f, h)


cdef void _drop(Fetch* f, Hold* h, int32_t code) noexcept nogil:
    if h.pack != NULL:
        if h.state == HS_READY and exchange_withdraw(f.exchange, h.pack):
            _settle(f, h, PO_ROLLED_BACK, code)
        else:
            _settle(f, h, PO_EXPIRED, code)
    _remove(f, h)


cdef void _pause(Fetch* f, Hold* h, int64_t now_us) noexcept nogil:
    """Give out nothing more of a partition; a pack that the application does not have goes back."""
    h.paused = True
    if h.state == HS_READY and exchange_withdraw(f.exchange, h.pack):
        _give_back(f, h, PO_ROLLED_BACK, 0, now_us)
    elif h.state == HS_IDLE or h.state == HS_DELAYED:
        if h.state == HS_IDLE:
            h.due_us = now_us
        _enter(f, h, HS_FROZEN)


cdef void _resume(Fetch* f, Hold* h) noexcept nogil:
    h.paused = False
    if h.state == HS_FROZEN:
        _enter(f, h, HS_DELAYED)            # for what is left of its wait


cdef void _follow(Fetch* f, Hold* h, const Peer* peer) noexcept nogil:
    """Use another connection from the next request on: the broker of a partition has another address."""
    cdef Connection* connection = f.hooks.connection(f.hooks.context, peer)
    if connection != NULL:                  # without memory it stays as it is, and is tried again
        h.connection = connection


cdef void _end_pack(Fetch* f, Command* c, int64_t now_us) noexcept nogil:
    """Confirm a pack, or roll it back; nothing if it has its outcome already."""
    cdef Hold* h
    if atomic_load(&c.pack.outcome) != PO_HELD:
        return
    h = _find(f, c.pack.hold)
    if h == NULL or h.pack != c.pack or h.state != HS_READY:
        return
    if c.kind == CM_CONFIRM:
        _confirm(f, h, now_us)
    else:
        _give_back(f, h, PO_ROLLED_BACK, 0, now_us)


cdef void _call(Fetch* f, Command* c, int64_t now_us) noexcept nogil:
    cdef Connection* connection = f.hooks.connection(f.hooks.context, &c.peer)
    cdef uint8_t* to = NULL
    if connection != NULL:
        to = connection_call(connection, CK_CONTROL, c.number, c.service, c.method, c.n, now_us, c.time_us)
    if to == NULL:
        exchange_tell(f.exchange, EK_FAULT, c.number, CF_MEMORY, 0, slice_of(NULL, 0), slice_of(NULL, 0))
        return
    if c.n:
        memcpy(to, c.data, c.n)
    connection_written(connection)


cdef void fetch_command(Fetch* f, Command* c, int64_t now_us) noexcept nogil:
    """Do what a command says, and release it."""
    cdef Hold* h
    if c.kind == CM_CALL:
        _call(f, c, now_us)
    elif c.kind == CM_HOLD:
        if _hold(f, c) != ST_OK:
            exchange_tell(f.exchange, EK_LOST, c.number, 0, 0, slice_of(NULL, 0), slice_of(NULL, 0))
    elif c.kind == CM_CONFIRM or c.kind == CM_ROLL_BACK:
        _end_pack(f, c, now_us)
    elif c.kind == CM_RULES:
        memcpy(f.rules, c.rules, 2 * sizeof(FlowRules))
    else:
        h = _find(f, c.number)
        if h == NULL:
            pass                            # it was lost before the command came
        elif c.kind == CM_RELEASE:
            _release(f, h, c.time_us, c.code)
        elif c.kind == CM_DROP:
            _drop(f, h, c.code)
        elif c.kind == CM_PAUSE:
            _pause(f, h, now_us)
        elif c.kind == CM_RESUME:
            _resume(f, h)
        elif c.kind == CM_FOLLOW:
            _follow(f, h, &c.peer)
    command_free(c)


# --- time


cdef int64_t _limit(Fetch* f, Hold* h, int64_t now_us) noexcept nogil:
    """Return when the pack of a partition is taken away from the application; -1: not by time."""
    cdef int64_t taken, limit
    if h.state != HS_READY:
        return -1
    taken = exchange_taken(f.exchange, h.pack)
    limit = (now_us if taken < 0 else taken) + f.confirm_us
    return min(limit, h.until_us) if h.releasing else limit


cdef Hold* _next_idle(Fetch* f) noexcept nogil:
    """Return the idle partition whose turn it is, and let the cursor stand there; NULL: there is none."""
    if relaxed_load(&f.states[<int>HS_IDLE]):
        for _ in range(f.n_holds):
            if f.cursor >= f.n_holds:
                f.cursor = 0
            if f.holds[f.cursor].state == HS_IDLE:
                return f.holds[f.cursor]
            f.cursor += 1
    return NULL


cdef void fetch_advance(Fetch* f, int64_t now_us) noexcept nogil:
    """Do what time asks for, then ask for packs of as many partitions as there is room for, in turn."""
    cdef Hold* h
    cdef int64_t limit
    cdef int i = f.n_holds
    while i > 0:                            # from the end: a partition may be removed
        i -= 1
        h = f.holds[i]
        if h.state == HS_DELAYED and h.due_us <= now_us:
            _enter(f, h, HS_IDLE)
        elif h.state == HS_READY:
            limit = _limit(f, h, now_us)
            if limit <= now_us:
                _give_back(f, h, PO_EXPIRED, h.why if h.releasing else PC_LATE, now_us)
    for _ in range(f.n_holds):
        h = _next_idle(f)
        if h == NULL or not _has_room(f, h, 0):
            return                          # it stays the next one
        f.cursor += 1
        if now_us < h.connection.again_us:
            h.due_us = h.connection.again_us
            _enter(f, h, HS_DELAYED)
        elif _ask(f, h, now_us):
            _enter(f, h, HS_ASKED)
        else:
            _rest(f, h, OTHER_MS, now_us)


cdef int64_t fetch_due(Fetch* f, int64_t now_us) noexcept nogil:
    """Return when ``fetch_advance`` has something to do by itself; -1: never."""
    cdef int64_t due = INT64_MAX, limit
    cdef Hold* h
    cdef int i
    h = _next_idle(f)
    if h != NULL and _has_room(f, h, 0):    # which there was not at the last turn
        return now_us
    for i in range(f.n_holds):
        h = f.holds[i]
        if h.state == HS_DELAYED:
            due = min(due, h.due_us)
        elif h.state == HS_READY:
            limit = _limit(f, h, now_us)
            due = min(due, limit)
    return -1 if due == INT64_MAX else due


cdef void fetch_end(Fetch* f) noexcept nogil:
    """Give every pack an outcome, and forget all partitions.  Locality: the fetching thread, at its end."""
    cdef Hold* h
    while f.n_holds:
        h = f.holds[f.n_holds - 1]
        if h.pack != NULL:
            if h.state == HS_READY and exchange_withdraw(f.exchange, h.pack):
                _settle(f, h, PO_ROLLED_BACK, PC_CLOSED)
            else:
                _settle(f, h, PO_EXPIRED, PC_CLOSED)
        _remove(f, h)


cdef bint fetch_balances(const Fetch* f) noexcept nogil:
    """Tell whether each partition is in one state, with a pack where the state has one.  Locality: the fetching thread.

    For tests.
    """
    cdef int64_t counts[6]
    cdef int64_t bytes = 0, kept_free = 0
    cdef int i
    memset(counts, 0, sizeof(counts))
    for i in range(f.n_holds):
        counts[f.holds[i].state] += 1
        if (f.holds[i].pack != NULL) != (f.holds[i].state == HS_READY or f.holds[i].state == HS_CONFIRMING):
            return False
        kept_free += f.holds[i].kept_free
        if f.holds[i].pack != NULL:
            bytes += f.holds[i].pack.memory
    for i in range(HOLD_STATES):
        if counts[i] != relaxed_load(&f.states[i]):
            return False
    return bytes == f.held_bytes and kept_free == f.kept_free
