"""A producer's executors and a hub's server loop as a simulator runs them: by rounds, on its clock and its network.

The code that decides is that of the product: batcher, accounting, connections, retries, server loop, sessions,
committer and store.  Threads, sockets and epoll are those of the simulator.
"""

from libc.stdint cimport SIZE_MAX, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memchr, memcmp

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put
from dataproxy._core.base.snappy.compress cimport unpack_block
from dataproxy._core.pack.pack cimport Pack, PackList, pack_memory
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.base.timers cimport timers_next
from dataproxy._core.producer.engine cimport Engine
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.ingest.ids cimport INSTANCE_SIZE
from dataproxy._core.server.committer cimport committer_step
from dataproxy._core.server.loop cimport TAG_WAKEUP, loop_round, loop_timeout
from dataproxy._core.server.state cimport ServerLoop, loop_free, loop_init
from dataproxy._core.server.receive cimport READ_CHUNK
from dataproxy._core.server.entries cimport Entry, StoreOps, entry_free_chain
from dataproxy._core.server.holders cimport holder_name, holders_join
from dataproxy._core.server.core cimport HubCore
from dataproxy._core.server.session cimport Session, table_add, table_touch
from dataproxy._core.base.address cimport Address, address_parse
from dataproxy._core.net.executor cimport Channel, Executor, executor_end, executor_round, executor_seed
from dataproxy._core.conn.connection cimport CS_CONNECTING
from dataproxy._core.net.poller cimport (
    POLL_BATCH, POLL_HANGUP, POLL_READ, POLL_WRITE, PollEvent, poller_add,
)
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load
from dataproxy._core.plat.endian cimport load_be32
from tests.native.probe_net cimport (
    End, Net, PIPE_FAILED, PIPE_NEW, end_readable, end_writable, sim_adopt, sim_clock, sim_transport,
)

from tests.native.probe_store import follow_set_time
from dataproxy._core.wire.api cimport REQ_REPLY, REQ_STORE, Request, ServerProfile, WireOps
from dataproxy._core.wire.registry cimport wire_of_reports, wire_of_server

__all__ = ["Client", "Node"]

ctypedef void (*Settled)(void* context, PackList* packs) noexcept nogil

cdef Settled _real_settled = NULL
cdef dict _accounting = {}       # address of an engine -> list that notes its settled packs


cdef void _note_settled(void* context, PackList* packs) noexcept nogil:
    cdef Pack* p
    with gil:
        found = _accounting.get(<uintptr_t>context)
        p = packs.head
        while p != NULL and found is not None:
            found.append((p.serial, p.seq, p.outcome, p.code, p.count, p.deadline_us, p.attempts, p.open_attempts))
            p = p.next
    _real_settled(context, packs)


cdef class Client:
    """The executors of one producer; ``settled`` collects (serial, seq, outcome, code, messages, deadline, attempts,
    attempts without an answer) of every pack that got its result.
    """

    cdef Engine* engine
    cdef CoreHandle core        # keeps the engine alive
    cdef list ended
    cdef readonly list settled

    def __init__(self, CoreHandle core not None, *, uint64_t seed, uint32_t first_seq, int64_t wall_offset_ms):
        """Put a producer whose threads do not run on the simulated clock and network."""
        global _real_settled
        cdef Executor* e
        cdef int i
        self.core = core
        self.engine = core.engine
        self.engine.clock = sim_clock()
        self.engine.batcher.clock = sim_clock()
        self.engine.batcher.next_seq = first_seq
        for i in range(INSTANCE_SIZE):      # the same ids in every run of a seed
            self.engine.batcher.ids.instance[i] = b"a"[0]
        self.settled = []
        self.ended = [False] * self.engine.n_executors
        _accounting[<uintptr_t><void*>self.engine] = self.settled
        for i in range(self.engine.n_executors):
            e = self.engine.executors[i]
            e.clock = sim_clock()
            e.transport = sim_transport()
            executor_seed(e, seed + <uint64_t>i)
            e.pool.wall_offset_ms = wall_offset_ms
            _real_settled = e.hooks.settled.take
            e.hooks.settled.take = _note_settled

    def leave(self):
        """Forget the producer."""
        _accounting.pop(<uintptr_t><void*>self.engine, None)

    @property
    def executors(self) -> int:
        """Return how many there are."""
        return self.engine.n_executors

    cdef int gather(self, Executor* e, PollEvent* out):
        """Fill in what epoll would report; return the number."""
        cdef Channel* c
        cdef End* end
        cdef int i, n = 0, ready
        if atomic_load(&e.wakeup.pending):
            out[0].tag = &e.wakeup
            out[0].ready = POLL_READ
            n = 1
        for i in range(e.n_channels):
            c = e.channels[i]
            if not c.open or c.transport.state == NULL or n == 64:
                continue
            end = <End*>c.transport.state
            ready = 0
            if e.pool.connections[i].state == CS_CONNECTING:
                if end.pipe.state != PIPE_NEW:
                    ready = POLL_WRITE
                if end.pipe.state == PIPE_FAILED:
                    ready |= POLL_HANGUP
            else:
                if c.interest & POLL_READ and end_readable(end):
                    ready |= POLL_READ
                if c.interest & POLL_WRITE and end_writable(end):
                    ready |= POLL_WRITE
                if end.broken:
                    ready |= POLL_HANGUP
            if ready:
                out[n].tag = e.pool.connections[i]
                out[n].ready = ready
                n += 1
        return n

    def ready(self, int index):
        """Tell whether an executor would be woken now by a connection or another thread."""
        cdef PollEvent events[64]
        return not self.ended[index] and self.gather(self.engine.executors[index], events) > 0

    def due(self, int index):
        """Return when an executor wakes by itself, -1 for never."""
        cdef Executor* e = self.engine.executors[index]
        cdef int64_t due = timers_next(&e.pool.timers)
        if self.ended[index]:
            return -1
        if e.tick_due_us >= 0 and (due < 0 or e.tick_due_us < due):
            due = e.tick_due_us
        return due

    def round(self, int index):
        """Let an executor do one round at the present time; False once its loop has ended."""
        cdef PollEvent events[64]
        cdef Executor* e = self.engine.executors[index]
        cdef bint going
        cdef int n
        if self.ended[index]:
            return False
        n = self.gather(e, events)
        going = executor_round(e, events, n)
        if not going:
            executor_end(e)
            self.ended[index] = True
        return bool(going)

    def bound_memory(self, int64_t packs, int64_t results):
        """Give other bounds of memory, so that few messages reach them.  Before the first one."""
        self.engine.spares.most = packs
        self.engine.batcher.spare_room = packs // 16
        self.engine.completions.most = results

    def hold_bodies(self, size_t size):
        """Let packs hold bodies of ``size`` bytes and more, unless they need copies.  Before the first message."""
        if self.core.hold_from != SIZE_MAX:
            self.core.hold_from = size
            self.engine.batcher.hold_from = size

    def memory(self):
        """Return bytes: of packs, of spare packs, of packs given up and not put away, their bound; then of results.

        Of results: those that wait, the part of them that is ids and parts of results (not known before the result),
        and the bound.
        """
        g = self.engine
        cdef Pack* p = g.completions.packs.head
        cdef int64_t beyond = 0
        while p != NULL:
            beyond += p.waits - pack_memory(0)
            p = p.next
        return (
            atomic_load(&g.spares.in_use), g.spares.spare_bytes, atomic_load(&g.accounting.shed_bytes), g.spares.most,
            atomic_load(&g.completions.bytes), beyond, g.completions.most)

    def facts(self):
        """Return the counts that must be 0 once all is settled: packs in lists, armed timers, bytes on connections.

        The counts by which open packs are sealed or left to grow are compared with the lists.
        """
        cdef Executor* e
        cdef int i, k
        cdef int64_t waiting = 0, backoff = 0, table = 0, queued = 0, flying = 0, timers = 0, connections = 0, inbox = 0
        cdef int64_t queued_packs = 0, flying_packs = 0, counted = 0
        for i in range(self.engine.n_executors):
            e = self.engine.executors[i]
            waiting += e.pool.waiting.n
            backoff += e.pool.backoff.n
            table += e.pool.in_flight.n
            timers += e.pool.timers.n
            connections += e.pool.n_connections
            inbox += e.inbox.n
            for k in range(e.pool.n_connections):
                queued += e.pool.connections[k].queue_bytes
                queued_packs += e.pool.connections[k].queue.n
                flying += e.pool.connections[k].flight_bytes
                flying_packs += e.pool.connections[k].flight.n
            counted += atomic_load(&e.posted) + e.pool.unwritten
        assert counted == waiting + queued_packs + inbox, (counted, waiting, queued_packs, inbox)
        return {"unknown_bytes": self.engine.batcher.unknown_bytes, "unknown_open": self.engine.batcher.unknown_open,
                "unknown_streams": self.engine.batcher.unknown_streams,
                "waiting": waiting, "backoff": backoff, "table": table, "queued": queued, "flying": flying,
                "queued_packs": queued_packs, "flying_packs": flying_packs, "inbox": inbox,
                "timers": max(0, timers - connections)}


ctypedef struct Disk:           # stands between a committer and its store
    const StoreOps* ops
    void* store
    int fault                   # status that the next commits get instead of being stored
    int64_t commits


cdef StoreOps DISK
DISK.append = _disk_append
DISK.retain = _disk_retain


cdef void _disk_append(void* store, Entry* chain) noexcept nogil:
    cdef Disk* disk = <Disk*>store
    disk.commits += 1
    if disk.fault == 0:
        disk.ops.append(disk.store, chain)
        return
    while chain != NULL:
        chain.status = disk.fault
        chain = chain.next


cdef int64_t _disk_retain(void* store) noexcept nogil:
    cdef Disk* disk = <Disk*>store
    return disk.ops.retain(disk.store)


cdef int _mark_in(const uint8_t* p, size_t n) noexcept nogil:
    """Return the code that a body between these bytes asks to be refused with, as ``!refuse-123!``, or 0.

    The form of an HTTP report has ``%21`` for ``!``.
    """
    cdef const uint8_t* end = p + n
    p = <const uint8_t*>memchr(p, 114, n)
    while p != NULL and end - p >= 11:
        if memcmp(p, b"refuse-", 7) == 0 and (p[10] == 33 or p[10] == 37):
            return (p[7] - 48) * 100 + (p[8] - 48) * 10 + p[9] - 48
        p = <const uint8_t*>memchr(p + 1, 114, <size_t>(end - p) - 1)
    return 0


cdef int _mark_of(const uint8_t* p, size_t n) noexcept nogil:
    """Return the code that a message of a whole data frame asks to be refused with, or 0."""
    cdef size_t at = 25 if p[4] & 0x1F == 7 else 9 if p[4] else 6       # of a V1 pack all is looked at
    cdef size_t body_n = load_be32(p + at - 4) if p[4] else n - at
    cdef Buf plain
    cdef int code
    if p[0]:                            # HTTP
        return _mark_in(p, n)
    if body_n > n - at:
        return 0
    code = _mark_in(p + at, body_n)
    buf_init(&plain)
    if code == 0 and unpack_block(p + at, body_n, 1 << 24, &plain) == ST_OK:
        code = _mark_in(plain.p, plain.n)
    buf_free(&plain)
    return code


cdef int _serve(const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out) noexcept nogil:
    return _judge(wire_of_server(), profile, p, n, now_ms, out)


cdef int _serve_report(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out,
) noexcept nogil:
    return _judge(wire_of_reports(), profile, p, n, now_ms, out)


cdef int _judge(
    const WireOps* wire, const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out,
) noexcept nogil:
    """Judge a frame as the real wire does, and refuse it whole for a message that is marked."""
    cdef int code, status = wire.serve(profile, p, n, now_ms, out)
    if status != ST_OK or out.action != REQ_STORE:
        return status
    code = _mark_of(p, n)
    if code == 0:
        return ST_OK
    out.entry.n = 0
    status = wire.refuse(out.reply.p, out.reply.n, code, b"a message is marked", &out.entry)
    out.reply.n = 0
    if status != ST_OK or buf_put(&out.reply, out.entry.p, out.entry.n) != ST_OK:
        return ST_NO_MEMORY
    out.entry.n = 0
    out.action = REQ_REPLY
    out.code = code
    return ST_OK


cdef WireOps PARTICULAR = wire_of_server()[0]
PARTICULAR.serve = _serve

cdef WireOps REPORTS = wire_of_reports()[0]
REPORTS.serve = _serve_report


cdef class Node:
    """One hub without threads: its only server loop and its committer, over an opened ``HubCore``."""

    cdef HubCore hub       # goes before the nets, which its sessions close their connections in
    cdef set nets
    cdef ServerLoop* loop
    cdef Disk disk

    def __init__(self, HubCore hub not None, *, bint reports=False):
        """Take over a hub that is open and does not run; with ``reports`` its port is one of the HTTP report."""
        self.hub = hub
        self.nets = set()
        self.loop = &hub.loops[0]
        hub.shared.wire = &PARTICULAR
        hub.listeners[0].wire = &REPORTS if reports else &PARTICULAR
        self.disk.ops = hub.store.committer.ops
        self.disk.store = hub.store.committer.store
        follow_set_time(hub.store)
        hub.store.committer.ops = &DISK
        hub.store.committer.store = &self.disk

    def accept(self, Net net not None, int index, int64_t now_us, str address="10.0.0.1"):
        """Take a connection, as the server loop does with one from its listener."""
        cdef ServerLoop* d = self.loop
        cdef Session* s = table_add(&d.table, d.shared.max_frame + READ_CHUNK)
        cdef Address peer
        if s == NULL:
            raise MemoryError
        if address_parse(address.encode(), 1, &peer) != ST_OK:
            raise ValueError(address)
        self.nets.add(net)
        sim_adopt(&s.transport, net.pipe(index))
        s.holder = holders_join(&d.holders, holder_name(&peer))
        if s.holder == NULL:
            raise MemoryError
        atomic_add(&d.shared.connections, 1)
        table_touch(&d.table, s, now_us)
        s.interest = POLL_READ
        s.listener = 0
        s.wire = self.hub.listeners[0].wire
        s.source[0] = b"s"
        s.source_n = 1
        if poller_add(&d.poller, &s.transport, <void*>s.id, POLL_READ) != ST_OK:
            raise OSError("a simulated connection cannot be watched")

    cdef int gather(self, PollEvent* out):
        """Fill in what epoll would report; return the number."""
        cdef ServerLoop* d = self.loop
        cdef Session* s
        cdef End* end
        cdef int n = 0, ready
        cdef uint32_t i
        if atomic_load(&d.wakeup.pending):
            out[0].tag = <void*>TAG_WAKEUP
            out[0].ready = POLL_READ
            n = 1
        for i in range(d.table.size):
            s = d.table.slots[i]
            if s == NULL or n == POLL_BATCH:
                continue
            end = <End*>s.transport.state
            ready = 0
            if s.interest & POLL_READ and end_readable(end):
                ready |= POLL_READ
            if s.interest & POLL_WRITE and end_writable(end):
                ready |= POLL_WRITE
            if end.broken:
                ready |= POLL_HANGUP
            if ready:
                out[n].tag = <void*>s.id
                out[n].ready = ready
                n += 1
        return n

    def ready(self):
        """Tell whether the server loop would be woken now."""
        cdef PollEvent events[POLL_BATCH]
        return self.gather(events) > 0

    def round(self, int64_t now_us, int64_t wall_ms):
        """Let the server loop do one round; return when it wakes by itself, -1 for never."""
        cdef PollEvent events[POLL_BATCH]
        cdef int n = self.gather(events)
        cdef int64_t wait
        self.loop.now_us = now_us
        self.loop.wall_ms = wall_ms
        loop_round(self.loop, events, n)
        wait = loop_timeout(self.loop)
        return -1 if wait < 0 else now_us + wait

    def queued(self):
        """Tell whether something waits for a commit."""
        return self.hub.store.committer.head != NULL

    def commit(self, int fault=0):
        """Make one commit of what waits; with ``fault`` nothing is stored and every entry gets that status."""
        self.disk.fault = fault
        made = bool(committer_step(self.hub.store.committer, 0))
        self.disk.ops.retain(self.disk.store)
        return made

    def crash(self):
        """Lose everything but the store, as kill -9 does, and begin anew."""
        cdef Entry* chain = self.hub.store.committer.head
        loop_free(self.loop)
        entry_free_chain(chain)
        self.hub.store.committer.head = NULL
        self.hub.store.committer.tail = NULL
        self.hub.store.committer.held_bytes = 0
        self.hub.store.committer.waiting_count = 0
        self.hub.shared.connections = 0
        if loop_init(self.loop, &self.hub.shared) != ST_OK:
            raise OSError("no descriptors for a loop")

    def sessions(self):
        """Return how many connections are open."""
        return self.loop.table.count
