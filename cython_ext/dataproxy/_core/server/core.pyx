"""Facade of the hub's server loops: Python opens, runs, watches and stops them; the loops run without the GIL."""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

import os
import signal

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.server.loop cimport loop_run
from dataproxy._core.server.state cimport (
    LOOP_CODES, LOOP_DRAINS, LOOP_STOPS, LISTENERS_MOST, LOAD_QUEUE, LOAD_UNKNOWN, loop_done, loop_free, loop_init,
    loop_release,
)
from dataproxy._core.server.listener cimport (
    listener_close, listener_init, listener_open, listener_port, listener_refuse, listener_resume,
)
from dataproxy._core.server.peers cimport Peer, PeerStream, peers_copy
from dataproxy._core.server.topics cimport (
    Names, numbers_add, numbers_find, numbers_free, numbers_init, topics_add, topics_free, topics_init, topics_known,
)
from dataproxy._core.server.session cimport CLOSE_REASONS
from dataproxy._core.base.address cimport Address, address_parse
from dataproxy._core.net.poller cimport wakeup_signal
from dataproxy._core.net.tlscontext cimport TlsContexts
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, atomic_store, relaxed_load, relaxed_store
from dataproxy._core.plat.clock cimport now_us
from dataproxy._core.plat.thread cimport (
    pthread_cond_destroy, pthread_cond_init, pthread_cond_wait, pthread_mutex_destroy, pthread_mutex_init,
    pthread_mutex_lock, pthread_mutex_unlock,
)
from dataproxy._core.wire.registry cimport wire_of_queue, wire_of_reports, wire_of_server

CLOSE_NAMES = ("none", "peer", "reset", "protocol", "oversize", "idle", "replies", "memory", "refused", "stopped",
               "fault", "tls", "answered")
COUNTERS = ("accepted", "frames", "heartbeats", "entries", "records", "bytes_in", "bytes_out", "replies", "unanswered",
            "accept_pauses")


cdef enum:
    LENGTH_MOST = 16777216      # of a frame of RocketMQ's
    BACKLOG = 1024
    NODES_MOST = 64
    FRAME_MORE = 65536          # bytes of a frame beside the largest message


cdef str _readable(bytes name):
    """Return a name as a text."""
    return name.decode("utf-8", "backslashreplace")


@cython.no_gc_clear
cdef class HubCore:
    """Accept, judge, store and answer DataProxy requests on ``threads`` loops.

    ``open`` binds; then every ``run_loop(i)`` runs on a thread of its own until ``stop``.  All other methods
    may be called from any thread.
    """

    def __cinit__(self):
        """Make a core without resources."""
        memset(&self.shared, 0, sizeof(HubShared))
        memset(&self.names, 0, sizeof(Names))
        cdef int i
        for i in range(<int>LISTENERS_MOST):
            listener_init(&self.listeners[i])
        self.shared.listeners = self.listeners
        self.ports = ()
        self.loops = NULL
        pthread_mutex_init(&self.shared.mutex, NULL)
        pthread_cond_init(&self.shared.followed, NULL)

    def __init__(self, StoreCore store not None, FaultCore faults=None, *, str host not None,
                 str other_host="", int port, int http_port=-1, int nodes=1, int threads, int64_t max_frame,
                 int64_t max_connections, double read_idle, int64_t reply_bytes, int64_t queue_bytes, bint compat,
                 bint compress_entries, str node_ip not None, int partitions, topics, numbers=(), TlsContexts tls=None,
                 CallsCore calls=None, int tubemq_port=-1, int64_t tubemq_message=0, int tubemq_partitions=1,
                 RemotingCore remoting=None, int rocketmq_port=-1, int rocketmq_second_port=-1,
                 int64_t rocketmq_message=4 << 20):
        """Take over checked settings: times in seconds, sizes in bytes; ``topics`` lists what is known.

        ``other_host`` is an address of the other family, to be listened on at the same ports.  With ``http_port`` there
        is a listener for HTTP reports beside each of the others, behind them in ``ports``; -1: none.
        A topic is ``group`` or ``group/stream``; an empty list knows everything.  ``numbers`` are (group number,
        stream number, name) by rising numbers.  ``tls``: settings of all connections; None: they are plain.
        ``calls``: the queue of calls of TubeMQ's clients; with it, there is a listener for them.  Their messages have
        at most ``tubemq_message`` bytes and attributes, and name partitions below ``tubemq_partitions``.
        ``remoting``: what RocketMQ's clients need; with it, there is a listener for them, and another one unless
        ``rocketmq_second_port`` is -1.  Their messages, and those of a batch together, have at most
        ``rocketmq_message`` bytes.
        """
        cdef int i
        if not 1 <= nodes <= NODES_MOST:
            raise ValueError(f"{nodes} is not an allowed number of nodes")
        self.store = store
        self.faults = FaultCore() if faults is None else faults
        self.shared.faults = &self.faults.table
        self.nodes = nodes
        self.shared.listener_count = self.shared.producer_listeners = 2 * nodes if http_port >= 0 else nodes
        self.calls = calls
        self.tubemq_port, self.tubemq = tubemq_port, -1
        if calls is not None:
            self.tubemq = self.shared.listener_count
            self.shared.listener_count += 1
            self.shared.calls = &calls.queue
        self._add_remoting(remoting, rocketmq_port, rocketmq_second_port, rocketmq_message)
        self._set_ends(host, other_host, port, http_port, node_ip)
        self.shared.most_token = -1
        self.shared.profile.max_message = <size_t>tubemq_message
        self.shared.named_partitions = tubemq_partitions
        for i in range(self.shared.listener_count):
            self._speak(i, max(max_frame, tubemq_message + FRAME_MORE) if i == self.tubemq else max_frame, compat)
        self.threads = threads
        self.shared.committer = store.committer
        self.shared.window_key = store.window_key()
        self.tls = tls
        self.shared.tls = NULL if tls is None else tls.holder
        self.shared.wire = wire_of_server()
        self.shared.max_frame = <size_t>max_frame
        self.shared.max_connections = max_connections
        self.shared.read_idle_us = <int64_t>(read_idle * 1e6)
        self.shared.reply_bytes = <size_t>reply_bytes
        self.shared.queue_bytes = max(queue_bytes // threads, 1)
        self.shared.held_bytes = max(queue_bytes // threads, 2 * max_frame, 2 * tubemq_message,
                                     0 if remoting is None else 2 * LENGTH_MOST)
        self.shared.partitions = <unsigned int>partitions
        self.shared.profile.compress_entries = compress_entries
        self.shared.profile.max_frame = <size_t>max_frame
        self.shared.profile.load = -1
        self.shared.profile.context = &self.names
        self._learn(list(topics))
        self._number(list(numbers))

    cdef int _speak(self, int i, int64_t max_frame, bint compat) except -1:
        """Say what is spoken at a listener."""
        cdef bint other = i == self.tubemq or 0 <= self.rocketmq <= i
        self.listeners[i].wire = (wire_of_queue() if i == self.tubemq else self.shared.remoting_wire if other
                                  else wire_of_server() if i < self.nodes else wire_of_reports())
        self.listeners[i].compat = compat and not other
        self.listeners[i].load = LOAD_UNKNOWN
        self.listeners[i].max_frame = LENGTH_MOST if 0 <= self.rocketmq <= i else <size_t>max_frame
        return 0

    cdef int _set_ends(self, str host, str other_host, int port, int http_port, str node_ip) except -1:
        """Take over where to listen, and what the hub calls itself."""
        self.host = host
        self.other_host = other_host
        self.port = port
        self.http_port = http_port
        self.node_ip = node_ip.encode()
        self.shared.profile.node_ip = slice_of(<char*>self.node_ip, <size_t>len(self.node_ip))
        return 0

    cdef int _add_remoting(self, RemotingCore remoting, int port, int second_port, int64_t message) except -1:
        """Add the listeners for RocketMQ, if there are any."""
        self.remoting = remoting
        self.rocketmq_ports = [port, second_port]
        self.rocketmq = -1
        if remoting is None:
            return 0
        self.rocketmq = self.shared.listener_count
        self.shared.listener_count += 2 if second_port >= 0 else 1
        self.shared.remoting = &remoting.remoting
        self.shared.remoting_wire = remoting.remoting.wire
        remoting.remoting.max_message = <size_t>message
        return 0

    def __dealloc__(self):
        """Release the server loops; a server loop whose entries are still at the store is left alone."""
        cdef int i
        self.close_listener()
        if self.remoting is not None:
            self.remoting.part()
        for i in range(self.loop_count):
            if self.loops[i].outstanding > 0 and atomic_load(&self.shared.committer.running):
                return  # the committer will still write there
        for i in range(self.loop_count):
            loop_free(&self.loops[i])
        free(self.loops)
        topics_free(&self.names.topics)
        numbers_free(&self.names.numbers)
        pthread_cond_destroy(&self.shared.followed)
        pthread_mutex_destroy(&self.shared.mutex)

    def _learn(self, list topics not None):
        """Fill the set of known topics."""
        cdef bytes group
        cdef bytes stream
        cdef int status
        if not topics:
            return
        if topics_init(&self.names.topics, <size_t>len(topics)) != ST_OK:
            raise MemoryError
        for topic in topics:
            name, slash, rest = topic.partition("/")
            group = name.encode()
            stream = rest.encode()
            status = topics_add(&self.names.topics, slice_of(<char*>group, <size_t>len(group)),
                                slice_of(<char*>stream, <size_t>len(stream)), not slash)
            if status != ST_OK:
                raise MemoryError
        self.shared.profile.known = topics_known

    def _number(self, list numbers not None):
        """Fill the names of numeric ids; without any, requests that use them are refused."""
        cdef bytes raw
        cdef int status
        if not numbers:
            return
        if numbers_init(&self.names.numbers, <size_t>len(numbers)) != ST_OK:
            raise MemoryError
        for group, stream, name in numbers:
            raw = name.encode()
            status = numbers_add(&self.names.numbers, group << 16 | stream, slice_of(<char*>raw, <size_t>len(raw)))
            if status != ST_OK:
                raise MemoryError
        self.shared.profile.numbered = numbers_find

    def serve_data(self, RegistrationsCore broker not None) -> None:
        """Answer calls of data by registrations that are attached to the store; between ``open`` and ``run_loop``."""
        cdef int i
        for i in range(self.loop_count):
            broker.join(i, &self.loops[i].wakeup)
        self.broker = broker
        self.shared.broker = &broker.broker

    cdef int _join(self, int number) except -1:
        """Let the core of RocketMQ's clients know a server loop."""
        if self.remoting is not None:
            self.remoting.join(number, &self.loops[number])
        return 0

    def open(self) -> int:
        """Bind and listen; return the first port, ``ports`` has all.

        A port that is not 0 is that of the first listener of its kind, the others follow it.  Raises OSError, and
        ValueError for a host that is not a numeric address.
        """
        cdef int i
        cdef int status
        if self.opened:
            raise ValueError("the hub core was opened before")
        self.ports = self._listen()
        self.opened = True
        self.port = self.ports[0]
        self.store.set_done(loop_done)
        self.loops = <ServerLoop*>calloc(<size_t>self.threads, sizeof(ServerLoop))
        if self.loops == NULL:
            raise MemoryError
        for i in range(self.threads):
            self.loop_count = i + 1
            status = loop_init(&self.loops[i], &self.shared)
            self.loops[i].number = i
            if status != ST_OK:
                raise OSError(24, "no file descriptors left for the epoll set of the hub")
            self._join(i)
        return self.port

    cdef tuple _listen(self):
        """Open every listener and return their ports; after a failure none is open."""
        cdef Address address, second
        cdef const Address* other = &second if self.other_host else NULL
        cdef bytes host = self.host.encode()
        cdef bytes other_host = self.other_host.encode()
        cdef Listener* one
        cdef int port, first
        cdef int i
        ports = []
        for i in range(self.shared.listener_count):
            one = &self.listeners[i]
            first = self._first_port(i)
            port = first + i % self.nodes if first and self._kind(i) in ("tcp", "http") else first
            if port > 65535 or address_parse(host, <unsigned short>port, &address) != ST_OK:
                self.close_listener()
                raise ValueError(f"{self.host!r} with port {port} is not a numeric address")
            if other != NULL and address_parse(other_host, 0, &second) != ST_OK:
                self.close_listener()
                raise ValueError(f"{self.other_host!r} is not a numeric address")
            if listener_open(one, &address, other, BACKLOG) != ST_OK:
                self.close_listener()
                raise OSError(one.error, os.strerror(one.error), f"{self._kind(i)} {port}")
            one.port = listener_port(one)
            ports.append(one.port)
        return tuple(ports)

    cdef int _first_port(self, int i) except -1:
        """Return the port of a listener, or that of the first of its kind; 0: any."""
        if 0 <= self.rocketmq <= i:
            return self.rocketmq_ports[i - self.rocketmq]
        return self.tubemq_port if i == self.tubemq else self.port if i < self.nodes else self.http_port

    cdef str _kind(self, int i):
        """Return what a listener is for."""
        if i == self.tubemq:
            return "tubemq"
        return "rocketmq" if 0 <= self.rocketmq <= i else "tcp" if i < self.nodes else "http"

    def run_loop(self, int i) -> None:
        """Run one loop until the hub stops.  To be called once for each server loop, on a thread of its own."""
        cdef int status
        if not 0 <= i < self.loop_count:
            raise IndexError(f"there is no port {i}")
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        with nogil:
            status = loop_run(&self.loops[i])
        if status != ST_OK:
            raise OSError(self.loops[i].poller.error, "a server loop of the hub failed")

    def stop(self, double drain) -> None:
        """Accept and read no more; loops end once all is answered, at the latest after ``drain`` seconds."""
        cdef int i
        atomic_store(&self.shared.deadline_us, now_us() + relaxed_load(&self.shared.clock_skew_us)
                     + <int64_t>(drain * 1e6))
        for i in range(self.shared.listener_count):     # before any peer is told
            listener_refuse(&self.listeners[i])
        atomic_store(&self.shared.phase, LOOP_DRAINS if drain > 0 else LOOP_STOPS)
        self.wake()

    def close_listener(self) -> None:
        """Release the listening sockets; to be called when no loop runs any more."""
        cdef int i
        for i in range(<int>LISTENERS_MOST):
            listener_close(&self.listeners[i])

    def release(self) -> None:
        """Close every descriptor; to be called when no loop runs and the committer has ended."""
        cdef int i
        self.close_listener()
        for i in range(self.loop_count):
            loop_release(&self.loops[i])

    def refuse(self, int listener, bint kill) -> None:
        """Make a listener refuse connections; ``kill`` also closes those it has taken.  The port stays reserved."""
        cdef Listener* one = self._listener(listener)
        if not kill:
            self.follow()       # who is connected by now goes on
        listener_refuse(one)
        if kill:
            atomic_add(&one.kills, 1)
        self.follow()

    def resume(self, int listener) -> None:
        """Make a listener take connections again.  Raises OSError."""
        cdef Listener* one = self._listener(listener)
        if atomic_load(&one.shut) == 0:
            return
        if listener_resume(one, BACKLOG) != ST_OK:
            raise OSError(one.error, os.strerror(one.error))
        self.follow()

    def refuses(self, int listener) -> bool:
        """Tell whether a listener refuses connections."""
        return atomic_load(&self._listener(listener).shut) != 0

    def accepted(self, int listener) -> int:
        """Return the connections that a listener has taken so far."""
        return relaxed_load(&self._listener(listener).accepted)

    cdef Listener* _listener(self, int listener) except NULL:
        """Return a listener of an open core."""
        if not 0 <= listener < self.shared.listener_count:
            raise IndexError(f"there is no listener {listener}")
        return &self.listeners[listener]

    def follow(self) -> None:
        """Make every loop carry out changes of listeners and faults, and wait until each has done it or has ended.

        To be called when every loop has a thread.
        Locks: takes HubShared.mutex.
        """
        cdef int64_t orders = atomic_add(&self.shared.orders, 1)
        cdef int i
        self.wake()
        with nogil:
            pthread_mutex_lock(&self.shared.mutex)
            for i in range(self.loop_count):
                while not atomic_load(&self.loops[i].ended) and atomic_load(&self.loops[i].followed) < orders:
                    pthread_cond_wait(&self.shared.followed, &self.shared.mutex)
            pthread_mutex_unlock(&self.shared.mutex)

    def wake(self) -> None:
        """Make every loop look at its settings now."""
        cdef int i
        for i in range(self.loop_count):
            wakeup_signal(&self.loops[i].wakeup)

    cdef tuple _of_node(self, int node):
        """Return the listeners of a node, of TCP and of HTTP; -1: all, those of TubeMQ and RocketMQ with them."""
        if not -1 <= node < self.nodes:
            raise IndexError(f"there is no node {node}")
        return tuple([i for i in range(self.shared.listener_count)
                      if node < 0 or (i % self.nodes == node and self._kind(i) in ("tcp", "http"))])

    def set_service(self, int code, int node=-1) -> None:
        """Answer data requests of a node (-1: all) normally (0), with "not ready" (1) or with "stopped" (2)."""
        cdef int i
        for i in self._of_node(node):
            relaxed_store(&self.listeners[i].service_code, code)
        self.wake()

    def set_load(self, load, int node=-1) -> None:
        """Answer heartbeats with a number, with None for unknown, or with "queue": how full the queue is."""
        cdef int64_t value = LOAD_UNKNOWN if load is None else LOAD_QUEUE if load == "queue" else <int64_t>load
        cdef int i
        for i in self._of_node(node):
            relaxed_store(&self.listeners[i].load, value)
        self.wake()

    def set_compat(self, bint compat, int listener) -> None:
        """Make a listener copy the reference server's quirks, or be strict."""
        relaxed_store(&self._listener(listener).compat, compat)
        self.wake()

    def settings(self, int listener) -> tuple:
        """Return (compat, service code, load) of a listener; the load is "queue", None or a number."""
        cdef Listener* one = self._listener(listener)
        cdef int64_t load = relaxed_load(&one.load)
        return (relaxed_load(&one.compat) != 0, relaxed_load(&one.service_code),
                "queue" if load == LOAD_QUEUE else None if load == LOAD_UNKNOWN else load)

    def clock_us(self) -> int:
        """Return the time of the server loops, in us of a monotonic clock."""
        return now_us() + relaxed_load(&self.shared.clock_skew_us)

    def set_tokens(self, int64_t least, int64_t most) -> None:
        """Ask TubeMQ's producers for a number from ``least`` to ``most`` with each message; most -1: for none."""
        relaxed_store(&self.shared.least_token, least)
        relaxed_store(&self.shared.most_token, most)

    def let_name(self, int partitions) -> None:
        """Let TubeMQ's producers name partitions below ``partitions``, where they could not yet: a store has them."""
        if partitions > relaxed_load(&self.shared.named_partitions):
            relaxed_store(&self.shared.named_partitions, partitions)

    def advance_clock(self, double seconds) -> None:
        """Move the server loops' clock forward, so that tests need not wait for idle limits."""
        atomic_add(&self.shared.clock_skew_us, <int64_t>(seconds * 1e6))
        self.wake()

    cdef object _closed_counts(self):
        """Return the closed connections by reason."""
        cdef dict out = {}
        cdef int64_t n
        cdef int i
        cdef int reason
        for reason in range(1, <int>CLOSE_REASONS):
            n = 0
            for i in range(self.loop_count):
                n += relaxed_load(&self.loops[i].counters.closed[reason])
            out[CLOSE_NAMES[reason]] = n
        return out

    cdef object _refused_counts(self):
        """Return the refused requests by code, codes without a refusal left out."""
        cdef dict out = {}
        cdef int64_t n
        cdef int i
        cdef int code
        for code in range(<int>LOOP_CODES):
            n = 0
            for i in range(self.loop_count):
                n += relaxed_load(&self.loops[i].counters.refused[code])
            if n:
                out[code] = n
        return out

    def producers(self) -> tuple:
        """Return who is connected as a producer of DataProxy, who has ended since the last call, and how many more.

        Rows are (number, kind of listener, address, since, seen, requests, messages, streams, unnamed, why).  Times
        are in us of `clock_us`; ``number`` is never used again; ``streams`` are names of groups and streams, of the
        first ones; ``unnamed`` are the requests of others, and ``why`` is one of CLOSE_NAMES, None while it is there.
        Locks: takes Peers.mutex of each loop.
        """
        cdef Buf there
        cdef Buf ended
        cdef int64_t forgotten = 0
        cdef int status = ST_OK
        cdef int i
        cdef list rows = []
        cdef list ends = []
        for i in range(self.loop_count):
            buf_init(&there)
            buf_init(&ended)
            try:
                with nogil:
                    status = peers_copy(&self.loops[i].peers, &there, &ended, &forgotten)
                if status != ST_OK:
                    raise MemoryError
                self._tell_peers(i, &there, rows)
                self._tell_peers(i, &ended, ends)
            finally:
                buf_free(&there)
                buf_free(&ended)
        return rows, ends, forgotten

    cdef int _tell_peers(self, int loop, const Buf* found, list out) except -1:
        """Append a row for each connection."""
        cdef const Peer* one
        cdef const PeerStream* named
        cdef size_t i
        cdef int k
        for i in range(found.n // sizeof(Peer)):
            one = &(<const Peer*>found.p)[i]
            streams = []
            for k in range(one.n_streams):
                named = &one.streams[k]
                text = <bytes>one.text[named.at:named.at + named.group_n + named.stream_n]
                streams.append((_readable(text[:named.group_n]), _readable(text[named.group_n:])))
            source = (<bytes>one.source[:one.source_n]).decode()
            out.append((
                (int(loop) << 64) + int(one.session), self._kind(one.listener),
                f"[{source}]:{one.port}" if ":" in source else f"{source}:{one.port}", one.since_us, one.seen_us,
                one.requests, one.messages, tuple(streams), one.unnamed,
                CLOSE_NAMES[one.reason] if one.reason else None,
            ))
        return 0

    def stats(self) -> dict:
        """Return counters of all server loops together, as plain numbers and dictionaries."""
        cdef int64_t sums[10]
        cdef int64_t* one
        cdef int64_t sessions = 0
        cdef int64_t queued = 0
        cdef int64_t frames = 0
        cdef int64_t answers = 0
        cdef int i
        cdef int k
        memset(sums, 0, sizeof(sums))
        for i in range(self.loop_count):
            one = &self.loops[i].counters.accepted
            for k in range(10):
                sums[k] += relaxed_load(one + k)
            sessions += relaxed_load(&self.loops[i].sessions)
            queued += relaxed_load(&self.loops[i].queued_bytes)
            frames += relaxed_load(&self.loops[i].frame_bytes)
            answers += relaxed_load(&self.loops[i].answer_bytes)
        out = {"connections": sessions, "queued_bytes": queued, "frame_bytes": frames, "answer_bytes": answers}
        for k in range(10):
            out[COUNTERS[k]] = sums[k]
        out["refused"] = self._refused_counts()
        out["closed"] = self._closed_counts()
        codes = [relaxed_load(&self.listeners[i].service_code) for i in range(self.shared.listener_count)]
        out["service_code"] = next((code for code in codes if code), 0)
        return out
