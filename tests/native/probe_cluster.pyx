"""Many producers and many proxies on virtual time: the compiled pools of connections, and proxies as queues of work.

A producer is a pool of connections (``conn``: router, outliers, standbys, retries, heartbeats, real frames and real
answers).  A proxy is a number of workers with one queue; it answers each connection in order.  The network carries
bytes in order with a delay, and never holds a writer back.
"""

from libc.math cimport log
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport atoi, calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport buf_free
from dataproxy._core.base.rand cimport rand_below, rand_next
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.base.timers cimport timers_next
from dataproxy._core.conn.connection cimport (
    CE_CONNECT_FAILED, CE_LOST, CF_CLOSE, CF_CONNECT, CF_LOOK, CF_WRITE, CS_ACTIVE, CS_CONNECTING, MAX_REPLY,
    CLASSES, ClusterPart, Connection, ConnectionConfig, ConnectionPool, Endpoint, ProxyLists, Shape,
)
from dataproxy._core.conn.framing cimport FrameRules, frame_pack
from dataproxy._core.conn.balance.places cimport connection_rest, connection_use
from dataproxy._core.conn.pool cimport (
    connections_abort, connections_connected, connections_endpoints, connections_expire, connections_free,
    connections_looked, connections_lost, connections_open, connections_submit, connections_take_dirty,
)
from dataproxy._core.conn.replies cimport take_bytes
from dataproxy._core.conn.balance.router cimport load_average_by_slot
from dataproxy._core.conn.sendq cimport sendq_gather, sendq_wrote
from dataproxy._core.pack.pack cimport (
    OUT_DELIVERED, PK_POSTED, PK_TAKEN, Pack, PackPool, list_pop, pack_enter, pool_close, pool_give, pool_open,
    pool_take,
)
from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.plat.socket cimport iovec
from dataproxy._core.wire.api cimport Request, ServerProfile
from dataproxy._core.wire.inlong.codec cimport inlong_ops

__all__ = ["ClusterSim"]

cdef enum EventKind:
    EV_SEND = 1         # a producer sends a pack
    EV_TIMER = 2        # timers of a producer are due
    EV_CONNECT = 3      # a connect is decided
    EV_ARRIVE = 4       # bytes reach a proxy
    EV_REPLY = 5        # bytes reach a producer
    EV_CUT = 6          # a producer learns that its connection is gone
    EV_FAULT = 7
    EV_SWAP = 8         # the first C++ SDK compares the loads of its two sets

cdef enum Fault:
    FA_SLOW = 1         # value: factor in percent, 100 ends it
    FA_DOWN = 2         # the process is gone: connections are reset, connects refused
    FA_UP = 3
    FA_HOLE = 4         # nothing arrives any more and nothing comes back
    FA_DRAIN = 5        # value: code that every frame gets, 0 ends it
    FA_CLOCK = 6        # value: step of all producers' wall clocks in ms

cdef enum:
    WORKERS = 8         # most of a proxy
    BEGIN_US = 1000000
    WINDOW_US = 5000000     # of a proxy's load
    PARTS = 64
    RESET = 104
    REFUSED = 111
    SWAP_US = 300000000     # of the first C++ SDK
    SWAP_LOAD = 10

_FAULTS = {"slow": FA_SLOW, "down": FA_DOWN, "up": FA_UP, "hole": FA_HOLE, "drain": FA_DRAIN, "clock": FA_CLOCK}


ctypedef struct Event:
    int64_t at
    int64_t ticket
    int kind
    int who             # producer or proxy
    int conn
    int64_t epoch       # of the socket; or a value
    uint8_t* data
    size_t n


ctypedef struct Socket:
    int64_t epoch       # changes with each connect and loss: what is under way for an older one is lost
    int proxy
    bint up
    int64_t to_proxy_us     # arrival of the newest bytes: order is kept
    int64_t to_client_us
    int64_t held        # bytes that were written and have not arrived


ctypedef struct Producer:
    ConnectionPool pool
    PackPool spares
    Socket* sockets
    int n_sockets
    uint32_t seq
    int64_t timer_us        # of the event that is queued


ctypedef struct Proxy:
    int64_t free_us[8]      # when each worker is free
    int64_t slow            # percent
    bint down
    bint hole
    int code
    int64_t frames          # data frames that it stored
    int64_t window_us       # begin of the present window
    int64_t busy_us         # work taken in it
    int64_t load            # percent, of the last window


cdef void _hear_nothing(void* context, int event, const char* label, int detail, Slice text) noexcept nogil:
    (<int64_t*>context)[event & 31] += 1


# The other ways to choose, for comparison.

cdef Connection* _choose_random(ConnectionPool* pool, ClusterPart* part, int64_t now_us) noexcept nogil:
    if part.n_active == 0:
        return NULL
    return part.active[rand_below(&pool.random, <uint64_t>part.n_active)]


cdef Connection* _choose_in_turn(ConnectionPool* pool, ClusterPart* part, int64_t now_us) noexcept nogil:
    if part.n_active == 0:
        return NULL
    part.cursor += 1
    return part.active[part.cursor % <uint32_t>part.n_active]


cdef Connection* _choose_as_before(ConnectionPool* pool, ClusterPart* part, int64_t now_us) noexcept nogil:
    """Choose as the first C++ SDK does: the next in turn or a random one, whichever has fewer packs waiting."""
    cdef Connection* a = _choose_in_turn(pool, part, now_us)
    cdef Connection* b = _choose_random(pool, part, now_us)
    return a if a != NULL and a.queue.n + a.flight.n < b.queue.n + b.flight.n else b


cdef class ClusterSim:
    """Run producers against proxies; times in microseconds unless a name says otherwise."""

    cdef Producer* producers
    cdef Proxy* proxies
    cdef int n_producers, n_proxies, workers
    cdef Event* heap
    cdef size_t n_events, room
    cdef int64_t now, ticket, every_us, service_us, delay_us, pending, end_us
    cdef uint64_t random
    cdef size_t body_n
    cdef bint loads, ancestor, sending
    cdef FrameRules rules
    cdef ServerProfile profile
    cdef Request request
    cdef int64_t* times         # of delivered packs
    cdef int64_t n_times, room_times
    cdef readonly int64_t failed, sent
    cdef int64_t heard[32]
    cdef bytes attrs

    def __cinit__(self, *, int producers, int proxies, str policy, int64_t every, uint64_t seed, orders, shapes,
                  classes, int unknown_class, int64_t service=4000, int workers=4, int64_t delay=500, size_t body=1000,
                  bint loads=False, int64_t ack_timeout=10_000_000, int64_t delivery=120_000_000,
                  int64_t heartbeat=30_000_000):
        """Make the producers, which begin to connect when ``run`` is called.

        ``every``: time between two packs of one producer.  ``service``: mean time of a frame at a worker of a proxy.
        ``orders``: of each producer the places of the proxies in its list; ``shapes``: (connections, proxies, standbys,
        offset, standby offset) of each.
        """
        self.n_producers, self.n_proxies, self.workers = producers, proxies, min(workers, WORKERS)
        self.every_us, self.service_us, self.delay_us = every, service, delay
        self.body_n, self.loads, self.end_us = body, loads, delivery
        self.ancestor = policy == "ancestor"
        self.random = seed * 2654435761 + 1
        self.now = BEGIN_US
        self.attrs = b"groupId=g&streamId=s"
        self.rules.family = 7
        self.rules.max_frame = 524288
        self.profile.load = -1
        self.proxies = <Proxy*>calloc(<size_t>proxies, sizeof(Proxy))
        self.producers = <Producer*>calloc(<size_t>producers, sizeof(Producer))
        if self.proxies == NULL or self.producers == NULL:
            raise MemoryError
        for i in range(proxies):
            self.proxies[i].slow = 100
            self.proxies[i].window_us = BEGIN_US
        for i in range(producers):
            self.open_producer(i, policy, ack_timeout, heartbeat, classes, unknown_class)
            self.give_list(i, orders[i], shapes[i], policy == "ours")

    def __dealloc__(self):
        cdef size_t k
        cdef int i
        for k in range(self.n_events):
            free(self.heap[k].data)
        free(self.heap)
        for i in range(self.n_producers if self.producers != NULL else 0):
            if self.producers[i].pool.wire != NULL:
                connections_abort(&self.producers[i].pool, -4)
                self.collect(&self.producers[i])
                connections_free(&self.producers[i].pool)
                pool_close(&self.producers[i].spares)
            free(self.producers[i].sockets)
        free(self.producers)
        free(self.proxies)
        free(self.times)
        buf_free(&self.request.reply)
        buf_free(&self.request.entry)
        buf_free(&self.request.scratch)

    cdef int open_producer(
        self, int i, str policy, int64_t ack_timeout, int64_t heartbeat, classes, int unknown,
    ) except -1:
        cdef Producer* p = &self.producers[i]
        cdef ConnectionConfig config
        memset(&config, 0, sizeof(ConnectionConfig))
        config.ack_timeout_us = ack_timeout
        config.connect_timeout_us = 5_000_000
        config.retry_backoff_us = 100_000
        config.retry_backoff_max_us = 5_000_000
        config.reconnect_backoff_us = 100_000
        config.reconnect_backoff_max_us = 10_000_000
        config.heartbeat_us = heartbeat
        config.heartbeat_kind = 8
        config.heartbeat_retries = 3
        config.avoid_us = 10_000_000
        config.late_attempts = 5
        config.retry_share = 200
        config.max_reply = MAX_REPLY
        config.unknown_class = unknown
        config.keep_outliers = policy != "ours"
        for code in range(<int>CLASSES):
            config.classes[code] = classes.get(code, unknown)
        pool_open(&p.spares, 1 << 16, <int64_t>1 << 40)
        if connections_open(&p.pool, inlong_ops(), &config, _hear_nothing, self.heard) != ST_OK:
            raise MemoryError
        p.pool.random = rand_next(&self.random)
        p.pool.cursor = <uint32_t>rand_next(&self.random)
        p.pool.rules = &self.rules
        p.pool.wall_offset_ms = 1_700_000_000_000
        p.seq = <uint32_t>rand_next(&self.random)
        p.timer_us = -1
        if policy == "random":
            p.pool.choose = _choose_random
        elif policy == "turn":
            p.pool.choose = _choose_in_turn
        elif policy == "ancestor":
            p.pool.choose = _choose_as_before
        elif policy != "ours":
            raise ValueError(policy)
        return 0

    cdef int give_list(self, int i, order, shape, bint swaps) except -1:
        cdef Producer* p = &self.producers[i]
        cdef Endpoint* list = <Endpoint*>calloc(<size_t>len(order), sizeof(Endpoint))
        cdef ClusterPart part
        cdef ProxyLists lists
        cdef Shape* wanted = &part.shape
        cdef int k, status
        if list == NULL:
            raise MemoryError
        memset(&part, 0, sizeof(ClusterPart))
        memset(&lists, 0, sizeof(ProxyLists))
        lists.endpoints, lists.n_endpoints = list, <int>len(order)
        lists.parts, lists.n_parts = &part, 1
        part.n = lists.n_endpoints
        for k in range(<int>len(order)):
            snprintf(list[k].label, sizeof(list[k].label), "p%d:46801", <int>order[k])
            list[k].family = 2
        wanted.connections, wanted.proxies, wanted.standbys, wanted.offset, wanted.standby_offset = shape
        status = connections_endpoints(&p.pool, &lists, self.now)
        free(list)
        if status != ST_OK:
            raise MemoryError
        if not swaps:
            p.pool.lists.parts[0].swap_at_us = <int64_t>1 << 60
        self.round(i)
        return 0

    def fault(self, int64_t at, str kind, int proxy, int64_t value=0):
        """Let something happen ``at`` microseconds after the begin."""
        if kind not in _FAULTS or not 0 <= proxy < self.n_proxies:
            raise ValueError((kind, proxy))
        self.later(BEGIN_US + at, EV_FAULT, proxy, <int>_FAULTS[kind], value, NULL, 0)

    def run(self, int64_t lasts):
        """Let the producers send for ``lasts`` microseconds, and go on until every pack has its result."""
        cdef int i
        self.sending = True
        for i in range(self.n_producers):
            self.later(self.now + <int64_t>rand_below(&self.random, <uint64_t>self.every_us), EV_SEND, i, 0, 0, NULL, 0)
        if self.ancestor:
            self.later(self.now + SWAP_US, EV_SWAP, 0, 0, 0, NULL, 0)
        self.play(self.now + lasts)
        self.sending = False
        self.play(self.now + 2 * self.end_us)

    def results(self):
        """Return times in ms of delivered packs, and counts."""
        cdef int i, k
        cdef list times = sorted([self.times[i] for i in range(self.n_times)])
        cdef ConnectionPool* pool
        resent = duplicates = held = 0
        outs, swaps = [0] * 5, [0] * 4
        returns = 0
        for i in range(self.n_producers):
            pool = &self.producers[i].pool
            resent += pool.retries
            duplicates += pool.duplicates
            held += pool.held_back
            returns += pool.returns
            for k in range(5):
                outs[k] += pool.outs[k]
            for k in range(4):
                swaps[k] += pool.swaps[k]
        n = len(times)
        return {
            "sent": self.sent, "delivered": n, "failed": self.failed, "pending": self.pending, "resent": resent,
            "copies": duplicates, "held": held, "outs": outs, "returns": returns, "swaps": swaps,
            "p50": times[n // 2] / 1000 if n else 0.0, "p99": times[n * 99 // 100] / 1000 if n else 0.0,
            "max": times[n - 1] / 1000 if n else 0.0,
        }

    def frames(self):
        """Return the frames that each proxy has stored."""
        return [self.proxies[i].frames for i in range(self.n_proxies)]

    def users(self):
        """Return how many connections that take frames each proxy has."""
        cdef int i, k
        cdef ConnectionPool* pool
        counts = [0] * self.n_proxies
        for i in range(self.n_producers):
            pool = &self.producers[i].pool
            for k in range(pool.lists.parts[0].n_active):
                counts[atoi(pool.lists.parts[0].active[k].peer.label + 1)] += 1
        return counts

    # --- time

    cdef int later(self, int64_t at, int kind, int who, int conn, int64_t epoch, uint8_t* data, size_t n) except -1:
        cdef size_t i, parent
        cdef Event event
        cdef Event* grown
        if self.n_events == self.room:
            grown = <Event*>realloc(self.heap, (2 * self.room + 1024) * sizeof(Event))
            if grown == NULL:
                raise MemoryError
            self.heap = grown
            self.room = 2 * self.room + 1024
        self.ticket += 1
        event.at, event.ticket, event.kind, event.who, event.conn = at, self.ticket, kind, who, conn
        event.epoch, event.data, event.n = epoch, data, n
        i = self.n_events
        self.n_events += 1
        while i > 0:
            parent = (i - 1) // 2
            if not _before(&event, &self.heap[parent]):
                break
            self.heap[i] = self.heap[parent]
            i = parent
        self.heap[i] = event
        return 0

    cdef Event pop(self):
        cdef Event first = self.heap[0]
        cdef Event last
        cdef size_t i = 0, child
        self.n_events -= 1
        last = self.heap[self.n_events]
        while 2 * i + 1 < self.n_events:
            child = 2 * i + 1
            if child + 1 < self.n_events and _before(&self.heap[child + 1], &self.heap[child]):
                child += 1
            if not _before(&self.heap[child], &last):
                break
            self.heap[i] = self.heap[child]
            i = child
        self.heap[i] = last
        return first

    cdef int play(self, int64_t end) except -1:
        cdef Event event
        while self.n_events and self.heap[0].at <= end and (self.sending or self.pending):
            event = self.pop()
            self.now = max(self.now, event.at)
            self.act(&event)
            free(event.data)
        self.now = max(self.now, end) if self.sending else self.now
        return 0

    cdef int act(self, Event* event) except -1:
        if event.kind == EV_SEND:
            self.send(event.who)
        elif event.kind == EV_TIMER:
            self.timer(event)
        elif event.kind == EV_CONNECT:
            self.decide(event)
        elif event.kind == EV_ARRIVE:
            self.arrive(event)
        elif event.kind == EV_REPLY:
            self.reply(event)
        elif event.kind == EV_CUT:
            self.cut(event)
        elif event.kind == EV_FAULT:
            self.strike(event)
        else:
            self.swap_sets()
        return 0

    # --- producers

    cdef int send(self, int i) except -1:
        cdef Producer* q = &self.producers[i]
        cdef size_t head = q.pool.wire.head_room
        cdef size_t n = self.body_n // 2 + <size_t>rand_below(&self.random, self.body_n)
        cdef Pack* p
        if not self.sending:
            return 0
        p = pool_take(&q.spares, head, head + n + 260)
        if p == NULL:
            raise MemoryError
        store_be32(p.buf + head, <uint32_t>n)
        memset(p.buf + head + 4, 120, n)
        p.body_n = n + 4
        p.count = 1
        q.seq += 1
        p.seq = q.seq
        p.charge = p.body_n
        p.data_time_ms = 1_700_000_000_000
        p.opened_us = self.now
        p.deadline_us = self.now + self.end_us
        p.attrs = slice_of(<const char*>self.attrs, len(self.attrs))
        if frame_pack(q.pool.wire, &self.rules, &q.spares, p) != ST_OK:
            raise ValueError("the pack makes no frame")
        pack_enter(p, PK_POSTED)
        pack_enter(p, PK_TAKEN)
        self.sent += 1
        self.pending += 1
        connections_submit(&q.pool, p, self.now)
        self.round(i)
        self.later(self.now + self.around(self.every_us), EV_SEND, i, 0, 0, NULL, 0)
        return 0

    cdef int64_t around(self, int64_t mean):
        """Return a random time with this mean, as of independent arrivals, at most ten times the mean."""
        cdef double u = <double>(rand_below(&self.random, 1000000) + 1) / 1000001.0
        return min(<int64_t>(-log(u) * <double>mean), 10 * mean) + 1

    cdef int timer(self, Event* event) except -1:
        cdef Producer* q = &self.producers[event.who]
        if q.timer_us == event.at:
            q.timer_us = -1
            self.round(event.who)
        return 0

    cdef int round(self, int i) except -1:
        """Do what an executor does in one round: timers, work on connections, results."""
        cdef Producer* q = &self.producers[i]
        cdef int64_t due
        connections_expire(&q.pool, self.now)
        self.work(i)
        self.collect(q)
        due = timers_next(&q.pool.timers)
        if due >= 0 and (q.timer_us < 0 or due < q.timer_us):
            q.timer_us = max(due, self.now + 1)
            self.later(q.timer_us, EV_TIMER, i, 0, 0, NULL, 0)
        return 0

    cdef Socket* socket(self, Producer* q, int conn) except NULL:
        cdef Socket* grown
        if conn >= q.n_sockets:
            grown = <Socket*>realloc(q.sockets, <size_t>(conn + 8) * sizeof(Socket))
            if grown == NULL:
                raise MemoryError
            q.sockets = grown
            memset(&grown[q.n_sockets], 0, <size_t>(conn + 8 - q.n_sockets) * sizeof(Socket))
            q.n_sockets = conn + 8
        return &q.sockets[conn]

    cdef int work(self, int i) except -1:
        cdef Producer* q = &self.producers[i]
        cdef Connection* conn = connections_take_dirty(&q.pool)
        cdef Socket* s
        cdef int flags, event, detail
        while conn != NULL:
            s = self.socket(q, conn.index)
            flags = conn.flags
            conn.flags = 0
            if flags & CF_CLOSE:
                event, detail = conn.close_event, conn.close_detail
                conn.close_event = conn.close_detail = 0
                s.epoch += 1
                s.up = False
                connections_lost(&q.pool, conn, event, detail, self.now)
            elif flags & CF_CONNECT:
                s.epoch += 1
                s.proxy = atoi(conn.peer.label + 1)
                s.up = False
                s.held = s.to_proxy_us = s.to_client_us = 0
                if not self.proxies[s.proxy].hole:
                    self.later(self.now + 2 * self.delay_us, EV_CONNECT, i, conn.index, s.epoch, NULL, 0)
            else:
                if flags & CF_WRITE and conn.state == CS_ACTIVE:
                    self.write(i, conn, s)
                if flags & CF_LOOK and conn.state == CS_ACTIVE and not conn.flags & CF_CLOSE:
                    connections_looked(&q.pool, conn, s.held, self.now)
            conn = connections_take_dirty(&q.pool)
        return 0

    cdef int write(self, int i, Connection* conn, Socket* s) except -1:
        cdef Producer* q = &self.producers[i]
        cdef iovec parts[PARTS]
        cdef size_t total
        cdef uint8_t* data
        cdef int k, n = sendq_gather(&q.pool, conn, parts, PARTS, 1 << 20)
        while n > 0:
            total = 0
            for k in range(n):
                total += parts[k].iov_len
            data = <uint8_t*>malloc(total)
            if data == NULL:
                raise MemoryError
            total = 0
            for k in range(n):
                memcpy(data + total, parts[k].iov_base, parts[k].iov_len)
                total += parts[k].iov_len
            sendq_wrote(&q.pool, conn, total, self.now)
            s.held += <int64_t>total
            s.to_proxy_us = max(s.to_proxy_us + 1, self.now + self.delay_us)
            self.later(s.to_proxy_us, EV_ARRIVE, i, conn.index, s.epoch, data, total)
            n = sendq_gather(&q.pool, conn, parts, PARTS, 1 << 20)
        return 0

    cdef int collect(self, Producer* q) except -1:
        cdef Pack* p = list_pop(&q.pool.settled)
        cdef int64_t* grown
        while p != NULL:
            self.pending -= 1
            if p.outcome != OUT_DELIVERED:
                self.failed += 1
            else:
                if self.n_times == self.room_times:
                    grown = <int64_t*>realloc(self.times, <size_t>(2 * self.room_times + 4096) * sizeof(int64_t))
                    if grown == NULL:
                        raise MemoryError
                    self.times = grown
                    self.room_times = 2 * self.room_times + 4096
                self.times[self.n_times] = self.now - p.opened_us
                self.n_times += 1
            pool_give(&q.spares, p)
            p = list_pop(&q.pool.settled)
        return 0

    cdef int decide(self, Event* event) except -1:
        """Let a connect succeed or fail."""
        cdef Producer* q = &self.producers[event.who]
        cdef Socket* s = self.socket(q, event.conn)
        cdef Connection* conn = q.pool.connections[event.conn]
        if s.epoch != event.epoch or conn.state != CS_CONNECTING or self.proxies[s.proxy].hole:
            return 0
        if self.proxies[s.proxy].down:
            connections_lost(&q.pool, conn, CE_CONNECT_FAILED, REFUSED, self.now)
        else:
            s.up = True
            connections_connected(&q.pool, conn, self.now)
        self.round(event.who)
        return 0

    cdef int reply(self, Event* event) except -1:
        cdef Producer* q = &self.producers[event.who]
        cdef size_t used = 0
        if self.socket(q, event.conn).epoch != event.epoch:
            return 0
        if take_bytes(&q.pool, q.pool.connections[event.conn], event.data, event.n, self.now, &used) != ST_OK:
            raise ValueError("an answer is not understood")
        self.round(event.who)
        return 0

    cdef int cut(self, Event* event) except -1:
        cdef Producer* q = &self.producers[event.who]
        cdef Socket* s = self.socket(q, event.conn)
        if s.epoch != event.epoch:
            return 0
        s.epoch += 1
        s.up = False
        connections_lost(&q.pool, q.pool.connections[event.conn], CE_LOST, RESET, self.now)
        self.round(event.who)
        return 0

    # --- proxies

    cdef int arrive(self, Event* event) except -1:
        """Let a proxy read what reaches it, frame by frame."""
        cdef Producer* q = &self.producers[event.who]
        cdef Socket* s = self.socket(q, event.conn)
        cdef Proxy* proxy = &self.proxies[s.proxy]
        cdef size_t at = 0, n
        if s.epoch != event.epoch or proxy.hole or not s.up:
            return 0
        s.held -= <int64_t>event.n
        if proxy.down:
            self.later(self.now + self.delay_us, EV_CUT, event.who, event.conn, s.epoch, NULL, 0)
            return 0
        while at < event.n:
            n = 4 + load_be32(event.data + at)
            self.serve(event, s, proxy, event.data + at, n)
            at += n
        return 0

    cdef int serve(self, Event* event, Socket* s, Proxy* proxy, uint8_t* p, size_t n) except -1:
        cdef Request* r = &self.request
        cdef int64_t done = self.now + 50
        self.look_at(proxy)
        self.profile.load = <int>max(proxy.load, 1) if self.loads else -1
        if inlong_ops().serve(&self.profile, p, n, 1_700_000_000_000, r) != ST_OK:
            raise ValueError("a frame is not understood")
        if p[4] & 0x1F == 7:
            if proxy.code:
                r.entry.n = 0
                if inlong_ops().refuse(r.reply.p, r.reply.n, proxy.code, b"no", &r.entry) != ST_OK:
                    raise MemoryError
                r.reply, r.entry = r.entry, r.reply
            else:
                done = self.work_on(proxy)
                proxy.frames += 1
        return self.answer(event, s, done)

    cdef int answer(self, Event* event, Socket* s, int64_t done) except -1:
        cdef Request* r = &self.request
        cdef uint8_t* data = <uint8_t*>malloc(r.reply.n)
        if data == NULL:
            raise MemoryError
        memcpy(data, r.reply.p, r.reply.n)
        s.to_client_us = max(s.to_client_us + 1, done + self.delay_us)
        self.later(s.to_client_us, EV_REPLY, event.who, event.conn, s.epoch, data, r.reply.n)
        return 0

    cdef int64_t work_on(self, Proxy* proxy):
        """Give a frame to the worker that is free first; return when it is done."""
        cdef int i, best = 0
        cdef int64_t work = (self.service_us // 2 + self.around(self.service_us // 2)) * proxy.slow // 100
        for i in range(1, self.workers):
            if proxy.free_us[i] < proxy.free_us[best]:
                best = i
        proxy.free_us[best] = max(proxy.free_us[best], self.now) + work
        proxy.busy_us += work
        return proxy.free_us[best]

    cdef void look_at(self, Proxy* proxy):
        """Close the window of a proxy's load."""
        if self.now - proxy.window_us >= WINDOW_US:
            proxy.load = 100 * proxy.busy_us // (self.workers * (self.now - proxy.window_us))
            proxy.window_us = self.now
            proxy.busy_us = 0

    cdef int strike(self, Event* event) except -1:
        cdef Proxy* proxy = &self.proxies[event.who]
        cdef int i
        if event.conn == FA_SLOW:
            proxy.slow = event.epoch
        elif event.conn == FA_DOWN:
            proxy.down = True
            self.cut_all(event.who)
        elif event.conn == FA_UP:
            proxy.down = proxy.hole = False
            proxy.code = 0
            memset(proxy.free_us, 0, sizeof(proxy.free_us))
        elif event.conn == FA_HOLE:
            proxy.hole = True
        elif event.conn == FA_DRAIN:
            proxy.code = <int>event.epoch
        elif event.conn == FA_CLOCK:
            for i in range(self.n_producers):
                self.producers[i].pool.wall_offset_ms += event.epoch
        return 0

    cdef int cut_all(self, int proxy) except -1:
        """Reset the connections of a proxy; what it has not answered is lost."""
        cdef Producer* q
        cdef int i, k
        for i in range(self.n_producers):
            q = &self.producers[i]
            for k in range(q.n_sockets):
                if q.sockets[k].up and q.sockets[k].proxy == proxy:
                    q.sockets[k].epoch += 1      # answers under way do not arrive
                    self.later(self.now + self.delay_us, EV_CUT, i, k, q.sockets[k].epoch, NULL, 0)
        return 0

    # --- the first C++ SDK

    cdef int swap_sets(self) except -1:
        """Swap the busiest active connection and the calmest backup of each producer, by loads weighted by slot."""
        cdef ConnectionPool* pool
        cdef Connection* busy
        cdef Connection* calm
        cdef Connection* conn
        cdef int i, k
        for i in range(self.n_producers):
            pool = &self.producers[i].pool
            busy = calm = NULL
            for k in range(pool.n_connections):
                conn = pool.connections[k]
                if conn.state != CS_ACTIVE:
                    continue
                if conn.standby and (
                        calm == NULL or load_average_by_slot(&conn.load) < load_average_by_slot(&calm.load)):
                    calm = conn
                if not conn.standby and (
                        busy == NULL or load_average_by_slot(&conn.load) > load_average_by_slot(&busy.load)):
                    busy = conn
            if busy != NULL and calm != NULL and (
                    load_average_by_slot(&busy.load) - load_average_by_slot(&calm.load) >= SWAP_LOAD):
                busy.standby, calm.standby = True, False
                connection_rest(pool, busy)
                connection_use(pool, calm)
                pool.swaps[3] += 1
        self.later(self.now + SWAP_US, EV_SWAP, 0, 0, 0, NULL, 0)
        return 0


cdef inline bint _before(const Event* a, const Event* b) noexcept nogil:
    return a.at < b.at or a.at == b.at and a.ticket < b.ticket
