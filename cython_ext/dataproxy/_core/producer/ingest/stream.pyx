"""The sending calls.  Nothing here keeps a Python object: bodies are copied into the open pack at once.

A call of ``send_nowait`` with a body of ``bytes`` and nothing else goes straight to the batcher.  Every other call is
passed to the method as it was written, and so is each call that meets a special case (a fork, a full buffer, a closed
producer).

``stream.send_nowait`` gives an object of its own type.  A bound method would be an object that refers to the
stream's handle, and each call would write the reference counts of both.  With more streams than the cache can hold,
these are two waits for memory.  Here everything that a call needs lies in the cache line that the interpreter has
read already.

Locality: GIL, any thread; released while rows are copied and while a call waits.  Locks: none, unless a docstring
names batcher.lock; a quick send takes it.
"""

cimport cython
from cpython.buffer cimport PyBuffer_Release, PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.object cimport Py_EQ, Py_NE, PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.made cimport BY_CORE
from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_FULL, ST_INVALID, ST_LIMIT, ST_OK
from dataproxy._core.producer.ingest.columnar.arrow cimport ArrowChunks, column_index, column_rows, open_arrow
from dataproxy._core.producer.accumulate.batcher cimport (
    batcher_append, batcher_append_plain, batcher_fits, batcher_stream,
)
from dataproxy._core.producer.accumulate.state cimport EX_NOTHING, EX_RESULTS, NO_KEY, NO_TIME, Extras
from dataproxy._core.producer.ingest.buffers cimport buffer_bytes, buffer_copy, buffer_is_plain, buffer_open
from dataproxy._core.producer.results.delivery cimport BatchDelivery, Delivery, keep_ids, new_delivery
from dataproxy._core.producer.engine cimport Engine
from dataproxy._core.base.text cimport LINE_ANY, LINE_BARE, LINE_TEXT, is_line
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.ingest.fastcall cimport QUICK, nothing, quick_method
from dataproxy._core.producer.ingest.ids cimport OWN_ID_KEY, item_text_size
from dataproxy._core.producer.ingest.idsource cimport bad_id, exact_text, id_rows, own_id_of
from dataproxy._core.producer.accumulate.keys cimport key_bucket
from dataproxy._core.producer.accumulate.rowpacks cimport rowpacks_append
from dataproxy._core.producer.ingest.owners cimport body_owner, owners_end, owners_give_back, owners_lease
from dataproxy._core.producer.ingest.rows cimport (
    ROW_BAD_ID, RowOwners, Rows, RowsCheck, body_limit, rows_check, rows_get,
)
from dataproxy._core.producer.ingest.sources cimport BodyList, body_rows
from dataproxy._core.producer.accumulate.streamlife cimport streams_leave, streams_tidy
from dataproxy._core.producer.accumulate.streams cimport Stream as CStream
from dataproxy._core.producer.accumulate.unknown cimport unknown_full
from dataproxy._core.producer.results.accounting cimport accounting_turns
from dataproxy._core.producer.results.callbacks cimport check_callback, watch_message, watch_segments
from dataproxy._core.producer.results.completions cimport completions_bytes, completions_crowd
from dataproxy._core.plat.arrow cimport ArrowArray
from dataproxy._core.plat.atomic cimport relaxed_load
from dataproxy._core.plat.clock cimport now_us
from dataproxy._core.plat.calltypes cimport Callable
from dataproxy._core.plat.pytype cimport (
    bind_method, bytes_size, bytes_text, call_again, count_args, is_bytes, type_of,
)
from dataproxy._core.wire.api cimport ITEM_LINES, FamilyForm
from dataproxy._core.wire.registry cimport wire_of_family

from dataproxy.errors import BufferFullError, ConfigError, DataProxyError, InvalidMessageError
from dataproxy.problems import (
    body_type, buffer_problem, row_problem, serializer_batch_problem, serializer_problem, size_problem,
)

__all__ = ["BoundSend", "SendPolicy", "Stream"]


@cython.final
cdef class SendPolicy:
    """Hold the settings that the sending calls use."""

    def __cinit__(self, *, int family, bint skip_null, bint skip_empty, item_text):
        cdef FamilyForm form
        self.family = family
        if wire_of_family(family).family(family, &form) != ST_OK:
            raise ConfigError(f"there is no family {family} of frames for messages")
        self.lines = LINE_ANY
        if form.items == ITEM_LINES:
            self.lines = LINE_TEXT if form.text else LINE_BARE
        self.ids = form.ids
        self.least = form.least
        self.arranged = form.arranged
        self.single = form.single
        self.skip_null = skip_null
        self.skip_empty = skip_empty
        self.item_text = item_text

    cdef int check_ids(self) except -1:
        """Raise InvalidMessageError when messages of this type cannot carry ids that the caller chooses."""
        if self.single:
            raise InvalidMessageError(
                "TubeMQ has no place for ids of messages", hint="put the id into the attributes or the body",
                code="BAD_ID")
        if not self.ids:
            raise InvalidMessageError(
                "message ids need frames of type 7 whose items are not joined, and this producer has others",
                hint="use protocol='tcp' and message_type=7 without joined_lines, or put the id into the body",
                code="BAD_ID")
        return 0


@cython.final
cdef class Serialized:
    """Hold the bytes that a serializer made of an object, while they wait for room."""

    def __cinit__(self, bytes body not None):
        self.body = body


cdef object serialized_once(Stream stream, object body):
    """Return what ``stream`` sends for an object: its serializer makes it now.  Raises InvalidMessageError."""
    if stream.serializer is None or type(body) is Serialized:
        return body
    return Serialized(bytes(stream.serialized(body, None)))


cdef int raise_full(CoreHandle core, int64_t accepted) except -1:
    """Raise BufferFullError; ``accepted`` messages of the call are on their way.  Locality: GIL."""
    limit = core.limit_bytes
    results = completions_bytes(&core.engine.completions)
    waited = core.max_block_us / 1e6 if core.blocks else 0.0
    unknown = unknown_full(&core.engine.batcher)
    if core.suspended():
        raise BufferFullError(
            f"the buffer of {limit} bytes is full, and this call never waits",
            hint="await producer.send(...), or await producer.room() first",
            details={"limit_bytes": limit, "accepted": accepted, **({"unknown_group": True} if unknown else {})})
    if core.blocks and completions_crowd(&core.engine.completions, results):
        raise BufferFullError(
            f"{results} bytes of results wait for callbacks, and too few were told within max_block={waited:g} s"
            + (f"; {accepted} messages of this call were accepted" if accepted else ""),
            hint="let callbacks hand on what takes long, or use on_full='raise', with which the oldest are untold",
            details={"limit_bytes": limit, "accepted": accepted, "results_bytes": results})
    if unknown:
        raise BufferFullError(
            f"messages for a group or stream that the proxies do not know take a quarter of the buffer of {limit} bytes"
            + (f", and none got a result within max_block={waited:g} s" if core.blocks else " (on_full='raise')")
            + (f"; {accepted} messages of this call were accepted" if accepted else ""),
            hint="approve the group in the Manager, or correct its name; the log names it",
            details={"limit_bytes": limit, "accepted": accepted, "unknown_group": True})
    raise BufferFullError(
        f"the buffer of {limit} bytes is full"
        + (f" and no room came within max_block={waited:g} s" if core.blocks else " (on_full='raise')")
        + (f"; {accepted} messages of this call were accepted" if accepted else ""),
        hint="send slower, raise buffer_bytes, or check that the proxies answer (stats())",
        details={"limit_bytes": limit, "accepted": accepted})


cdef object partly(object error, int64_t accepted):
    """Return ``error`` of a call, with the number of its messages that were accepted, unless it says it already."""
    if "accepted" not in error.details:
        error._details["accepted"] = accepted
        if accepted:
            error.message = f"{error.message}; {accepted} messages of this call were accepted"
            error.args = (error.message,)
    return error


cdef object outgrown(
    const Rows* rows, int64_t i, int64_t before, const CStream* stream, size_t attrs_n, int64_t accepted,
):
    """Return the error for a row that is too large for a frame since the proxies' limit was lowered."""
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    cdef size_t limit = body_limit(<size_t>relaxed_load(<int64_t*>&stream.max_body), attrs_n)
    rows_get(rows, i, &p, &n)
    return row_problem(before + i, "large", n, limit, accepted)


cdef int append_blocking(
    CoreHandle core, CStream* stream, const Rows* rows, int64_t* at, int64_t end, const Extras* x,
    BatchDelivery out, int64_t before,
) except -1:
    """Accept checked rows and wait for room as configured; ``before`` rows were handled earlier in this call.

    Raises BufferFullError, ClosedError, ForkedError, InvalidMessageError, MemoryError.
    Locality: GIL, released while rows are copied and while waiting.  Locks: takes batcher.lock.
    """
    cdef int status
    cdef int64_t seen, deadline = 0, limit
    cdef Extras extras = x[0]
    cdef bint may_pause = core.blocks and not core.suspended()
    while True:
        seen = accounting_turns(&core.engine.accounting)
        with nogil:
            status = rowpacks_append(&core.engine.batcher, stream, rows, at, end, &extras, &out.segments, may_pause)
        if status == ST_OK:
            return 0
        if status == ST_INVALID:
            limit = relaxed_load(<int64_t*>&stream.max_body)
            raise row_problem(before + at[0], "line", 0, limit, out.segments.messages)
        if status == ST_LIMIT:
            raise outgrown(rows, at[0], before, stream, x.attrs.n, out.segments.messages)
        if status != ST_FULL:
            core.check_usable()
            raise MemoryError(f"no memory for the messages from number {before + at[0]} on")
        if core.blocks and extras.exempt == EX_NOTHING and core.calls_back():
            extras.exempt = EX_RESULTS
            continue
        if deadline == 0:
            deadline = now_us() + core.max_block_us
        if not core.blocks or not core.wait_room(seen, deadline):
            raise_full(core, out.segments.messages)


cdef inline bint _append(Engine* g, CStream* s, PyObject* body) noexcept:
    """Accept a body that fits; False when nothing was done."""
    return batcher_append_plain(
        &g.batcher, s, <const uint8_t*>bytes_text(body), <size_t>bytes_size(body)) == ST_OK


cdef bint send_quickly(Stream stream, PyObject* body) noexcept:
    """Accept a body by a stream's handle; False when nothing was done."""
    if stream.generation != this_generation or stream.particular or not is_bytes(body):
        return False
    if <size_t>bytes_size(body) - 1 >= QUICK:           # empty ones too
        return False
    return _append(stream.core.engine, stream.stream, body)


cdef PyObject* _call_method(PyObject* function, PyObject** args, size_t nargsf, PyObject* names) except NULL:
    """Call ``Stream.send_nowait``; its first argument is a stream.  Raises TypeError for anything else."""
    cdef Py_ssize_t n = count_args(nargsf)
    if n and type_of(args[0]) != <PyTypeObject*>Stream:
        raise TypeError(f"Stream.send_nowait needs a Stream first, not {<object>args[0]!r}")
    if names == NULL and n == 2 and send_quickly(<Stream>args[0], args[1]):
        return nothing()
    return call_again(<PyObject*>_written, args, nargsf, names)


cdef PyObject* _call_bound(PyObject* function, PyObject** args, size_t nargsf, PyObject* names) except NULL:
    """Call a BoundSend."""
    cdef BoundSend me = <BoundSend>function
    if names == NULL and count_args(nargsf) == 1 and me.engine != NULL and me.engine.generation == this_generation and (
            is_bytes(args[0]) and <size_t>bytes_size(args[0]) - 1 < QUICK and _append(me.engine, me.stream, args[0])):
        return nothing()
    return _call_slow(function, args, nargsf, names)


cdef PyObject* _call_slow(PyObject* function, PyObject** args, size_t nargsf, PyObject* names) except NULL:
    """Call a BoundSend as the method of its stream's handle."""
    cdef BoundSend me = <BoundSend>function
    cdef PyObject* out
    method = bind_method(_written, me.owner)
    out = call_again(<PyObject*>method, args, nargsf, names)
    _follow(me)
    return out


cdef void _follow(BoundSend me) noexcept:
    """Copy the addresses of the handle's engine and stream; after a fork they are those of the child's engine."""
    cdef Stream owner = me.owner
    if owner.generation != this_generation or me.engine == owner.core.engine:
        return
    me.engine = owner.core.engine
    me.stream = owner.stream
    me.call = _call_slow if owner.particular else _call_bound


cdef PyObject* _bind(PyObject* method, PyObject* instance) except NULL:
    """Return the BoundSend of a stream.  Raises TypeError for anything else."""
    cdef BoundSend out = BoundSend.__new__(BoundSend, BY_CORE)
    out.owner = <Stream?><object>instance
    out.call = _call_slow
    _follow(out)
    Py_INCREF(out)
    return <PyObject*>out


cdef object _written = None         # Stream.send_nowait as it was written


def _quick(written):
    """Give ``send_nowait`` its quick call: a decorator."""
    global _written
    _written = written
    return quick_method(written, _call_method, _bind)


@cython.final
cdef class BoundSend(Callable):
    """Method ``send_nowait`` of one Stream; what ``stream.send_nowait`` gives."""

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("made by stream.send_nowait")

    def __get__(self, instance, kind):
        return self                 # bound already

    @property
    def __self__(self):
        """Return the Stream."""
        return self.owner

    @property
    def __func__(self):
        """Return the method as it is found in the class."""
        return Stream.send_nowait

    @property
    def __doc__(self):
        """Return the method's documentation."""
        return _written.__doc__

    @property
    def __signature__(self):
        """Return the method's parameters without the stream."""
        from inspect import signature
        whole = signature(_written)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    def __getattr__(self, name):
        return getattr(_written, name)

    def __richcmp__(self, other, int op):       # Cython cannot derive __eq__ from a type of C
        if not isinstance(other, BoundSend) or op not in (Py_EQ, Py_NE):
            return NotImplemented
        return ((<BoundSend>other).owner is self.owner) == (op == Py_EQ)

    def __hash__(self):
        return hash((BoundSend, id(self.owner)))

    def __reduce__(self):
        return getattr, (self.owner, "send_nowait")     # pickling the stream then raises the error

    def __repr__(self):
        return f"<bound method Stream.send_nowait of {self.owner!r}>"


@cython.final
@cython.no_gc_clear         # the end of a handle needs its producer
cdef class Stream:
    """Sending calls bound to one group, stream and set of attributes; the fastest path.

    Made by ``Producer.stream``.  Any thread may use it.  The producer frees the memory of the stream after the last
    handle is gone and all its messages have results.
    """

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("Stream objects are made by Producer.stream")

    def __dealloc__(self):
        if self.stream != NULL and self.generation == this_generation:      # not a stream of a parent process
            streams_leave(&self.core.engine.batcher, self.stream)
            streams_tidy(&self.core.engine.batcher)

    cdef Stream like(self, CStream* stream, str group_id, str stream_id):
        """Return a handle of another stream of this producer, with all else as here; it gets the caller's reference.

        Locality: GIL.
        """
        cdef Stream out = Stream.__new__(Stream, BY_CORE)
        out.core = self.core
        out.generation = self.generation
        out.stream = stream
        out.policy = self.policy
        out.particular = self.particular
        out.frame_keys = self.frame_keys
        out.group_id = group_id
        out.stream_id = stream_id
        out.attrs = self.attrs
        out.serializer = self.serializer
        return out

    cdef int bind(self) except -1:
        """Find this handle's stream in the engine of this process, which is a forked child.

        Locks: takes batcher.lock.  Raises ClosedError, and the errors of starting the producer again.
        """
        cdef CoreHandle core = self.core
        cdef bytes group = self.group_id.encode(), name = self.stream_id.encode()
        core.check_usable()
        self.stream = batcher_stream(
            &core.engine.batcher, slice_of(<const char*>group, len(group)), slice_of(<const char*>name, len(name)),
            slice_of(<const char*>self.attrs, len(self.attrs)))
        if self.stream == NULL:
            raise MemoryError("no memory for a stream")
        self.generation = core.generation
        return 0

    cdef size_t max_body(self):
        """Return the largest body that fits a frame now.  Locality: GIL."""
        return <size_t>relaxed_load(<int64_t*>&self.stream.max_body)

    def __reduce__(self):
        raise TypeError("a Stream belongs to its producer and cannot be pickled; make a producer in each process")

    cdef int check_bytes(self, const uint8_t* p, size_t n, const Extras* x) except -1:
        """Raise InvalidMessageError for a body that cannot be sent.  Locality: GIL."""
        cdef size_t limit
        if self.generation != this_generation:
            self.bind()
        limit = body_limit(self.max_body(), item_text_size(x.own_id, x.attrs))
        if n == 0 or n > limit:
            raise size_problem(n, limit)
        if self.policy.lines and not is_line(self.policy.lines, p, n):
            raise row_problem(0, "line", n, limit)
        return 0

    cdef int put_large(
        self, object owner, const uint8_t* p, size_t n, Extras* x, PackResult** pack_result, uint32_t* index,
    ) except -1:
        """Check and accept one large body that lies in ``owner``'s memory.  Locality and locks as ``put_bytes``."""
        cdef void* reference = <void*>owner
        if self.core.generation == this_generation:     # in a forked child the engine is still the parent's
            owners_give_back(&self.core.engine.spares)
        Py_INCREF(owner)
        x.owner = &reference
        try:
            return self.put_bytes(p, n, x, pack_result, index)
        finally:
            if reference != NULL:           # no pack took it
                Py_DECREF(owner)

    cdef int put_bytes(
        self, const uint8_t* p, size_t n, const Extras* x, PackResult** pack_result, uint32_t* index,
    ) except -1:
        """Check and accept one body.  Locality: GIL, released while waiting.  Locks: takes batcher.lock."""
        cdef CoreHandle core = self.core
        cdef int64_t seen, deadline = 0
        cdef Extras extras = x[0]
        cdef int status
        self.check_bytes(p, n, x)
        while True:
            seen = accounting_turns(&core.engine.accounting)
            status = batcher_append(&core.engine.batcher, self.stream, p, n, &extras, pack_result, index)
            if status == ST_OK:
                return 0
            if status == ST_INVALID:
                raise row_problem(0, "line", n, self.max_body())
            if status == ST_LIMIT:
                raise size_problem(n, body_limit(self.max_body(), item_text_size(x.own_id, x.attrs)))
            if status != ST_FULL:
                core.check_usable()
                raise MemoryError("no memory for the message")
            if core.blocks and extras.exempt == EX_NOTHING and core.calls_back():
                extras.exempt = EX_RESULTS
                continue
            if deadline == 0:
                deadline = now_us() + core.max_block_us
            if not core.blocks or not core.wait_room(seen, deadline):
                raise_full(core, 0)

    cdef object serialized(self, object body, object item):
        """Return the bytes of an object, which is item number ``item`` of a batch or (None) alone.

        Raises InvalidMessageError when the serializer fails or returns something else.  Locality: GIL.
        """
        if type(body) is Serialized:
            return (<Serialized>body).body
        try:
            made = self.serializer(body)
        except Exception as error:
            raise serializer_problem(body, item, self.stream_id, error) from error
        if isinstance(made, str) or not PyObject_CheckBuffer(made):
            raise serializer_problem(body, item, self.stream_id, made)
        return made

    cdef list all_serialized(self, object bodies):
        """Return the bytes of all objects of a batch.  Locality: GIL.  Raises InvalidMessageError."""
        if isinstance(bodies, (str, bytes, bytearray, dict)):
            raise serializer_batch_problem(bodies)
        try:
            items = iter(bodies)
        except TypeError:
            raise serializer_batch_problem(bodies) from None
        return [self.serialized(body, item) for item, body in enumerate(items)]

    cdef object extras(self, Extras* x, object attrs, object dt, object own_id, object key):
        """Fill ``x``; the caller keeps the returned object as long as ``x``.  Raises for values that cannot be sent."""
        cdef object text = None
        x.when_ms = NO_TIME
        x.attrs = self.policy.least
        x.own_id = slice_of(NULL, 0)
        x.exempt = EX_NOTHING
        x.owner = NULL
        if attrs is not None or dt is not None:
            x.when_ms, text = self.policy.item_text(attrs, dt, self.frame_keys)
            if PyBytes_GET_SIZE(text):
                x.attrs = slice_of(PyBytes_AS_STRING(text), <size_t>PyBytes_GET_SIZE(text))
        if own_id is not None:
            self.policy.check_ids()
            own_id_of(own_id, &x.own_id)
        x.key_bucket = NO_KEY
        if key is not None:
            x.key_bucket = key_bucket(key, self.core.key_buckets)
        return text

    cdef int put(
        self, object body, object attrs, object dt, object own_id, object key, PackResult** pack_result,
        uint32_t* index,
    ) except -1:
        """Accept one body given as a Python object.  Locality: GIL.  Locks: takes batcher.lock."""
        cdef Py_buffer view
        cdef Extras x
        cdef bytes copy
        _kept = self.extras(&x, attrs, dt, own_id, key)
        if self.serializer is not None:
            body = self.serialized(body, None)
        if PyBytes_CheckExact(body):
            if <size_t>PyBytes_GET_SIZE(body) >= self.core.hold_from:
                return self.put_large(
                    body, <const uint8_t*>PyBytes_AS_STRING(body), <size_t>PyBytes_GET_SIZE(body), &x, pack_result,
                    index)
            return self.put_bytes(
                <const uint8_t*>PyBytes_AS_STRING(body), <size_t>PyBytes_GET_SIZE(body), &x, pack_result, index)
        if isinstance(body, str) or not PyObject_CheckBuffer(body):
            raise body_type(body)
        reason = buffer_open(body, &view)
        if reason is not None:
            raise buffer_problem(reason)
        try:
            if not buffer_is_plain(&view):
                copy = buffer_copy(&view)
                return self.put_bytes(
                    <const uint8_t*>PyBytes_AS_STRING(copy), <size_t>view.len, &x, pack_result, index)
            owner = body_owner(body) if <size_t>view.len >= self.core.hold_from else None
            if owner is not None:
                return self.put_large(owner, <const uint8_t*>view.buf, <size_t>view.len, &x, pack_result, index)
            return self.put_bytes(<const uint8_t*>view.buf, <size_t>view.len, &x, pack_result, index)
        finally:
            PyBuffer_Release(&view)

    @_quick
    def send_nowait(self, body, *, attrs=None, dt=None, message_id=None, key=None):
        """Accept one message and return nothing; its result is counted and reported like any other.

        ``body`` is bytes-like and not empty.  ``attrs`` are attributes of this message alone.  ``dt`` is its
        data time, milliseconds since 1970 or an aware datetime.  ``message_id`` is an id that the caller chooses: 1 to
        128 characters of printable ASCII without blanks, ``&``, ``=`` and ``|``; consumers find it as
        attribute ``msgid`` (``message_type`` 7 only).  With ``ordering="key"`` messages of one ``key`` (bytes or
        text, 1 to 1024 bytes) are stored in the order in which they were accepted.  Waits up to ``max_block``
        for room.
        Raises InvalidMessageError, BufferFullError, ClosedError, ForkedError; then the message was not accepted.
        Any thread.
        """
        self.put(body, attrs, dt, message_id, key, NULL, NULL)

    cdef bytes checked(self, object body, object attrs, object dt, object own_id, object key, object on_delivery):
        """Return a copy of a body that ``send`` would accept if there was room; raises what ``send`` raises."""
        cdef Extras x
        cdef bytes copy
        if on_delivery is not None:
            check_callback(on_delivery)
        self.core.check_usable()
        _kept = self.extras(&x, attrs, dt, own_id, key)
        if self.serializer is not None:
            body = self.serialized(body, None)
        copy = body if PyBytes_CheckExact(body) else buffer_bytes(body, None)
        self.check_bytes(<const uint8_t*>PyBytes_AS_STRING(copy), <size_t>PyBytes_GET_SIZE(copy), &x)
        return copy

    cdef Delivery sent(self, object body, object attrs, object dt, object own_id, object key, object on_delivery):
        """Accept one message and return its Delivery.  Locality: GIL.  Locks: takes batcher.lock."""
        cdef PackResult* pack_result = NULL
        cdef uint32_t index = 0
        cdef Delivery out
        if on_delivery is not None:
            check_callback(on_delivery)
        if own_id is not None:
            own_id = exact_text(own_id)         # a Delivery has the id exactly as it was sent
        self.put(body, attrs, dt, own_id, key, &pack_result, &index)
        out = new_delivery(self.core, pack_result, index, own_id)
        if on_delivery is not None:
            watch_message(self.core, self.group_id, self.stream_id, pack_result, index, own_id, on_delivery)
        return out

    def send(self, body, *, attrs=None, dt=None, message_id=None, key=None, on_delivery=None):
        """Accept one message and return its Delivery; arguments and errors as for ``send_nowait``.

        ``on_delivery`` is called with the message's DeliveryResult, after the producer's own ``on_delivery``
        and on the same thread.
        """
        return self.sent(body, attrs, dt, message_id, key, on_delivery)

    cdef int put_rows(self, Rows* rows, const Extras* x, BatchDelivery out, int64_t before, object owner) except -1:
        """Check all rows, then accept them; ``owner``, unless None, keeps the memory of them all.

        Locality: GIL, released for the work.  Locks: batcher.lock.
        """
        cdef RowsCheck check
        cdef RowOwners owners
        cdef int64_t at = 0, messages
        cdef size_t max_body, overhead = 8 + x.attrs.n if x.attrs.n else 4
        cdef CoreHandle core = self.core
        cdef SendPolicy policy = self.policy
        cdef int status
        core.check_usable()
        if self.generation != this_generation:
            self.bind()
        max_body = self.max_body()
        with nogil:
            rows_check(
                rows, max_body, x.attrs.n, policy.skip_null, policy.skip_empty, policy.lines, &check)
        if check.problem == ROW_BAD_ID:
            raise bad_id(rows.ids, check.first_bad, before + check.first_bad, out.segments.messages)
        if check.first_bad >= 0:
            raise row_problem(
                before + check.first_bad, ("", "null", "empty", "large", "line")[check.problem], check.bad_size,
                body_limit(max_body, x.attrs.n), out.segments.messages)
        if policy.lines:
            overhead = 1
        elif rows.ids != NULL:
            overhead = 8 + OWN_ID_KEY + (x.attrs.n + 1 if x.attrs.n else 0)
        messages = rows.n - check.nulls - check.empties
        if (core.raises or core.suspended()) and not batcher_fits(
                &core.engine.batcher, check.bytes + check.id_bytes + <int64_t>overhead * messages, messages):
            raise_full(core, out.segments.messages)
        out.skipped += check.nulls + check.empties
        owners_give_back(&core.engine.spares)
        if check.largest < core.hold_from:
            owner = None
        if owner is not None:
            owners_lease(&owners, owner, min(messages, check.bytes // <int64_t>core.hold_from))
            rows.owners = &owners
        try:
            append_blocking(core, self.stream, rows, &at, rows.n, x, out, before)
        finally:
            if owner is not None:
                owners_end(&owners)
            if rows.ids != NULL:
                with nogil:
                    status = keep_ids(rows, 0, at, &out.own_ids)
                if status != ST_OK:
                    raise MemoryError("no memory for the ids of a batch; its messages were accepted")
        return 0

    cdef int watch_batch(self, BatchDelivery out, object on_delivery) except -1:
        """Register ``on_delivery`` for the accepted messages, also when the call ends with an error."""
        if on_delivery is not None:
            watch_segments(
                self.core, self.group_id, self.stream_id, &out.segments, out.ids() if out.own_ids.n else None,
                on_delivery)
        return 0

    def send_batch(self, bodies, *, attrs=None, dt=None, message_ids=None, key=None, on_delivery=None):
        """Accept many messages in one call and return their BatchDelivery.

        ``bodies`` is a sequence of bytes-like objects, or an array of fixed-width records by the buffer
        protocol (NumPy ``S``, ``V`` or structured dtypes, or two-dimensional ``uint8``; ctypes and shared memory too),
        each record one body.  Elements of ``S`` end before the NUL bytes that fill them up, as NumPy's own do; one of
        NUL bytes alone is empty and follows ``empty_value``.  Items that hold objects, addresses or text are refused.
        ``message_ids`` is a sequence with an id (text or bytes) for each body, ``key`` the key of all of them.
        All bodies are checked before the first is accepted.  Raises InvalidMessageError naming the item,
        BufferFullError with the exact ``details["accepted"]``, ClosedError, ForkedError.  ``on_delivery`` is called
        with one DeliveryResult for each message.  Waits up to ``max_block`` for room.  Any thread.
        """
        cdef BatchDelivery out = BatchDelivery.__new__(BatchDelivery, BY_CORE)
        cdef BodyList source
        cdef BodyList ids
        cdef Extras x
        out.core = self.core
        if self.serializer is not None:
            bodies = self.all_serialized(bodies)
        source = body_rows(bodies, self.core.hold_from)
        _kept = self.extras(&x, attrs, dt, None, key)
        if message_ids is not None:
            self.policy.check_ids()
            ids = id_rows(message_ids, source.rows.n)
            source.rows.ids = &ids.rows
        if on_delivery is not None:
            check_callback(on_delivery)
        try:
            self.put_rows(&source.rows, &x, out, 0, None)
        finally:
            self.watch_batch(out, on_delivery)
        return out

    def send_arrow(self, data, *, column=None, attrs=None, dt=None, id_column=None, key=None, on_delivery=None):
        """Accept one column of Arrow data and return its BatchDelivery.

        ``data`` is anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``; ``column`` names the column
        of the bodies (not needed for a single one, or one called ``value`` or ``body``); ``id_column`` names
        a column with the messages' ids, as for ``message_id``, without nulls.  Null and empty bodies follow
        ``null_value`` and ``empty_value``.  Memory of bodies of 4 KiB and more, also of a mapped file, must stay as it
        is until their results.  Raises as ``send_batch``; an error in a later chunk says how many messages of the
        earlier ones were accepted.  ``on_delivery`` is called with one DeliveryResult for each message.  Any thread.
        """
        cdef BatchDelivery out = BatchDelivery.__new__(BatchDelivery, BY_CORE)
        cdef ArrowChunks chunks = open_arrow(data)
        cdef ArrowArray* chunk
        cdef Rows rows, ids
        cdef Extras x
        cdef int at, id_at = -1
        cdef int64_t before = 0
        out.core = self.core
        _kept = self.extras(&x, attrs, dt, None, key)
        if id_column is not None:
            self.policy.check_ids()
            id_at = column_index(chunks.schema, id_column, None)
        at = column_index(chunks.schema, column, id_column)
        if on_delivery is not None:
            check_callback(on_delivery)
        try:
            chunk = chunks.next_chunk()
            while chunk != NULL:
                column_rows(chunks.schema, chunk, at, &rows)
                if id_column is not None:
                    column_rows(chunks.schema, chunk, id_at, &ids)
                    rows.ids = &ids
                self.put_rows(&rows, &x, out, before, chunks.owner())
                before += rows.n
                chunk = chunks.next_chunk()
        except DataProxyError as error:
            raise partly(error, out.segments.messages)
        finally:
            self.watch_batch(out, on_delivery)
        return out

    def __repr__(self):
        return f"<Stream {self.group_id}/{self.stream_id}>"
