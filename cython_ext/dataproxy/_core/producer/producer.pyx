"""Facade of the producer's compiled core: the calls that send, and the private calls of the Python layer above.

``dataproxy.Producer`` derives from ``ProducerCore`` and adds configuration, discovery, threads and close.

Locality: GIL, any thread, unless a docstring says otherwise; released while a call waits.  Locks: sends and seals take
batcher.lock; no lock is held while Python code runs.
"""

cimport cython
from cpython.exc cimport PyErr_Clear
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport SIZE_MAX, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.made cimport BY_CORE
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.accumulate.batcher cimport (
    batcher_close, batcher_group, batcher_limit_frames, batcher_max_frame, batcher_room, batcher_seal_all,
    batcher_stream,
)
from dataproxy._core.producer.accumulate.state cimport (
    OF_BLOCK, OF_DROP_NEWEST, OF_DROP_OLDEST, OF_RAISE, PATIENCE_US, Batcher,
)
from dataproxy._core.producer.results.accounting cimport accounting_wait_mark
from dataproxy._core.producer.results.completions cimport (
    completions_end, completions_poke, completions_trouble, completions_wait,
)
from dataproxy._core.producer.engine cimport Engine, engine_abandon_open, engine_free, engine_open, engine_retire
from dataproxy._core.producer.handle cimport CoreHandle, check_own, microseconds
from dataproxy._core.producer.ingest.fastcall cimport nothing, quick_method
from dataproxy._core.producer.ingest.idsource cimport exact_text
from dataproxy._core.producer.ingest.owners cimport HOLD_FROM, owners_give_back
from dataproxy._core.producer.ingest.stream cimport SendPolicy, Stream, send_quickly
from dataproxy._core.producer.snapshot cimport active_clusters, counts_dict, latency_steps, connection_list, take_reach
from dataproxy._core.producer.accumulate.streamlife cimport streams_leave
from dataproxy._core.producer.accumulate.streams cimport Stream as CStream, streams_text_size
from dataproxy._core.producer.accumulate.newstreams cimport NewStreams, newstreams_leave
from dataproxy._core.base.address cimport address_parse
from dataproxy._core.net.executor cimport executor_run, executor_set_proxies, executor_stop
from dataproxy._core.net.tlscontext cimport TlsContexts
from dataproxy._core.net.tlsholder cimport TlsHolder
from dataproxy._core.conn.framing cimport FrameRules
from dataproxy._core.conn.clusters cimport lists_free
from dataproxy._core.conn.connection cimport (
    CLASSES, MAX_REPLY, ClusterPart, ConnectionConfig, Endpoint, ProxyLists, Shape,
)
from dataproxy._core.plat.atomic cimport atomic_swap
from dataproxy._core.plat.clock cimport now_us
from dataproxy._core.plat.socket cimport AF_INET6
from dataproxy._core.plat.pytype cimport call_again, count_args, dict_value, is_kind, is_text
from dataproxy._core.wire.api cimport ACK_NONE, ACK_SINK, ACK_SOURCE, HB_BINARY, HB_MESSAGE, Admission
from dataproxy._core.wire.registry cimport wire_of_family

from dataproxy.errors import ConfigError, InvalidMessageError, TransportError
from dataproxy.problems import shown

__all__ = ["CompletionsWait", "ExecutorLoop", "ProducerCore"]

cdef enum:
    SLICE_US = 100000
    PAIR_COST = 8           # bytes of tags and lengths around a pair of attributes that is written apart
    TRACE_SPARE = 96        # bytes that a trace adds to a frame, at most
    KEPT_NAMES = 4096       # handles by name before unused ones are dropped

_ACKS = {"source": ACK_SOURCE, "sink": ACK_SINK, "none": ACK_NONE}
_ON_FULL = {"block": OF_BLOCK, "raise": OF_RAISE, "drop_newest": OF_DROP_NEWEST, "drop_oldest": OF_DROP_OLDEST}


cdef int _fill_batcher(Batcher* b, dict o, SendPolicy policy, size_t hold_from) except -1:
    b.batch_bytes = o["batch_bytes"]
    b.batch_messages = 1 if policy.single else o["batch_messages"]
    b.max_others = o["max_open_packs"]
    b.linger_us = microseconds(o["linger"])
    b.delivery_us = microseconds(o["delivery_timeout"])
    b.patience_us = min(PATIENCE_US, (b.delivery_us - b.linger_us) // 8)
    b.on_full = _ON_FULL[o["on_full"]]
    b.limit_bytes = o["buffer_bytes"]
    b.limit_messages = o["buffer_messages"]
    b.key_buckets = o["key_buckets"] if o["ordering"] == "key" else 0
    b.span_ms = o["pack_seconds"] * 1000
    b.lines = policy.lines
    b.pair_cost = PAIR_COST if policy.arranged else 0
    b.hold_from = hold_from
    b.least = policy.least
    b.frame_spare = TRACE_SPARE if o["trace_address"] else o.get("frame_spare", 0)
    b.report_all = o["report_all"]
    b.by_group = o.get("by_group", False)
    b.by_stream = policy.single
    b.max_frame = o["max_frame_bytes"]
    return 0


cdef int _fill_connections(ConnectionConfig* connections, dict o) except -1:
    cdef int code
    memset(connections, 0, sizeof(ConnectionConfig))
    connections.ack = _ACKS[o["ack"]]
    connections.ack_timeout_us = microseconds(o["ack_timeout"])
    connections.connect_timeout_us = microseconds(o["connect_timeout"])
    connections.retry_backoff_us = microseconds(o["retry_backoff"])
    connections.retry_backoff_max_us = microseconds(o["retry_backoff_max"])
    connections.reconnect_backoff_us = microseconds(o["reconnect_backoff"])
    connections.reconnect_backoff_max_us = microseconds(o["reconnect_backoff_max"])
    connections.heartbeat_kind = HB_MESSAGE if o["heartbeat"] == "message" else HB_BINARY
    connections.heartbeat_us = 0 if o["heartbeat"] == "off" else microseconds(o["heartbeat_interval"])
    connections.heartbeat_retries = o["heartbeat_retries"]
    connections.avoid_us = 10 * 1000000
    connections.late_attempts = o["late_attempts"]
    connections.unknown_us = microseconds(o["unknown_group_timeout"])
    connections.retry_share = o["retry_budget"] * 10
    connections.keep_outliers = not o["eject_outliers"]
    connections.max_reply = MAX_REPLY
    connections.unknown_class = o["unknown_class"]
    for code in range(<int>CLASSES):
        connections.classes[code] = connections.unknown_class
    for code, kind in o["classes"].items():
        if 0 <= code < <int>CLASSES:
            connections.classes[code] = kind
    return 0


cdef int _fill_lists(ProxyLists* lists, list clusters, groups) except -1:
    """Fill the arrays of ``lists``, except for what differs between executors.  Raises ConfigError."""
    cdef Endpoint* one
    cdef int i = 0, k
    for k, (number, endpoints, _) in enumerate(clusters):
        lists.parts[k].cluster = number
        lists.parts[k].first = i
        lists.parts[k].n = len(endpoints)
        for label, address, port, family, other, host, node, *layout in endpoints:
            one = &lists.endpoints[i]
            one.stores, one.partitions = layout or (0, 0)
            i += 1
            name = label.encode("utf-8", "replace")
            name = name[max(0, len(name) - 63):]        # the end holds the port and the address
            memcpy(one.label, <const char*>name, len(name))
            name = host.encode("utf-8", "replace")
            if len(name) >= sizeof(one.name):
                raise ConfigError(f"the host name {shown(host)} has more than {sizeof(one.name) - 1} bytes")
            memcpy(one.name, <const char*>name, len(name))
            one.cluster = number
            one.node = node
            one.family = family
            if address_parse(address.encode(), port, &one.address) != ST_OK:
                raise ConfigError(f"{address!r} is not a numeric address")
            if other:
                if address_parse(other.encode(), port, &one.other) != ST_OK:
                    raise ConfigError(f"{other!r} is not a numeric address")
                one.other_family = AF_INET6
    for k in range(lists.n_groups):
        lists.groups[k] = groups[k]
    return 0


cdef int _fill_admission(ProxyLists* lists, fixed, admission) except -1:
    """Fill what servers with partitions ask for: which partition, and what is shown to them."""
    cdef int k
    memset(&lists.admission, 0, sizeof(Admission))
    if fixed is not None:
        for k in range(lists.n_groups):
            lists.fixed[k] = fixed[k]
    if admission is not None:
        token, proof = admission
        lists.admission.token = token
        lists.admission.proof_n = min(len(proof), sizeof(lists.admission.proof))
        memcpy(lists.admission.proof, <const char*><bytes>proof, lists.admission.proof_n)
    return 0


@cython.final
cdef class ExecutorLoop:
    """Run one executor; the body of its thread, which keeps no producer alive.

    The engine outlives it: a producer is not freed before its executors have ended.
    """

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("made by ProducerCore._executor_loop")

    def __call__(self):
        """Work until ``_stop_executors``.  Thread: the executor's own; the GIL is released until the end."""
        executor = self.executor
        with nogil:
            executor_run(executor)


@cython.final
cdef class CompletionsWait:
    """Wait for completions of an engine; the dispatcher makes sure that the engine still exists."""

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("made by ProducerCore._completions_wait")

    def wait(self, double seconds):
        """Wait up to ``seconds`` for completions, or for the end of the queue; False when time is over.

        Thread: the dispatcher; releases the GIL.
        """
        cdef int64_t deadline = now_us() + microseconds(seconds)
        cdef bint found
        completions = self.completions
        with nogil:
            found = completions_wait(completions, deadline)
        return bool(found)


cdef PyObject* _call_method(PyObject* function, PyObject** args, size_t nargsf, PyObject* names) except NULL:
    """Call ``Producer.send_nowait``; its first argument is a producer.  Raises TypeError for anything else."""
    cdef Py_ssize_t n = count_args(nargsf)
    cdef PyObject* found
    if n and not is_kind(args[0], <PyTypeObject*>ProducerCore):
        raise TypeError(f"Producer.send_nowait needs a Producer first, not {<object>args[0]!r}")
    if names == NULL and n == 3 and is_text(args[1]):
        found = dict_value(<PyObject*>(<ProducerCore>args[0]).own_streams, args[1])
        if found == NULL:
            PyErr_Clear()           # the method itself will raise the error
        elif send_quickly(<Stream>found, args[2]):
            return nothing()
    return call_again(<PyObject*>_written, args, nargsf, names)


cdef object _written = None         # ProducerCore.send_nowait as it was written


def _quick(written):
    """Give ``send_nowait`` its quick call: a decorator."""
    global _written
    _written = written
    return quick_method(written, _call_method, NULL)


cdef class ProducerCore(CoreHandle):
    """Own one engine.  ``options`` is a mapping of checked option values (seconds, bytes)."""

    def __cinit__(self, *args, **options):
        self.own_streams = {}
        self.own_most = KEPT_NAMES

    def __init__(self, dict options, SendPolicy policy):
        self.options = options
        self.policy = policy
        self.open_engine()
        self.closed = False

    cdef int open_engine(self) except -1:
        """Fill the empty engine; after an error it is empty again.  Raises MemoryError and TransportError."""
        cdef ConnectionConfig connections
        cdef FrameRules rules
        cdef int status
        cdef dict options = self.options
        cdef TlsHolder* tls = NULL
        g = self.engine
        _fill_connections(&connections, options)
        memset(&rules, 0, sizeof(FrameRules))
        rules.family = self.policy.family
        rules.ack = connections.ack
        rules.compress = options["compression"] == "snappy"
        rules.compress_min = options["compression_min_bytes"]
        rules.max_frame = options["max_frame_bytes"]
        origin = options["trace_address"].encode()
        rules.origin_n = min(len(origin), sizeof(rules.origin))
        memcpy(rules.origin, <const char*>origin, rules.origin_n)
        sender = options.get("sender", "").encode()
        rules.sender_n = min(len(sender), sizeof(rules.sender))
        memcpy(rules.sender, <const char*>sender, rules.sender_n)
        rules.proof_n = options.get("proof_bytes", 0)
        rules.answer_ms = connections.ack_timeout_us // 1000
        self.hold_from = HOLD_FROM
        if rules.compress or self.policy.lines or self.policy.arranged or self.policy.single:
            self.hold_from = SIZE_MAX
        _fill_batcher(&g.batcher, options, self.policy, self.hold_from)
        self.delivery_us = microseconds(options["delivery_timeout"])
        self.max_block_us = microseconds(options["max_block"])
        self.limit_bytes = options["buffer_bytes"]
        self.key_buckets = options["key_buckets"] if options["ordering"] == "key" else 0
        self.blocks = options["on_full"] == "block"
        self.raises = options["on_full"] == "raise"
        self.opened_us = now_us()
        if options["tls_contexts"] is not None:
            tls = (<TlsContexts>options["tls_contexts"]).holder
        status = engine_open(
            g, wire_of_family(self.policy.family), options["executors"], &connections, &rules,
            options["undelivered_bytes"],
            options["nagle"], microseconds(options["busy_poll"]), tls)
        self.made = status == ST_OK
        if not self.made:
            engine_free(g)
            memset(g, 0, sizeof(Engine))
        if status == ST_NO_MEMORY:
            raise MemoryError("no memory for a producer")
        if status != ST_OK:
            raise TransportError("the kernel gave no epoll set or eventfd", hint="raise the limit of open files")
        return 0

    def __dealloc__(self):
        if self.engine != NULL:
            # Inherited through fork, or never stopped: the threads may still use it, so it is never freed.
            if self.made and self.finished and self.generation == this_generation:
                engine_free(self.engine)
                self.made = False
            if not self.made:
                free(self.engine)
            self.engine = NULL

    # --- private calls for the Python layer

    def _bind_stream(self, str group_id, str stream_id, bytes attrs, frame_keys, serializer=None):
        """Return the Stream of checked names and attribute text; ``frame_keys`` are the names of the attributes.

        Raises InvalidMessageError when the text leaves no room for a body, and MemoryError.  Any thread.
        """
        cdef Stream out = Stream.__new__(Stream, BY_CORE)
        cdef bytes group = group_id.encode(), stream = stream_id.encode()
        cdef Slice names[3]
        cdef size_t text_n
        names[0] = slice_of(<const char*>group, len(group))
        names[1] = slice_of(<const char*>stream, len(stream))
        names[2] = slice_of(<const char*>attrs, len(attrs))
        text_n = streams_text_size(names[0], names[1], names[2])
        self.check_usable()
        # In the table such a stream would slow down all others.
        if batcher_room(&self.engine.batcher, text_n, attrs.count(b"=") + 2) == 0:
            raise InvalidMessageError(
                f"names and attributes of {text_n} bytes leave no room for a body in a frame of "
                f"{batcher_max_frame(&self.engine.batcher)} bytes",
                hint="put large values into the body, or raise max_frame_bytes if the proxies take larger frames",
                details={"size": text_n, "limit": batcher_max_frame(&self.engine.batcher)}, code="BAD_ATTRIBUTE")
        out.core = self
        out.generation = self.generation
        out.stream = batcher_stream(&self.engine.batcher, names[0], names[1], names[2])
        if out.stream == NULL:
            raise MemoryError("no memory for a stream")
        out.policy = self.policy
        out.frame_keys = frame_keys
        out.group_id = group_id
        out.stream_id = stream_id
        out.attrs = attrs
        out.serializer = serializer
        out.particular = self.policy.lines or serializer is not None
        return out

    def _open_again(self, TlsContexts tls, str sender=""):
        """Make an empty engine; the engine that a forked child inherited stays as it is and is never touched again.

        ``tls``: settings of this process for connections with TLS, None for plain ones.  ``sender``: its name, where
        servers want one.

        Call ``_adopt`` afterwards; until then all other calls see an inherited producer.  Raises MemoryError and
        TransportError.  Thread: one at a time.
        """
        cdef Engine* inherited = self.engine
        self.engine = <Engine*>calloc(1, sizeof(Engine))
        if self.engine == NULL:
            self.engine = inherited
            raise MemoryError("no memory for a producer")
        self.options = {**self.options, "tls_contexts": tls, "sender": sender}
        self.made = self.finished = False
        self.dispatched = False
        self.watchers = {}
        self.late = []
        self._callers = set()
        self.open_engine()

    def _adopt(self, bint running):
        """Let all calls use the engine of ``_open_again``; unless ``running``, ``_open_again`` may be repeated."""
        if running:
            self.generation = this_generation
        else:
            self.closed = False

    def _give_up(self):
        """Close a producer that was only inherited: it accepts nothing more, and it has no threads to stop."""
        self.closed = True

    def _add_group(self, str group_id, int number):
        """Give a group its number, before the first stream of the group.  Raises MemoryError.  Any thread."""
        cdef bytes group = group_id.encode()
        if self.made and batcher_group(
                &self.engine.batcher, slice_of(<const char*>group, len(group)), number) != ST_OK:
            raise MemoryError("no memory for a group")

    def _set_clusters(self, list clusters, groups, fixed=None, admission=None):
        """Set the proxies of each cluster, and which cluster takes the messages of each group.

        ``clusters``: (number, endpoints, the Share of each executor).  An endpoint is (label, address, port, family,
        other address, host, number of its id); the other address is an IPv6 one, or "", and the host is what a
        certificate has to be for.  Where servers have partitions, an endpoint ends with its stores, and the partitions
        in each.
        ``groups``: the number of a cluster by the number of a group, -1 for none; None: all groups go to the one
        cluster.  ``fixed``: the partition by the number of a group, -1 for any.  ``admission``: (token, proof) that
        requests show.

        Raises ConfigError for an address that is not numeric, and MemoryError.  Any thread.
        """
        cdef ProxyLists lists
        cdef Shape* shape
        cdef int i, k
        if self.finished:
            return                  # the discovery answered after the close: no executor needs the list
        lists.n_endpoints = sum([len(endpoints) for _, endpoints, _ in clusters])
        lists.n_parts = len(clusters)
        lists.n_groups = 0 if groups is None else len(groups)
        lists.endpoints = <Endpoint*>calloc(<size_t>lists.n_endpoints + 1, sizeof(Endpoint))
        lists.parts = <ClusterPart*>calloc(<size_t>lists.n_parts + 1, sizeof(ClusterPart))
        lists.groups = NULL if groups is None else <int*>calloc(<size_t>lists.n_groups + 1, sizeof(int))
        lists.fixed = NULL if fixed is None else <int*>calloc(<size_t>lists.n_groups + 1, sizeof(int))
        try:
            if lists.endpoints == NULL or lists.parts == NULL or (lists.groups == NULL and groups is not None) or (
                    lists.fixed == NULL and fixed is not None):
                raise MemoryError("no memory for the proxy list")
            _fill_admission(&lists, fixed, admission)
            _fill_lists(&lists, clusters, groups)
            for i in range(self.engine.n_executors):
                for k in range(lists.n_parts):
                    shape = &lists.parts[k].shape
                    (shape.connections, shape.proxies, shape.standbys, shape.offset, shape.standby_offset) = (
                        clusters[k][2][i])
                if executor_set_proxies(self.engine.executors[i], &lists) != ST_OK:
                    raise MemoryError("no memory for the proxy list")
        finally:
            lists_free(&lists)

    def _active_clusters(self):
        """Return the numbers of the clusters to which a connection is established.  Any thread."""
        return active_clusters(self.engine) if self.generation == this_generation else set()

    def _set_frame_limit(self, size_t size):
        """Accept from now on messages that fit a frame of ``size`` bytes; earlier ones are sent as they are.

        Thread: any.
        """
        cdef Engine* g = self.engine
        if not self.made:
            return
        with nogil:
            batcher_limit_frames(&g.batcher, size)

    def _executor_loop(self, int index):
        """Return the body of the thread of executor ``index``."""
        cdef ExecutorLoop out
        if not 0 <= index < self.engine.n_executors:
            raise IndexError(f"there is no executor {index}")
        out = ExecutorLoop.__new__(ExecutorLoop, BY_CORE)
        out.executor = self.engine.executors[index]
        return out

    def _completions_wait(self):
        """Return the object with which the dispatcher waits while it has no reference to the producer."""
        cdef CompletionsWait out = CompletionsWait.__new__(CompletionsWait, BY_CORE)
        out.completions = &self.engine.completions
        return out

    def _poke(self):
        """End the dispatcher's wait.  Thread: any, also that of a finalizer."""
        if self.made:
            completions_poke(&self.engine.completions)

    def _keeps_names(self, bint forget):
        """Tell whether there are handles by name.

        With ``forget`` the handles that were not used since the last such call are dropped first.  Any thread.
        """
        if forget and self.generation == this_generation:
            self.forget_unused()
        return bool(self.own_streams)

    def _wait_settled(self, double seconds):
        """Seal everything and wait until what was accepted so far is settled; False when time is over."""
        cdef int64_t deadline = now_us() + microseconds(seconds)
        cdef int64_t mark
        cdef bint settled = False
        g = self.engine
        if self.generation != this_generation or not self.made:
            return True         # this process has accepted nothing
        with nogil:
            mark = batcher_seal_all(&g.batcher)
        while not settled:
            with nogil:
                settled = accounting_wait_mark(&g.accounting, mark, min(deadline, now_us() + SLICE_US))
            self.look_for_signals()
            if now_us() >= deadline:
                break
        owners_give_back(&g.spares)
        return bool(settled)

    def _refuse_inside_callback(self, str what):
        """Raise LocalProtocolError when the calling thread runs a callback of this producer."""
        self.check_may_wait(what)

    def _check_open(self):
        """Raise ClosedError when nothing can be sent any more; begin again in a forked child.  Thread: any."""
        self.check_usable()

    def _begin_close(self):
        """Accept nothing from now on; messages that were accepted are still sent."""
        self.closed = True
        batcher_close(&self.engine.batcher)

    def _abandon_open(self):
        """Fail messages that were never sealed with code CLOSED; ``_begin_close`` came before."""
        g = self.engine
        with nogil:
            engine_abandon_open(g)

    def _stop_executors(self):
        """Ask the executors to end; what is pending fails with code CLOSED.  The caller joins their threads."""
        for i in range(self.engine.n_executors):
            executor_stop(self.engine.executors[i])

    def _end_completions(self, bint ended=True):
        """Tell the dispatcher that nothing more will come; ``ended``: no executor's thread runs any more."""
        self.finished = ended
        self.own_streams.clear()        # they refer to the producer, which can go with its last user now
        if ended:
            engine_retire(self.engine)
        completions_end(&self.engine.completions)

    def _counts(self):
        """Return a dict of counters that balance, taken at one moment.  Thread: any."""
        cdef Engine blank
        if self.generation != this_generation:
            memset(&blank, 0, sizeof(Engine))
            return counts_dict(&blank)
        return counts_dict(self.engine)

    def _note_trouble(self, int kind, str text):
        """Note a failure that belongs to no connection, or (CE_CONNECTED) that it is over.  Any thread."""
        cdef bytes said = text.encode("utf-8", "replace")
        if self.made and self.generation == this_generation:
            completions_trouble(
                &self.engine.completions, kind, b"", 0, slice_of(<const char*>said, len(said)), now_us())

    def _latency_steps(self):
        """Return the histogram of latencies: upper bound in us -> messages; its counts only grow.  Any thread."""
        return latency_steps(self.engine) if self.generation == this_generation else {}

    def _take_reach(self):
        """Return how many seconds servers remember message ids: the shortest time they told since the last call.

        None if no server has told it.  Thread: one, while nothing is in flight.
        """
        cdef int64_t seconds = take_reach(self.engine) if self.generation == this_generation else -1
        return None if seconds < 0 else seconds

    def _connections(self):
        """Return a list with a dict for each connection.  Thread: any."""
        return connection_list(self.engine) if self.generation == this_generation else []

    def _age(self):
        """Return the seconds since the producer was opened; in a forked child, since it was first used there."""
        if self.generation != this_generation:
            return 0.0
        return (now_us() - self.opened_us) / 1e6

    # --- the sending calls

    cdef Stream find(self, object stream_id, object group_id):
        """Return the Stream for these names.  It is made and checked on first use, and kept.

        Locality: GIL.  Locks: takes the batcher's where a stream is new.
        """
        names = None
        if isinstance(stream_id, str):
            if group_id is None:
                names = exact_text(stream_id)
            elif isinstance(group_id, str):
                names = (exact_text(group_id), exact_text(stream_id))
        if names is not None:
            found = self.own_streams.get(names)
            if found is not None:
                return <Stream>found
        found = self.stream(stream_id, group_id=group_id)
        if type(found) is not Stream or (<Stream>found).core is not self:
            raise TypeError(
                f"{type(self).__name__}.stream returned {shown(found)}; a derived class returns a Stream of its own "
                "producer, which super().stream(...) makes")
        if names is not None:
            if len(self.own_streams) >= self.own_most:
                self.forget_unused()
            self.own_streams[names] = found
            if len(self.own_streams) == 1:
                self._poke()            # from now on the dispatcher checks whether they are used
        return <Stream>found

    cdef object name_rows(self, object stream_id, object group_id):
        """Return a handle of the stream that rows with these names go to: it exists from now on.

        A derived class may give other names or attributes to what is sent by name.  Rows are looked up by the names in
        their columns, so their stream has these names and no attributes.  Locality: GIL, within `streams_walk`, which
        keeps the stream after the handle has gone.  Locks: as `find`.
        """
        cdef Stream found = self.find(stream_id, group_id)
        if found.stream.attrs.n == 0 and found.stream_id == stream_id and found.group_id == group_id:
            return found
        return self._plain_stream(stream_id, group_id)

    cdef int keep_streams(self, NewStreams* made) except -1:
        """Keep a handle by name for each stream that a record batch has made, as `find` does; ``made`` is then empty.

        None is kept if a derived class gives another stream to what is sent by name.

        Locality: GIL.  Locks: takes the batcher's when handles go.
        """
        cdef Engine* g = self.engine
        cdef Stream first = None
        cdef Stream handle
        cdef CStream* s
        if made.n == 0:
            return 0
        try:
            while made.n > 0:
                s = made.items[made.n - 1]
                names = (
                    (<const char*>s.group.p)[:s.group.n].decode(), (<const char*>s.stream.p)[:s.stream.n].decode())
                if first is None:
                    first = self.find(names[1], names[0])   # the others are like it: Python looks at one alone
                    check_own(first, g.generation)          # a signal handler may have forked
                    if first.stream != s:
                        break
                elif names not in self.own_streams:
                    if len(self.own_streams) >= self.own_most:
                        self.forget_unused()
                    handle = first.like(s, names[0], names[1])
                    made.n -= 1         # the handle has the reference now
                    self.own_streams[names] = handle
                    continue
                made.n -= 1
                streams_leave(&g.batcher, s)
        finally:
            if g.generation == this_generation:
                newstreams_leave(&g.batcher, made)
        return 0

    cdef int forget_unused(self) except -1:
        """Drop the handles by name whose streams were not used since the last call; allow as many new ones.

        Locality: GIL.
        Locks: takes the batcher's for each that goes.
        """
        for names, handle in list(self.own_streams.items()):
            if not atomic_swap(&(<Stream>handle).stream.used, 0):
                self.own_streams.pop(names, None)
        self.own_most = max(<Py_ssize_t>KEPT_NAMES, 2 * len(self.own_streams))
        return 0

    @_quick
    def send_nowait(self, stream_id, body, *, group_id=None, attrs=None, dt=None, message_id=None, key=None):
        """Accept one message and return nothing; its result is counted and reported like any other.

        ``stream_id``: the InLong stream.  ``body``: bytes-like, not empty.  ``group_id``: another group than
        the producer's.  ``attrs``: attributes of this message alone, a mapping of str to str; for an instance of a
        subclass of str (an ``Enum``), here and in names, the text that it contains is used.  ``dt``: the message's
        data time, milliseconds since 1970 or an aware datetime.  ``message_id``: an id that the caller chooses, see
        ``Stream.send_nowait``; without it the producer makes an id.  ``key``: bytes or text; with ``ordering="key"``
        messages of one key keep their order.  Waits up to ``max_block`` for room.

        Raises InvalidMessageError, BufferFullError, ClosedError, ForkedError; then the message was not accepted.
        Any thread.
        """
        self.find(stream_id, group_id).put(body, attrs, dt, message_id, key, NULL, NULL)

    def send(self, stream_id, body, *, group_id=None, attrs=None, dt=None, message_id=None, key=None, on_delivery=None):
        """Accept one message and return its Delivery; arguments and errors as for ``send_nowait``.

        ``on_delivery`` is called with the message's DeliveryResult, after the producer's own ``on_delivery``
        and on the same thread.
        """
        return self.find(stream_id, group_id).sent(body, attrs, dt, message_id, key, on_delivery)

    def send_batch(
        self, stream_id, bodies, *, group_id=None, attrs=None, dt=None, message_ids=None, key=None, on_delivery=None,
    ):
        """Accept many messages and return their BatchDelivery; see ``Stream.send_batch``."""
        return self.find(stream_id, group_id).send_batch(
            bodies, attrs=attrs, dt=dt, message_ids=message_ids, key=key, on_delivery=on_delivery)

    def send_arrow(
        self, stream_id, data, *, group_id=None, column=None, attrs=None, dt=None, id_column=None, key=None,
        on_delivery=None,
    ):
        """Accept a column of Arrow data and return its BatchDelivery; see ``Stream.send_arrow``."""
        return self.find(stream_id, group_id).send_arrow(
            data, column=column, attrs=attrs, dt=dt, id_column=id_column, key=key, on_delivery=on_delivery)
