"""Python access to a consumer's partitions and connections without sockets and without a clock, for tests."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, strcmp

from dataproxy._core.base.blocks cimport block_alloc
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.consumer.exchange cimport (
    CM_CALL, CM_CONFIRM, CM_DROP, CM_FOLLOW, CM_HOLD, CM_PAUSE, CM_RELEASE, CM_RESUME, CM_ROLL_BACK, CM_RULES,
    EK_ANSWER, EK_BROKEN, EK_FAULT, EK_LOST, EK_RELEASED, EK_TOLD, Command, Event, Exchange, Peer, Tally, event_free,
    exchange_close, exchange_commands, exchange_events, exchange_open, exchange_post, exchange_take, exchange_tell,
    exchange_wait_events,
)
from dataproxy._core.consumer.fetch cimport (
    HOLD_STATES, HS_ASKED, HS_CONFIRMING, HS_DELAYED, HS_FROZEN, HS_IDLE, HS_READY, Fetch, FetchHooks, fetch_advance,
    fetch_balances, fetch_call_ended, fetch_command, fetch_due, fetch_end, fetch_free, fetch_lost, fetch_open,
)
from dataproxy._core.consumer.flow cimport FlowRules
from dataproxy._core.consumer.connection cimport (
    CF_CONNECT, CF_LOST, CF_PROTOCOL, CS_CLOSED, CS_CONNECTING, CS_OPEN, CS_WANTED, Connection, PendingCall,
    connection_call,
    connection_connected, connection_due, connection_free, connection_lost, connection_open, connection_take,
    connection_written,
)
from dataproxy._core.consumer.pack cimport Pack
from dataproxy._core.consumer.tubepack cimport PC_REVOKED, PC_SOUGHT, TubePack, tubepack_hold, tubepack_read
from dataproxy._core.wire.tubemq.get cimport Got
from dataproxy._core.wire.tubemq.rpc cimport Answer

__all__ = ["Line", "Reader", "hold_of", "pack_of"]

STATES = {HS_IDLE: "idle", HS_DELAYED: "delayed", HS_FROZEN: "frozen", HS_ASKED: "asked", HS_READY: "ready",
          HS_CONFIRMING: "confirming"}
CONNECTION_STATES = {CS_CLOSED: "closed", CS_WANTED: "wanted", CS_CONNECTING: "connecting", CS_OPEN: "open"}
EVENTS = {EK_ANSWER: "answer", EK_FAULT: "fault", EK_RELEASED: "released", EK_LOST: "lost", EK_TOLD: "told",
          EK_BROKEN: "broken"}

cdef enum:
    CONNECTIONS_MOST = 16


cdef bytes _taken(Slice s):
    return (<const char*>s.p)[:s.n] if s.n else b""


cdef Slice _given(bytes data):
    return slice_of(<const char*>data, <size_t>len(data))


def hold_of(Pack pack not None):
    """Return the number of the hold that a pack came for."""
    return pack.pack.hold


def pack_of(bytes answer not None, str topic, str partition, list filters=None):
    """Return the pack of a GetMessageResponseB2C."""
    cdef Got got
    cdef TubePack* made = NULL
    cdef uint8_t* block = block_alloc(len(answer) + 1)
    cdef Slice wanted[8]
    cdef int i, status, n = 0 if filters is None else len(filters)
    assert n <= 8 and block != NULL
    memcpy(block, <const char*>answer, len(answer))
    for i in range(n):
        wanted[i] = _given(filters[i])
    status = tubepack_read(slice_of(block, len(answer)), block, wanted, n, &got, &made)
    assert status == ST_OK
    return Pack.make(made, None, topic, partition)


cdef class Line:
    """One connection.  ``ends`` has the end of each call: (number, serial, kind, answer or None, fault, detail)."""

    cdef Connection* connection
    cdef bytes rest
    cdef public list ends

    def __cinit__(self):
        self.connection = <Connection*>calloc(1, sizeof(Connection))
        connection_open(self.connection, _note, <void*>self)
        self.rest, self.ends = b"", []

    def __dealloc__(self):
        connection_free(self.connection)
        free(self.connection)

    def call(self, int64_t number, int32_t service, int32_t method, bytes request, int64_t now, int64_t timeout):
        """Make a control call; times in us."""
        cdef uint8_t* to = connection_call(
            self.connection, 0, number, service, method, <size_t>len(request), now, timeout)
        memcpy(to, <const char*>request, len(request))
        connection_written(self.connection)

    def connecting(self, int64_t until):
        """Begin to connect."""
        self.connection.state, self.connection.connect_until_us = CS_CONNECTING, until

    def connected(self):
        """End the connect."""
        self.rest = b""
        connection_connected(self.connection)

    def written(self):
        """Return the bytes that are to be written, and take them for written."""
        return _written(self.connection)

    def receive(self, bytes data, int64_t now=0):
        """Take bytes from the peer; False if they end the connection."""
        self.rest, good = _receive(self.connection, self.rest + data, now)
        return good

    def lost(self, int fault, int detail, int64_t now):
        """End the connection."""
        connection_lost(self.connection, fault, detail, now)

    @property
    def rest_size(self):
        """Return the bytes that are no whole frame yet."""
        return len(self.rest)

    @property
    def state(self):
        """Return the name of the connection's state."""
        return CONNECTION_STATES[self.connection.state]

    @property
    def due(self):
        """Return when a call, or the connect, is too late."""
        return connection_due(self.connection)

    @property
    def again(self):
        """Return until when no packs are asked for."""
        return self.connection.again_us

    @property
    def faults(self):
        """Return the connections in a row that ended without an answer."""
        return self.connection.faults


cdef tuple _told(const Answer* answer):
    """Return (status, data or the name of the exception)."""
    if answer.status:
        return answer.status, _taken(answer.exception)
    return answer.status, _taken(answer.data)


cdef void _note(
    void* context, Connection* connection, const PendingCall* call, const Answer* answer, int fault, int detail,
) noexcept with gil:
    cdef Line line = <Line>context
    cdef object found = None
    if answer != NULL:
        found = _told(answer)
    line.ends.append((call.number, call.serial, call.kind, found, fault, detail))


cdef bytes _written(Connection* connection):
    cdef bytes data = (<const char*>connection.out.p)[connection.out_at:connection.out.n] if connection.out.n else b""
    connection.out.n = connection.out_at = 0
    return data


cdef tuple _receive(Connection* connection, bytes data, int64_t now_us):
    """Return (what is left, whether it was good); the memory has exactly the data's size, for a sanitizer."""
    cdef size_t used = 0, n = <size_t>len(data)
    cdef uint8_t* copy = <uint8_t*>malloc(n if n else 1)
    cdef int status
    memcpy(copy, <const char*>data, n)
    with nogil:
        status = connection_take(connection, copy, n, now_us, &used)
    free(copy)
    return data[used:], status == ST_OK


ctypedef struct Held:
    Exchange exchange
    Fetch fetch
    Connection* connections[CONNECTIONS_MOST]
    int n
    int64_t now_us
    int64_t wall_ms


cdef void _ended(
    void* context, Connection* connection, const PendingCall* call, const Answer* answer, int fault, int detail,
) noexcept nogil:
    cdef Held* h = <Held*>context
    fetch_call_ended(&h.fetch, connection, call, answer, fault, detail, h.now_us, h.wall_ms)


cdef Connection* _connection(void* context, const Peer* peer) noexcept nogil:
    cdef Held* h = <Held*>context
    cdef Connection* made
    cdef int i
    for i in range(h.n):
        if strcmp(h.connections[i].label, peer.label) == 0:
            return h.connections[i]
    if h.n == CONNECTIONS_MOST:
        return NULL
    made = <Connection*>calloc(1, sizeof(Connection))
    if made == NULL:
        return NULL
    memcpy(made.label, peer.label, sizeof(peer.label))
    connection_open(made, _ended, h)
    h.connections[h.n] = made
    h.n += 1
    return made


cdef void _take_rules(FlowRules* to, object rules) except *:
    to.n_volume, to.n_empty = len(rules.volume), len(rules.empty)
    for i, one in enumerate(rules.volume):
        to.volume[i].first_minute, to.volume[i].last_minute = one.first_minute, one.last_minute
        to.volume[i].backlog, to.volume[i].bytes, to.volume[i].wait_ms = one.backlog, one.bytes_a_minute, one.wait_ms
    for i, one in enumerate(rules.empty):
        to.empty[i].times, to.empty[i].wait_ms = one.times, one.wait_ms
    if rules.pace is not None:
        to.has_pace = True
        to.pace_ms, to.filtered_ms, to.filtered_near_ms = rules.pace


cdef class Reader:
    """Partitions and connections of one consumer.  Times are in s, ``now`` is what the test says; servers have a name.

    What a command says is done at once.
    """

    cdef Held* h
    cdef dict rests

    def __cinit__(self, *, double call=10.0, double confirm=60.0, double nothing=0.4, int64_t prefetch=8 << 20,
                  bytes client=b"c-1", bytes group=b"g"):
        cdef FetchHooks hooks
        self.rests = {}
        self.h = <Held*>calloc(1, sizeof(Held))
        hooks.context, hooks.connection = self.h, _connection
        assert exchange_open(&self.h.exchange) == ST_OK
        assert fetch_open(&self.h.fetch, &self.h.exchange, _given(client), _given(group), &hooks) == ST_OK
        self.h.fetch.call_us, self.h.fetch.confirm_us = <int64_t>(call * 1e6), <int64_t>(confirm * 1e6)
        self.h.fetch.nothing_ms, self.h.fetch.most_bytes = <int64_t>(nothing * 1000), prefetch
        self.h.now_us = 1000000000
        self.h.wall_ms = 1764043200000

    def __dealloc__(self):
        cdef int i
        fetch_free(&self.h.fetch)
        for i in range(self.h.n):
            connection_free(self.h.connections[i])
            free(self.h.connections[i])
        exchange_close(&self.h.exchange)
        free(self.h)

    @property
    def now(self):
        """The time in us."""
        return self.h.now_us

    @now.setter
    def now(self, int64_t us):
        assert us >= self.h.now_us
        self.h.wall_ms += us // 1000 - self.h.now_us // 1000
        self.h.now_us = us

    def step_wall(self, int64_t ms):
        """Let somebody set the wall clock."""
        self.h.wall_ms += ms

    def sleep(self, double seconds):
        """Let time pass, and do what it asks for."""
        self.now = self.h.now_us + <int64_t>(seconds * 1e6 + 0.5)
        self.advance()

    # --- commands

    cdef Command* command(self, int kind, int64_t number) except NULL:
        cdef Command* c = <Command*>calloc(1, sizeof(Command))
        if c == NULL:
            raise MemoryError
        c.kind, c.number = kind, number
        return c

    cdef int post(self, Command* c) except -1:
        """Do a command, by the way that a consumer's threads hand it over."""
        cdef bint stop = False
        exchange_post(&self.h.exchange, c)
        c = exchange_commands(&self.h.exchange, &stop)
        with nogil:
            fetch_command(&self.h.fetch, c, self.h.now_us)
        return 0

    cdef int fill(self, Command* c, str server, bytes data) except -1:
        cdef bytes label = server.encode()
        memcpy(c.peer.label, <const char*>label, len(label))
        c.n = <size_t>len(data)
        c.data = <uint8_t*>malloc(c.n + 1)
        memcpy(c.data, <const char*>data, c.n)
        return 0

    def call(self, int64_t number, str server, int32_t service, int32_t method, bytes request, double timeout):
        """Make a control call."""
        cdef Command* c = self.command(CM_CALL, number)
        self.fill(c, server, request)
        c.service, c.method, c.time_us = service, method, <int64_t>(timeout * 1e6)
        self.post(c)

    def hold(self, int64_t number, str server="a", str topic="t", int32_t partition=0, int64_t offset=-1,
             int64_t end=-1, filters=(), bint paused=False):
        """Read packs of a partition."""
        cdef Command* c = self.command(CM_HOLD, number)
        cdef bytes item, joined = b"".join(filters)
        cdef uint8_t* to
        cdef int i
        self.fill(c, server, topic.encode())
        c.partition, c.offset, c.end, c.n_filters, c.paused = partition, offset, end, len(filters), paused
        if filters:
            c.filters = <Slice*>malloc(c.n_filters * sizeof(Slice) + <size_t>len(joined))
            to = <uint8_t*>&c.filters[c.n_filters]
            for i in range(c.n_filters):
                item = filters[i]
                memcpy(to, <const char*>item, len(item))
                c.filters[i] = slice_of(to, <size_t>len(item))
                to += len(item)
        self.post(c)

    def release(self, int64_t number, double seconds, bint sought=False):
        """Give a partition back; its last pack may be confirmed for so long."""
        cdef Command* c = self.command(CM_RELEASE, number)
        c.time_us = self.h.now_us + <int64_t>(seconds * 1e6)
        c.code = PC_SOUGHT if sought else PC_REVOKED
        self.post(c)

    def follow(self, int64_t number, str server):
        """Read a partition at another server."""
        cdef Command* c = self.command(CM_FOLLOW, number)
        self.fill(c, server, b"")
        self.post(c)

    def drop(self, int64_t number, int32_t code):
        """Forget a partition."""
        cdef Command* c = self.command(CM_DROP, number)
        c.code = code
        self.post(c)

    def pause(self, int64_t number):
        """Ask for no more packs of a partition."""
        self.post(self.command(CM_PAUSE, number))

    def resume(self, int64_t number):
        """Ask again."""
        self.post(self.command(CM_RESUME, number))

    def rules(self, group, cluster):
        """Follow these rules."""
        cdef Command* c = self.command(CM_RULES, 0)
        c.rules = <FlowRules*>calloc(2, sizeof(FlowRules))
        _take_rules(&c.rules[0], group)
        _take_rules(&c.rules[1], cluster)
        self.post(c)

    def take(self):
        """Return the oldest pack that is ready, or None."""
        cdef TubePack* p = exchange_take(&self.h.exchange, self.h.now_us)
        return None if p == NULL else Pack.make(p, None, "t", f"a:t:{p.hold}")

    def confirm(self, Pack pack not None):
        """Say that a pack was consumed."""
        cdef Command* c = self.command(CM_CONFIRM, 0)
        tubepack_hold(pack.pack)
        c.pack = pack.pack
        self.post(c)

    def rollback(self, Pack pack not None):
        """Give a pack back."""
        cdef Command* c = self.command(CM_ROLL_BACK, 0)
        tubepack_hold(pack.pack)
        c.pack = pack.pack
        self.post(c)

    # --- time

    def advance(self):
        """Do what the time asks for."""
        with nogil:
            fetch_advance(&self.h.fetch, self.h.now_us)

    def due(self):
        """Return the us until ``advance`` has something to do; None: never."""
        cdef int64_t when = fetch_due(&self.h.fetch, self.h.now_us)
        return None if when < 0 else when - self.h.now_us

    def end(self):
        """Give every pack an outcome."""
        fetch_end(&self.h.fetch)

    # --- connections

    cdef Connection* find(self, str server) except NULL:
        cdef int i
        for i in range(self.h.n):
            if self.h.connections[i].label == server.encode():
                return self.h.connections[i]
        raise KeyError(server)

    def servers(self):
        """Return the names of the servers that there are connections to."""
        return [self.h.connections[i].label.decode() for i in range(self.h.n)]

    def connecting(self, str server, double seconds):
        """Begin to connect."""
        cdef Connection* one = self.find(server)
        assert one.state == CS_WANTED
        one.state, one.connect_until_us = CS_CONNECTING, self.h.now_us + <int64_t>(seconds * 1e6)

    def connected(self, str server):
        """End the connect."""
        self.rests[server] = b""
        connection_connected(self.find(server))

    def written(self, str server):
        """Return the bytes for a server that is connected, and take them for written."""
        cdef Connection* one = self.find(server)
        return _written(one) if one.state == CS_OPEN else b""

    def receive(self, str server, bytes data):
        """Take bytes from a server; wrong ones end the connection."""
        cdef Connection* one = self.find(server)
        assert one.state == CS_OPEN
        self.rests[server], good = _receive(one, self.rests[server] + data, self.h.now_us)
        if not good:
            connection_lost(one, CF_PROTOCOL, 0, self.h.now_us)
            fetch_lost(&self.h.fetch, one, self.h.now_us)
        return good

    def lost(self, str server, int fault=CF_LOST, int detail=0):
        """End a connection, or the try to make one."""
        cdef Connection* one = self.find(server)
        if one.state == CS_CONNECTING and fault == CF_LOST:
            fault = CF_CONNECT
        connection_lost(one, fault, detail, self.h.now_us)
        fetch_lost(&self.h.fetch, one, self.h.now_us)

    def connection(self, str server):
        """Return (state, faults in a row, us until packs are asked for again, us until a call is too late or None)."""
        cdef Connection* one = self.find(server)
        cdef int64_t when = connection_due(one)
        return (CONNECTION_STATES[one.state], one.faults, max(one.again_us - self.h.now_us, 0),
                None if when < 0 else when - self.h.now_us)

    def needs(self):
        """Return (server, "late", "connect" or "write") of each connection with something to do, as a loop looks."""
        cdef Connection* one
        cdef int64_t due
        cdef int i
        found = []
        for i in range(self.h.n):
            one = self.h.connections[i]
            due = connection_due(one)
            if 0 <= due <= self.h.now_us:
                found.append((one.label.decode(), "late"))
            elif one.state == CS_WANTED:
                found.append((one.label.decode(), "connect"))
            elif one.state == CS_OPEN and one.out_at < one.out.n:
                found.append((one.label.decode(), "write"))
        return found

    def wait(self):
        """Return the us until partitions or connections have something to do by themselves; None: never."""
        cdef int64_t when = fetch_due(&self.h.fetch, self.h.now_us)
        cdef int64_t due
        cdef int i
        for i in range(self.h.n):
            due = connection_due(self.h.connections[i])
            if due >= 0 and (when < 0 or due < when):
                when = due
        return None if when < 0 else when - self.h.now_us

    # --- what there is to see

    def miss(self, size_t size):
        """Tell an event of so many bytes, more than there are; return whether that is known, and ends a wait."""
        cdef Slice none = slice_of(NULL, 0)
        cdef bint whole
        if exchange_tell(&self.h.exchange, EK_TOLD, 1, 0, 0, none, slice_of(NULL, size)) != ST_NO_MEMORY:
            return False
        with nogil:
            whole = exchange_wait_events(&self.h.exchange, 1 << 62)
        return not whole

    def events(self):
        """Return (kind, number, code, detail, data, trace) of all events since the last call."""
        cdef Event* e = exchange_events(&self.h.exchange)
        cdef Event* following
        found = []
        while e != NULL:
            data = (<const char*>e.data)[:e.n]
            found.append((EVENTS[e.kind], e.number, e.code, e.detail, data[:e.cut], data[e.cut:]))
            following = e.next
            event_free(e)
            e = following
        return found

    def state(self, int64_t number):
        """Return the name of a partition's state; None: it is not held."""
        cdef int i
        for i in range(self.h.fetch.n_holds):
            if self.h.fetch.holds[i].number == number:
                return STATES[self.h.fetch.holds[i].state]
        return None

    def states(self):
        """Return how many partitions are in each state."""
        cdef int i
        found = {}
        for i in range(HOLD_STATES):
            if self.h.fetch.states[i]:
                found[STATES[i]] = self.h.fetch.states[i]
        return found

    def holds(self):
        """Return the numbers of all partitions that are held."""
        return [self.h.fetch.holds[i].number for i in range(self.h.fetch.n_holds)]

    def offsets(self, int64_t number):
        """Return (offset, max_offset, backlog) of a partition."""
        cdef int i
        for i in range(self.h.fetch.n_holds):
            if self.h.fetch.holds[i].number == number:
                return (self.h.fetch.holds[i].offset, self.h.fetch.holds[i].max_offset, self.h.fetch.holds[i].backlog)
        raise KeyError(number)

    @property
    def balances(self):
        """Tell whether each partition is in one state, with a pack where it has one."""
        return bool(fetch_balances(&self.h.fetch))

    @property
    def asked(self):
        """Return how many packs were asked for and have not come."""
        return self.h.fetch.asked

    @property
    def held_bytes(self):
        """Return the bytes of packs without an outcome."""
        return self.h.fetch.held_bytes

    @property
    def ready(self):
        """Return how many packs wait for the application."""
        return self.h.exchange.n_ready

    def tally(self):
        """Return (packs, messages, others): the first two by fetched, confirmed, rolled back, expired."""
        cdef Tally t
        memcpy(&t, &self.h.exchange.tally, sizeof(Tally))
        return ([n for n in t.packs], [n for n in t.messages],
                {"bytes": t.bytes, "broken": t.broken, "filtered": t.filtered, "empty": t.empty, "refused": t.refused})
