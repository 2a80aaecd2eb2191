"""A pool of connections driven from Python on virtual time: no socket, no clock, no thread.

The caller plays the executor: it asks for work, hands over the bytes that a peer would send, takes the bytes
that a socket would carry, and says how late it is.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.pack.keyqueue cimport KeyQueue
from dataproxy._core.pack.pack cimport (
    CL_DROPPED, CL_FREE, PK_POSTED, PK_TAKEN, Pack, PackPool, list_pop, pack_enter, pool_close, pool_give, pool_open,
    pool_take,
)
from dataproxy._core.pack.parts cimport Part
from dataproxy._core.pack.unknown cimport Unknown
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.base.timers cimport timers_next
from dataproxy._core.conn.clusters cimport lists_free
from dataproxy._core.conn.balance.router cimport avoided_until, choose_connection
from dataproxy._core.conn.framing cimport FrameRules, frame_pack
from dataproxy._core.conn.connection cimport (
    CF_CLOSE, CF_CONNECT, CF_LOOK, CF_WRITE, CLASSES, CS_ACTIVE, MAX_REPLY, ClusterPart, Connection,
    ConnectionConfig, ConnectionPool, Endpoint, Health, ProxyLists,
    connection_state_name,
)
from dataproxy._core.conn.pool cimport (
    connections_abort, connections_connected, connections_endpoints, connections_expire, connections_free,
    connections_looked, connections_lost, connections_open, connections_shaking,
    connections_submit, connections_take_dirty,
)
from dataproxy._core.conn.keyqueues cimport key_queues_advance
from dataproxy._core.conn.replies cimport take_bytes
from dataproxy._core.conn.sendq cimport sendq_empty, sendq_gather, sendq_wrote
from dataproxy._core.conn.retry cimport retry_yield
from dataproxy._core.conn.settle cimport settle_dropped
from dataproxy._core.plat.atomic cimport atomic_replace
from dataproxy._core.plat.endian cimport store_be32
from dataproxy._core.plat.socket cimport AF_INET, AF_INET6, iovec
from dataproxy._core.wire.api cimport ITEM_LENGTH, ITEM_LINES
from dataproxy._core.wire.inlong.const cimport FAMILY_REPORT
from dataproxy._core.wire.registry cimport wire_of_family

__all__ = ["Connections"]


cdef void _note_event(void* context, int event, const char* label, int detail, Slice text) noexcept nogil:
    with gil:
        (<list>context).append((event, (<bytes>label).decode(), detail, (<const char*>text.p)[:text.n]))


cdef void _note_unknown(void* context, void* stream, const char* label, int code) noexcept nogil:
    with gil:
        (<list>context).append((
            "unknown" if label != NULL else "nothing waits", (<bytes>label).decode() if label != NULL else "", code))


cdef class Connections:
    """One executor's connections; times are microseconds of the caller's own clock."""

    cdef ConnectionPool pool
    cdef PackPool spares
    cdef FrameRules rules
    cdef bint lines             # over HTTP
    cdef bytes attrs
    cdef readonly list events
    cdef readonly dict held     # connection -> bytes that its socket still holds; none without an entry
    cdef KeyQueue key_queues[16]
    cdef Unknown unknowns[16]   # by stream
    cdef int64_t unknown_bytes
    cdef dict packs             # ident -> address of a pack without a result; kept with sheds alone
    cdef list given_up          # addresses

    def __cinit__(
        self, *, int64_t ack_timeout=10_000_000, int64_t connect_timeout=5_000_000, int64_t retry_backoff=100_000,
        int64_t retry_backoff_max=5_000_000, int64_t reconnect_backoff=100_000,
        int64_t reconnect_backoff_max=10_000_000, int64_t heartbeat=30_000_000, int heartbeat_kind=8,
        int heartbeat_retries=3, int64_t avoid=10_000_000, int late_attempts=5, size_t max_frame=524288,
        size_t max_reply=MAX_REPLY,
        int64_t retry_share=200, classes=None, int unknown_class=6, uint64_t seed=1, bint compress=False,
        bint sheds=False, int ack=0, int family=7, int64_t unknown_timeout=60_000_000, bint keep_outliers=False,
    ):
        cdef ConnectionConfig config
        memset(&config, 0, sizeof(ConnectionConfig))
        config.ack = ack
        config.ack_timeout_us = ack_timeout
        config.connect_timeout_us = connect_timeout
        config.retry_backoff_us = retry_backoff
        config.retry_backoff_max_us = retry_backoff_max
        config.reconnect_backoff_us = reconnect_backoff
        config.reconnect_backoff_max_us = reconnect_backoff_max
        config.heartbeat_us = heartbeat
        config.heartbeat_kind = heartbeat_kind
        config.heartbeat_retries = heartbeat_retries
        config.avoid_us = avoid
        config.late_attempts = late_attempts
        config.unknown_us = unknown_timeout
        config.retry_share = retry_share
        config.keep_outliers = keep_outliers
        config.max_reply = max_reply
        config.unknown_class = unknown_class
        for code in range(<int>CLASSES):
            config.classes[code] = (classes or {}).get(code, unknown_class)
        memset(&self.rules, 0, sizeof(FrameRules))
        self.lines = family == FAMILY_REPORT
        self.rules.family = family
        self.rules.ack = ack
        self.rules.compress = compress
        self.rules.compress_min = 64
        self.rules.max_frame = max_frame
        self.attrs = b"groupId=g&streamId=s"
        self.events = []
        self.held = {}
        memset(self.key_queues, 0, sizeof(self.key_queues))
        pool_open(&self.spares, 1 << 20, 1 << 40)
        if connections_open(&self.pool, wire_of_family(family), &config, _note_event, <void*>self.events) != ST_OK:
            raise MemoryError
        self.pool.random = seed
        self.pool.sheds = sheds
        memset(self.unknowns, 0, sizeof(self.unknowns))
        self.unknown_bytes = 0
        self.pool.unknown = _note_unknown
        self.pool.unknown_bytes = &self.unknown_bytes
        self.pool.unknown_most = 1 << 40
        self.pool.rules = &self.rules
        self.packs = {}
        self.given_up = []

    def __dealloc__(self):
        cdef Pack* p
        if self.pool.wire != NULL:
            connections_abort(&self.pool, -4)
            self.put_away()
            p = list_pop(&self.pool.settled)
            while p != NULL:
                pool_give(&self.spares, p)
                p = list_pop(&self.pool.settled)
            connections_free(&self.pool)
            pool_close(&self.spares)

    cdef Connection* at(self, int index) except NULL:
        """Return the connection with this number."""
        if not 0 <= index < self.pool.n_connections:
            raise IndexError(index)
        return self.pool.connections[index]

    def endpoints(
        self, labels, int connections, int64_t now, *, int offset=0, bint two=False, int cluster=0, nodes=None,
        int standbys=0, int proxies=0,
    ):
        """Give a new proxy list and the number of connections wanted; return the status.  ``two``: addresses of each.
        """
        nodes = nodes or [0] * len(labels)
        wanted = (connections, proxies or connections, standbys)
        return self.clusters([(cluster, list(zip(labels, nodes)), wanted)], None, now, offset=offset, two=two)

    def clusters(self, parts, groups, int64_t now, *, int offset=0, bint two=False):
        """Give the proxies of several clusters, (number, [(label, node)], connections), and where each group goes.

        The connections may be a number, or (connections, proxies in use, standbys).
        """
        cdef ProxyLists lists
        cdef ClusterPart* part
        cdef Endpoint* one
        cdef int i = 0, k, status
        memset(&lists, 0, sizeof(ProxyLists))
        lists.n_endpoints = sum([len(proxies) for _, proxies, _ in parts])
        lists.n_parts = len(parts)
        lists.n_groups = len(groups or ())
        lists.endpoints = <Endpoint*>calloc(<size_t>lists.n_endpoints + 1, sizeof(Endpoint))
        lists.parts = <ClusterPart*>calloc(<size_t>lists.n_parts + 1, sizeof(ClusterPart))
        lists.groups = NULL if groups is None else <int*>calloc(<size_t>lists.n_groups + 1, sizeof(int))
        for k, (number, proxies, wanted) in enumerate(parts):
            part = &lists.parts[k]
            part.cluster = number
            part.first = i
            part.n = len(proxies)
            part.shape.connections, part.shape.proxies, part.shape.standbys = (
                wanted if isinstance(wanted, tuple) else (wanted, wanted, 0))
            part.shape.offset, part.shape.standby_offset = offset, offset + part.shape.connections
            for label, node in proxies:
                one = &lists.endpoints[i]
                i += 1
                name = label.encode()
                memcpy(one.label, <const char*>name, <size_t>min(63, len(name)))
                one.cluster = number
                one.node = node
                if two:
                    one.family, one.other_family = AF_INET, AF_INET6
                    one.address.n, one.other.n = 4, 6     # different, as the addresses of a proxy are
        for k in range(lists.n_groups):
            lists.groups[k] = groups[k]
        status = connections_endpoints(&self.pool, &lists, now)
        lists_free(&lists)
        return status

    def submit(
        self, int64_t ident, uint32_t seq, bodies, int64_t deadline, int64_t now, *, int key_queue=-1,
        bytes pack_id=b"", int stream=0, int group=0,
    ):
        """Frame a pack of ``bodies`` and hand it to the connections; return the frame's bytes.  ``key_queue``: 0 to 15.

        ``group``: the number of the messages' group.
        """
        cdef size_t n = sum((1 if self.lines else 4) + len(body) for body in bodies)
        cdef size_t head = self.pool.wire.head_room
        cdef Pack* p = pool_take(&self.spares, head, head + n + 256)
        cdef uint8_t* to
        if p == NULL:
            raise MemoryError
        to = p.buf + head
        for body in bodies:
            if self.lines:
                memcpy(to, <const char*>body, <size_t>len(body))
                to[len(body)] = 10
                to += len(body) + 1
                continue
            store_be32(to, <uint32_t>len(body))
            memcpy(to + 4, <const char*>body, <size_t>len(body))
            to += 4 + len(body)
        p.body_n = n - 1 if self.lines else n
        p.items = ITEM_LINES if self.lines else ITEM_LENGTH
        p.count = <uint32_t>len(bodies)
        p.seq = seq
        p.id_n = min(31, len(pack_id))
        memcpy(p.id, <const char*>pack_id, <size_t>p.id_n)
        p.charge = n
        p.stream = <void*><uintptr_t>ident
        p.group = group
        p.data_time_ms = 1_700_000_000_000
        p.unknown = &self.unknowns[stream & 15]
        if key_queue >= 0:
            p.key_queue = &self.key_queues[key_queue & 15]
            p.tied = True
        p.opened_us = now
        p.deadline_us = deadline
        p.attrs = slice_of(<const char*>self.attrs, len(self.attrs))
        if frame_pack(self.pool.wire, &self.rules, &self.spares, p) != ST_OK:
            pool_give(&self.spares, p)
            raise ValueError("the pack makes no frame")
        frame = p.frame[:p.frame_n]
        if self.pool.sheds:
            self.packs[ident] = <uintptr_t>p
        pack_enter(p, PK_POSTED)
        pack_enter(p, PK_TAKEN)
        connections_submit(&self.pool, p, now)
        return frame

    def take_work(self):
        """Return (connection, work, close event) of the next connection that wants socket work, or None."""
        cdef Connection* conn = connections_take_dirty(&self.pool)
        cdef int flags, event
        if conn == NULL:
            return None
        flags = conn.flags
        event = conn.close_event
        conn.flags = 0
        if flags & CF_CLOSE:
            conn.close_event = 0
            return conn.index, "close", event
        if flags & CF_CONNECT:
            return conn.index, "connect", 0
        if flags & CF_WRITE:
            return conn.index, "write", 0
        return conn.index, "look" if flags & CF_LOOK else "nothing", 0

    def advance(self, int64_t now):
        """Submit the next packs of key queues that became free; return whether there were any."""
        return bool(key_queues_advance(&self.pool, now))

    def key_queue(self, int index):
        """Return (the pack on its way or None, the packs held behind it) of one key queue."""
        cdef KeyQueue* key_queue = &self.key_queues[index & 15]
        cdef Pack* p = key_queue.held.head
        held = []
        while p != NULL:
            held.append(<int64_t><uintptr_t>p.stream)
            p = p.next
        return (<int64_t><uintptr_t>key_queue.active.stream if key_queue.active != NULL else None), held

    def shaking(self, int index, int64_t now):
        """Say that a peer has accepted, and that a handshake is under way."""
        connections_shaking(&self.pool, self.at(index), now)

    def connected(self, int index, int64_t now):
        """Say that a connect succeeded."""
        connections_connected(&self.pool, self.at(index), now)

    def lost(self, int index, int event, int detail, int64_t now):
        """Say that a connection is gone."""
        connections_lost(&self.pool, self.at(index), event, detail, now)

    def gather(self, int index, int most=64, size_t most_bytes=1048576):
        """Return the parts to write next, in order."""
        cdef iovec parts[64]
        cdef int i, n = sendq_gather(&self.pool, self.at(index), parts, min(most, 64), most_bytes)
        return [(<const char*>parts[i].iov_base)[:parts[i].iov_len] for i in range(n)]

    def wrote(self, int index, size_t n, int64_t now):
        """Say how many bytes of what was gathered a socket took."""
        sendq_wrote(&self.pool, self.at(index), n, now)

    def feed(self, int index, bytes data, int64_t now):
        """Apply bytes of a peer; return (status, bytes used)."""
        cdef size_t used = 0
        cdef uint8_t* copy = <uint8_t*>malloc(<size_t>len(data) + 1)     # exact, for a sanitizer's sake
        cdef int status
        if copy == NULL:
            raise MemoryError
        memcpy(copy, <const char*>data, <size_t>len(data))
        status = take_bytes(&self.pool, self.at(index), copy, <size_t>len(data), now, &used)
        free(copy)
        return status, used

    def expire(self, int64_t now):
        """Act on every timer that is due, and look at the sockets of the connections that want it."""
        cdef Connection* conn
        cdef int i
        connections_expire(&self.pool, now)
        for i in range(self.pool.n_connections):
            conn = self.pool.connections[i]
            if conn.flags & CF_LOOK and not conn.flags & CF_CLOSE and conn.state == CS_ACTIVE:
                conn.flags &= ~CF_LOOK
                connections_looked(&self.pool, conn, self.held.get(i, 0), now)

    def next_due(self):
        """Return when the first timer is due, -1 without one."""
        return timers_next(&self.pool.timers)

    def abort(self, int code):
        """End everything that is pending."""
        connections_abort(&self.pool, code)

    def choose(self, int64_t now):
        """Return the connection that the next frame of the first cluster would take, -1 without an active one."""
        cdef Connection* conn = NULL
        if self.pool.lists.n_parts:
            conn = choose_connection(&self.pool, &self.pool.lists.parts[0], now)
        return conn.index if conn != NULL else -1

    def give_up(self, int64_t ident):
        """Claim a pack as a sender that needs room does; False when its frame is being or was written."""
        cdef Pack* p = <Pack*><uintptr_t>self.packs[ident]
        if not atomic_replace(&p.claim, CL_FREE, CL_DROPPED):
            return False
        self.given_up.append(<uintptr_t>p)
        return True

    def put_away(self):
        """Settle the packs that were given up, as an executor does when it is told."""
        for address in self.given_up:
            settle_dropped(&self.pool, <Pack*><uintptr_t>address)
        self.given_up = []

    def share(self, int64_t most):
        """Set how much packs of unknown streams may hold when others need the room, and let the excess go."""
        self.pool.unknown_most = most
        retry_yield(&self.pool)

    def take_settled(self):
        """Return the results since the last call, and recycle their packs."""
        cdef Pack* p = list_pop(&self.pool.settled)
        out = []
        while p != NULL:
            self.packs.pop(<int64_t><uintptr_t>p.stream, None)
            out.append({
                "ident": <int64_t><uintptr_t>p.stream, "outcome": p.outcome, "code": p.code, "attempts": p.attempts,
                "open_attempts": p.open_attempts, "refused": p.refused, "node": p.node.decode(),
                "armed": bool(p.timer.armed),
                "text": p.error_text.decode("utf-8", "replace") if p.error_text != NULL else "",
                "seq": p.seq, "parts": self.parts(p), "items": p.buf[p.head:p.head + p.body_n],
            })
            pool_give(&self.spares, p)
            p = list_pop(&self.pool.settled)
        return out

    cdef list parts(self, Pack* p):
        """Return (first, messages, outcome, code, attempts, maybe delivered, bytes, text) of each part's result."""
        cdef uint32_t i
        cdef const Part* part
        cdef const char* text
        out = []
        for i in range(p.parts.n_done if p.parts != NULL else 0):
            part = &p.parts.done[i]
            text = <const char*>p.parts.texts.p + part.text
            out.append((part.first, part.n, part.outcome, part.code, part.attempts, bool(part.maybe_delivered),
                        part.bytes, text.decode()))
        return out

    def connection(self, int index):
        """Return what the fields of one connection say."""
        cdef Connection* k = self.at(index)
        cdef Pack* p = k.queue.head
        queued, flying = [], []
        while p != NULL:
            queued.append(<int64_t><uintptr_t>p.stream)
            p = p.next
        p = k.flight.head
        while p != NULL:
            flying.append(<int64_t><uintptr_t>p.stream)
            p = p.next
        return {
            "state": connection_state_name(k.state).decode(), "peer": k.peer.label.decode(),
            "family": k.peer.family, "active": k.active_slot >= 0,
            "retired": bool(k.retired), "queue": queued, "flight": flying, "queue_bytes": k.queue_bytes,
            "flight_bytes": k.flight_bytes, "head_sent": k.head_sent, "empty": bool(sendq_empty(k)),
            "control": k.control.n - k.control_sent, "unanswered": k.unanswered, "failures": k.failures,
            "load": k.counters.load, "avoid_until": avoided_until(&self.pool, k), "reconnect_at": k.reconnect_at_us,
            "waiting": k.counters.waiting, "in_flight": k.counters.in_flight, "sent_bytes": k.counters.sent_bytes,
            "sent_frames": k.counters.sent_frames, "acked_frames": k.counters.acked_frames,
            "connects": k.counters.connects, "losses": k.counters.losses, "standby": bool(k.standby),
            "leaving": bool(k.leaving), "out": k.counters.out, "answer_us": k.counters.answer_us, "weight": k.weight,
            "heartbeat_at": k.heartbeat_at_us,
        }

    def facts(self):
        """Return what the fields of the pool say, and its lists by length."""
        cdef ConnectionPool* pool = &self.pool
        cdef int i
        return {
            "connections": pool.n_connections, "active": pool.n_active, "held": pool.held_back,
            "waiting": pool.waiting.n, "aside": pool.aside, "unwritten": pool.unwritten,
            "backoff": pool.backoff.n, "settled": pool.settled.n, "table": pool.in_flight.n,
            "timers": pool.timers.n, "retries": pool.retries,
            "splitting": pool.split_bytes, "unsplit": pool.split_waiting, "unmatched": pool.unmatched,
            "duplicates": pool.duplicates, "dirty": pool.dirty != NULL,
            "unknown": self.unknown_bytes,
            "outs": [pool.outs[i] for i in range(5)], "returns": pool.returns,
            "swaps": [pool.swaps[i] for i in range(4)],
        }

    def proxy(self, str label):
        """Return what the pool knows of a proxy of its list."""
        cdef Health* health
        cdef int at = 0
        while at < self.pool.n_endpoints and self.pool.endpoints[at].label != label.encode():
            at += 1
        if at == self.pool.n_endpoints:
            raise KeyError(label)
        health = &self.pool.health[at]
        return {"out": health.out, "until": health.out_until_us, "ejections": health.ejections,
                "failures": health.failures, "since": health.since_us}
