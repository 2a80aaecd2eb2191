"""Facade of the consumer's compiled core: the calls of the application and of the thread that drives the member.

Locality: GIL, any thread, unless a docstring says otherwise; released while a call waits.  Locks: the exchange's.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from dataproxy._core.base.address cimport address_parse
from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.made cimport BY_CORE
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.consumer.exchange cimport (
    CM_CALL, CM_CONFIRM, CM_DROP, CM_FOLLOW, CM_HOLD, CM_PAUSE, CM_RELEASE, CM_RESUME, CM_ROLL_BACK, CM_RULES,
    EK_ANSWER, EK_BROKEN, EK_FAULT, EK_LOST, EK_RELEASED, EK_TOLD, Command, Event, Tally, command_free, event_free,
    exchange_call, exchange_end, exchange_events, exchange_post, exchange_stop, exchange_take, exchange_tally,
    exchange_wait_events, exchange_wait_ready,
)
from dataproxy._core.consumer.fetch cimport HoldCopy, fetch_holds
from dataproxy._core.consumer.flow cimport FlowRules
from dataproxy._core.consumer.loop cimport Loop, loop_free, loop_open, loop_run
from dataproxy._core.consumer.pack cimport Pack
from dataproxy._core.consumer.tubepack cimport PC_REVOKED, PC_SOUGHT, PO_HELD, TubePack, tubepack_hold, tubepack_let_go
from dataproxy._core.net.poller cimport wakeup_clear
from dataproxy._core.net.tlscontext cimport TlsContexts
from dataproxy._core.net.tlsholder cimport TlsHolder
from dataproxy._core.plat.atomic cimport atomic_load, atomic_swap, relaxed_load
from dataproxy._core.plat.clock cimport now_us
from dataproxy._core.plat.eventfd cimport eventfd_read, eventfd_t

from dataproxy.errors import ForkedError

__all__ = ["ConsumerCore", "LoopRun"]

cdef enum:
    SLICE_US = 100000       # the longest time between two checks for signals

cdef double LONGEST_S = 1e9


_EVENTS = {
    EK_ANSWER: "answer", EK_FAULT: "fault", EK_RELEASED: "released", EK_LOST: "lost", EK_TOLD: "told",
    EK_BROKEN: "broken",
}


cdef int64_t _us(object seconds) except -1:
    return <int64_t>(min(max(float(seconds), 0.0), LONGEST_S) * 1e6)


@cython.final
cdef class LoopRun:
    """Run a consumer's loop; the body of its thread."""

    cdef ConsumerCore core

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("made by ConsumerCore.loop_body")

    def __call__(self):
        """Work until ``stop``.  Thread: the loop's own; the GIL is released until the end."""
        cdef Loop* loop = self.core.loop
        with nogil:
            loop_run(loop)


cdef class ConsumerCore:
    """Own the loop of one consumer.

    ``limits``: call, connect, confirm and longest wait after nothing in s; bytes of packs.  Raises MemoryError and
    OSError.
    """

    cdef Loop* loop
    cdef uint32_t generation
    cdef dict holds             # number of a hold -> (topic, key of the partition); GIL
    cdef set closing            # numbers of holds that give out nothing more; GIL
    cdef dict begun             # number of a hold that the loop may not know yet -> (key, offset, end, bytes left); GIL

    def __cinit__(self, bytes client not None, bytes group not None, *, double call, double connect, double confirm,
                  double nothing, int64_t prefetch_bytes, TlsContexts tls=None, bint awaited=False):
        cdef TlsHolder* holder
        cdef int status
        self.generation = this_generation
        self.holds = {}
        self.begun = {}
        self.closing = set()
        self.loop = <Loop*>calloc(1, sizeof(Loop))
        if self.loop == NULL:
            raise MemoryError("no memory for a consumer")
        holder = NULL if tls is None else tls.join()
        status = loop_open(
            self.loop, slice_of(<const char*>client, len(client)), slice_of(<const char*>group, len(group)), holder)
        if status == ST_NO_MEMORY:
            raise MemoryError("no memory for a consumer")
        if status != ST_OK:
            raise OSError("no descriptors for a consumer: see 'ulimit -n'")
        self.loop.connect_us = _us(connect)
        self.loop.fetch.call_us = _us(call)
        self.loop.fetch.confirm_us = _us(confirm)
        self.loop.fetch.nothing_ms = <int64_t>(nothing * 1000)
        self.loop.fetch.most_bytes = prefetch_bytes
        self.loop.exchange.awaited = awaited

    def __dealloc__(self):
        if self.loop != NULL and self.generation == this_generation:
            loop_free(self.loop)
            free(self.loop)

    @property
    def inherited(self):
        """Tell whether it was made before a fork."""
        return self.generation != this_generation

    def check_own(self):
        """Raise ForkedError in a forked child: the loop belongs to the parent."""
        if self.generation != this_generation:
            raise ForkedError(
                "this consumer was opened before the process was forked; its threads, connections and partitions "
                "belong to the parent", hint="open one in the child process")

    def loop_body(self):
        """Return the body of the loop's thread."""
        cdef LoopRun run = LoopRun.__new__(LoopRun, BY_CORE)
        run.core = self
        return run

    # --- the thread that drives the member

    cdef Command* command(self, int kind, int64_t number) except NULL:
        """Return a command, which the caller posts or frees.  Raises MemoryError."""
        cdef Command* c = <Command*>calloc(1, sizeof(Command))
        if c == NULL:
            raise MemoryError("no memory for a command")
        c.kind, c.number = kind, number
        return c

    cdef int take_peer(self, Command* c, tuple peer) except -1:
        """Fill in (label, numeric address, port, name of the host)."""
        cdef bytes label = peer[0].encode("utf-8", "replace")[:63]
        cdef bytes address = peer[1].encode()
        cdef bytes name = peer[3].encode("utf-8", "replace")[:255]
        if address_parse(<const char*>address, <unsigned short>peer[2], &c.peer.address) != ST_OK:
            raise ValueError(f"{peer[1]!r} is no numeric address")
        c.peer.family = c.peer.address.raw.ss_family
        memcpy(c.peer.label, <const char*>label, len(label))
        memcpy(c.peer.name, <const char*>name, len(name))
        return 0

    cdef int take_data(self, Command* c, bytes data) except -1:
        """Give a command a copy of these bytes.  Raises MemoryError."""
        c.n = <size_t>len(data)
        c.data = <uint8_t*>malloc(c.n + 1)
        if c.data == NULL:
            raise MemoryError("no memory for a command")
        memcpy(c.data, <const char*>data, c.n)
        return 0

    cdef int post(self, Command* c) except -1:
        """Hand a command to the loop.  Raises ForkedError."""
        cdef Loop* loop = self.loop
        if self.generation != this_generation:
            command_free(c)
            self.check_own()
        with nogil:
            exchange_post(&loop.exchange, c)
        return 0

    def call(self, int64_t number, tuple peer, int32_t service, int32_t method, bytes request, double timeout):
        """Make a call; its end is an event with this number."""
        cdef Command* c = self.command(CM_CALL, number)
        try:
            self.take_peer(c, peer)
            self.take_data(c, request)
        except BaseException:
            command_free(c)
            raise
        c.service, c.method, c.time_us = service, method, _us(timeout)
        self.post(c)

    def hold(self, int64_t number, tuple peer, str topic, int32_t partition, str key, int64_t offset, int64_t end,
             list filters, bint paused=False):
        """Read packs of a partition from now on, or from the end of a pause on; ``filters`` are bytes.

        ``end``: where the partition's store ends, as its broker has said; -1: it has not.
        """
        cdef Command* c = self.command(CM_HOLD, number)
        cdef size_t size = sum([len(one) for one in filters])
        cdef uint8_t* to
        cdef bytes item
        cdef int i
        try:
            self.take_peer(c, peer)
            self.take_data(c, topic.encode())
            if filters:
                c.n_filters = len(filters)
                c.filters = <Slice*>malloc(c.n_filters * sizeof(Slice) + size)
                if c.filters == NULL:
                    raise MemoryError("no memory for filters")
                to = <uint8_t*>&c.filters[c.n_filters]
                for i in range(c.n_filters):
                    item = filters[i]
                    memcpy(to, <const char*>item, len(item))
                    c.filters[i] = slice_of(to, len(item))
                    to += len(item)
        except BaseException:
            command_free(c)
            raise
        c.partition, c.offset, c.end, c.paused = partition, offset, end, paused
        self.holds[number] = (topic, key)
        self.begun[number] = (key, offset, end, 0 if offset == end else -1)
        self.post(c)

    def release(self, int64_t number, double seconds, bint sought=False):
        """Give out nothing more of a partition; its last pack may be confirmed for so long.

        ``sought``: it is read from another place afterwards, which packs that end here say.
        """
        cdef Command* c = self.command(CM_RELEASE, number)
        c.time_us = now_us() + _us(seconds)
        c.code = PC_SOUGHT if sought else PC_REVOKED
        self.closing.add(number)
        self.post(c)

    def follow(self, int64_t number, tuple peer):
        """Read a partition at another address of its broker, from the next request on."""
        cdef Command* c = self.command(CM_FOLLOW, number)
        try:
            self.take_peer(c, peer)
        except BaseException:
            command_free(c)
            raise
        self.post(c)

    def drop(self, int64_t number, int32_t code):
        """Forget a partition, which is another's by now."""
        cdef Command* c = self.command(CM_DROP, number)
        c.code = code
        self.post(c)

    def pause(self, int64_t number, bint paused):
        """Ask for no more packs of a partition, or ask for them again."""
        self.post(self.command(CM_PAUSE if paused else CM_RESUME, number))

    def forget(self, int64_t number):
        """Forget the names of a partition that is given back; packs of it that are still out have theirs."""
        self.holds.pop(number, None)
        self.begun.pop(number, None)
        self.closing.discard(number)

    def rules(self, group, cluster):
        """Follow these rules from the next minute of reading on: two FlowRules."""
        cdef Command* c = self.command(CM_RULES, 0)
        c.rules = <FlowRules*>calloc(2, sizeof(FlowRules))
        if c.rules == NULL:
            command_free(c)
            raise MemoryError("no memory for rules")
        _take_rules(&c.rules[0], group)
        _take_rules(&c.rules[1], cluster)
        self.post(c)

    def events(self, double seconds):
        """Wait up to so long for events, or for ``wake``; return them as (kind, number, code, detail, data, trace).

        Raises MemoryError if there was no memory for an event: whoever waits for what it says would wait for ever.
        """
        cdef Loop* loop = self.loop
        cdef int64_t until = now_us() + _us(seconds)
        cdef Event* e
        cdef Event* following
        cdef bint whole
        cdef list found = []
        with nogil:
            whole = exchange_wait_events(&loop.exchange, until)
            e = exchange_events(&loop.exchange)
        while e != NULL:
            data = (<const char*>e.data)[:e.n]
            found.append((_EVENTS[e.kind], e.number, e.code, e.detail, data[:e.cut], data[e.cut:]))
            following = e.next
            event_free(e)
            e = following
        if not whole and not found:
            raise MemoryError("there was no memory for an event of a consumer's connections")
        return found

    def wake(self):
        """Let ``events`` return now."""
        cdef Loop* loop = self.loop
        if self.generation == this_generation:
            with nogil:
                exchange_call(&loop.exchange)

    def end(self):
        """Let nobody wait for packs any more."""
        cdef Loop* loop = self.loop
        self.check_own()
        with nogil:
            exchange_end(&loop.exchange)

    def stop(self):
        """Let the loop's thread end: packs that are out expire."""
        cdef Loop* loop = self.loop
        if self.generation == this_generation:
            with nogil:
                exchange_stop(&loop.exchange)

    # --- the application

    cdef int return_pack(self, TubePack* p) except -1:
        """Give back a pack that was taken and is not given out, with its use.  Raises MemoryError, ForkedError."""
        cdef Command* c
        try:
            c = self.command(CM_ROLL_BACK, 0)
        except BaseException:
            tubepack_let_go(p)
            raise
        c.pack = p
        self.post(c)
        return 0

    def take(self, object consumer, double seconds):
        """Return the next pack, or None: none came within the time, or none will come.

        Raises what handlers of signals raise, and ForkedError.
        """
        cdef Loop* loop = self.loop
        cdef TubePack* p
        cdef int64_t until, now
        cdef bint found
        self.check_own()
        until = now_us() + _us(seconds)
        while True:
            now = now_us()
            with nogil:
                p = exchange_take(&loop.exchange, now)
            if p != NULL and p.hold in self.closing:    # the loop does not know it yet
                self.return_pack(p)
                continue
            if p != NULL:
                names = self.holds.get(p.hold)
                if names is not None:
                    return Pack.make(p, consumer, names[0], names[1])
                tubepack_let_go(p)          # its partition was lost a moment ago: the loop says what becomes of it
                continue
            if now >= until or loop.exchange.ended:
                return None
            with nogil:
                found = exchange_wait_ready(&loop.exchange, NULL, min(until, now + SLICE_US))
            if not found:
                PyErr_CheckSignals()
                self.check_own()

    def made_for(self, object consumer, object pack):
        """Tell whether something is a pack that this consumer gave."""
        return isinstance(pack, Pack) and (<Pack>pack).consumer is consumer

    def end_pack(self, Pack pack not None, bint consumed):
        """Ask for a pack's confirm, or give it back; False: this was done before."""
        cdef Command* c
        self.check_own()
        if atomic_swap(&pack.pack.confirm_asked, 1):
            return False
        if consumed:
            pack.done = True
        c = self.command(CM_CONFIRM if consumed else CM_ROLL_BACK, 0)
        tubepack_hold(pack.pack)
        c.pack = pack.pack
        self.post(c)
        return True

    def wait_pack(self, Pack pack not None, double seconds):
        """Wait for a pack's outcome; False: it has none yet.  Raises what handlers of signals raise."""
        cdef Loop* loop = self.loop
        cdef int64_t until = now_us() + _us(seconds)
        cdef int64_t now = now_us()
        cdef TubePack* p = pack.pack
        while atomic_load(&p.outcome) == PO_HELD:
            if now >= until or loop.exchange.ended:
                return atomic_load(&p.outcome) != PO_HELD
            with nogil:
                exchange_wait_ready(&loop.exchange, p, min(until, now + SLICE_US))
            PyErr_CheckSignals()
            self.check_own()
            now = now_us()
        return True

    def fileno(self):
        """Return the descriptor that can be read when there may be a pack, or an outcome."""
        return self.loop.exchange.aio.fd

    def look(self):
        """Clear the descriptor, before packs and outcomes are looked for."""
        cdef eventfd_t value = 0
        eventfd_read(self.loop.exchange.aio.fd, &value)     # first: a signal behind the next line writes again
        wakeup_clear(&self.loop.exchange.aio)

    @property
    def ended(self):
        """Tell whether no more packs will come."""
        return bool(self.loop.exchange.ended)

    # --- statistics

    def tally(self):
        """Return the counts of messages and packs as a dictionary, all of one moment."""
        cdef Loop* loop = self.loop
        cdef Tally t
        self.check_own()            # a forked child's lock may be another thread's for ever
        with nogil:
            exchange_tally(&loop.exchange, &t)
        found = {
            "bytes": t.bytes, "broken": t.broken, "filtered": t.filtered, "empty": t.empty, "refused": t.refused,
            "read_bytes": relaxed_load(&loop.read_bytes), "sent_bytes": relaxed_load(&loop.sent_bytes),
            "connects": relaxed_load(&loop.connects),
        }
        for name, counts in (("packs", [n for n in t.packs]), ("messages", [n for n in t.messages])):
            fetched, confirmed, rolled_back, expired = counts
            found[name] = {
                "fetched": fetched, "confirmed": confirmed, "rolled_back": rolled_back, "expired": expired,
                "held": fetched - confirmed - rolled_back - expired,
            }
        return found

    def partitions(self):
        """Return (key, offset, max_offset, backlog) of each partition that is read; below 0: not known."""
        cdef Loop* loop = self.loop
        cdef HoldCopy* copies
        cdef int i, n = 0
        cdef list found = []
        self.check_own()
        with nogil:
            copies = fetch_holds(&loop.fetch, &n)
        if copies == NULL:
            raise MemoryError("no memory for statistics")
        for i in range(n):
            self.begun.pop(copies[i].number, None)
            names = self.holds.get(copies[i].number)
            if names is not None:
                found.append((names[1], copies[i].offset, copies[i].max_offset, copies[i].backlog))
        free(copies)
        found.extend(list(self.begun.values()))
        return found


cdef int _take_rules(FlowRules* to, object rules) except -1:
    cdef int i
    to.n_volume, to.n_empty = len(rules.volume), len(rules.empty)
    for i in range(to.n_volume):
        one = rules.volume[i]
        to.volume[i].first_minute, to.volume[i].last_minute = one.first_minute, one.last_minute
        to.volume[i].backlog, to.volume[i].bytes, to.volume[i].wait_ms = one.backlog, one.bytes_a_minute, one.wait_ms
    for i in range(to.n_empty):
        to.empty[i].times, to.empty[i].wait_ms = rules.empty[i].times, rules.empty[i].wait_ms
    if rules.pace is not None:
        to.has_pace = True
        to.pace_ms, to.filtered_ms, to.filtered_near_ms = rules.pace
    return 0
