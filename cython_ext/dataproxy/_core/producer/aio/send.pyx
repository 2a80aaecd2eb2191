"""Sending in an event loop: each call takes what the plain call takes, can be awaited, and never blocks the loop.

The calls pass their arguments on unchanged, so they have every parameter that the plain calls have.

Locality: GIL; the thread of a running event loop, unless a docstring says "any thread".  Locks: ``room`` and the
calls that seal take batcher.lock.
"""

cimport cython
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int64_t

from dataproxy._core.base.made cimport BY_CORE
from dataproxy._core.base.forks cimport this_generation
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.producer.accumulate.batcher cimport batcher_left, batcher_seal_all
from dataproxy._core.producer.aio.notifier cimport Notifier, notifier_here
from dataproxy._core.producer.results.accounting cimport accounting_idle, accounting_turns
from dataproxy._core.producer.results.delivery cimport BatchDelivery, Delivery
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.producer cimport ProducerCore
from dataproxy._core.producer.results.segments cimport segments_add
from dataproxy._core.producer.ingest.stream cimport Serialized, Stream, serialized_once
from dataproxy._core.producer.aio.waiter cimport new_waiter
from dataproxy._core.plat.atomic cimport atomic_add

from dataproxy.errors import BufferFullError, ClosedError, ForkedError, LocalProtocolError

__all__ = [
    "AsyncCore", "AsyncStream", "checked_body", "grow_batch", "new_batch", "turns", "room", "seal_all", "seal_idle",
    "waiting_args", "waiting_body",
]


cdef class AsyncCore:
    """Forward sending calls to the plain producer inside.  ``later`` of the derived class does those that must wait."""

    def __cinit__(self, *args, **options):
        self._notifiers = {}
        self.generation = this_generation

    # --- private calls for the Python layer

    def _attach(self, ProducerCore target not None):
        """Use an open producer from now on.  Thread: the loop that opened it."""
        self.core = target
        self.target_send = target.send
        self.target = target

    def _check(self):
        """Raise ForkedError in a forked child, ClosedError after ``_let_go``.  Any thread."""
        self._check_process()
        if self.ended:
            raise ClosedError("the AsyncProducer is closed", hint="open a new one to continue")

    def _check_process(self):
        """Raise ForkedError in a forked child.  Any thread."""
        if self.generation != this_generation:
            raise ForkedError(
                "this AsyncProducer was made before the process was forked; its threads, connections and event loop "
                "belong to the parent", hint="make one in the child process")

    @property
    def _inner(self):
        """Return the plain producer.  Raises LocalProtocolError before it is open, ForkedError in a forked child."""
        self._check_process()
        if self.target is None:
            raise LocalProtocolError(
                "the AsyncProducer is not open yet", hint="enter it with 'async with', or await its open() before")
        return self.target

    @property
    def _is_inherited(self):
        """Tell whether it was made in the parent of this process."""
        return self.generation != this_generation

    @property
    def _is_open(self):
        """Tell whether the plain producer was made."""
        return self.target is not None

    def _join_queue(self):
        """Count one more task that waits for room: later sends wait behind it.  Any thread."""
        self._queueing += 1

    def _leave_queue(self):
        """Count one task less.  Any thread."""
        self._queueing -= 1

    def _watch(self):
        """Return the running loop's Notifier, which stays open for this producer from now on."""
        self._check()
        return self.here()

    def _let_go(self):
        """Release the Notifier of every loop; no call can send any more.  Any thread."""
        cdef dict notifiers = self._notifiers
        self.ended = True
        self._notifiers = {}
        self.notifier = None
        for notifier in notifiers.values():
            (<Notifier>notifier).release()

    cdef Notifier here(self):
        """Return the Notifier of the running loop.  Raises LocalProtocolError outside of a loop."""
        cdef Notifier notifier = self.notifier
        if notifier is not None and notifier.drained_by == <unsigned long>PyThread_get_thread_ident():
            return notifier  # the usual case: a task that this Notifier woke sends; the loop need not be asked
        notifier = notifier_here()
        if notifier is not self.notifier:
            if <size_t><void*>notifier not in self._notifiers:
                for key, other in list(self._notifiers.items()):
                    if (<Notifier>other).loop.is_closed():
                        del self._notifiers[key]
                        (<Notifier>other).release()
                self._notifiers[<size_t><void*>notifier] = notifier
                notifier.acquire()
            self.notifier = notifier
        return notifier

    # --- the hot calls

    cdef Notifier ready(self):
        """Return the running loop's Notifier, None when the call must first wait for the producer or for room.

        Raises ClosedError, ForkedError, LocalProtocolError.
        """
        if self.ended or self.generation != this_generation or self.target is None or self._queueing:
            self._check()
            return None
        return self.here()

    def send(self, stream_id, body, **options):
        """Accept one message; the await ends with its ack and returns the Delivered.

        Parameters as for ``Producer.send``.  If the buffer has room, the call itself accepts the message.  Otherwise
        the await waits for room, up to ``max_block``, and then accepts it.  Raises what ``Producer.send``
        raises, and DeliveryFailed or DeliveryExpired.  Cancelling ends the wait; an accepted message is still
        delivered and counted.  Any running event loop.
        """
        cdef Notifier notifier = self.ready()
        if notifier is not None:
            try:
                if options:
                    delivery = self.target_send(stream_id, body, **options)
                else:
                    delivery = self.target_send(stream_id, body)
                return new_waiter(notifier, <Delivery>delivery, False)
            except BufferFullError:
                if not self.core.suspends:
                    raise
        return self._later(self.target_send, (stream_id, body), options, body)

    def send_soon(self, *args, **options):
        """Accept one message at once and return its Delivery, which can be awaited.

        Parameters as for ``Producer.send``.  It never waits: raises BufferFullError if there is no room (see
        ``room``).  A result that nobody retrieves is only counted in the report.  Any thread.
        """
        if self.generation != this_generation or self.target is None:
            return self._inner
        return self.target_send(*args, **options)

    def send_nowait(self, *args, **options):
        """Accept one message at once and return nothing.

        It never waits: raises BufferFullError if there is no room.  Parameters as for ``Producer.send_nowait``.
        """
        if self.generation != this_generation or self.target is None:
            return self._inner
        self.target.send_nowait(*args, **options)

    def send_batch(self, *args, **options):
        """Accept many messages; the await ends with all acks and returns a BatchDelivered.

        Parameters as for ``Producer.send_batch``; do not change ``bodies`` before the await has ended.  The call waits
        for room without blocking the loop: a background thread accepts large batches, and batches for which there is
        no room, one after the other.  Cancelling ends the wait; accepted messages are still delivered.
        """
        return self._batch_later("send_batch", args, options)

    def send_arrow(self, *args, **options):
        """Accept a column of Arrow data on a background thread; the await ends as for ``send_batch``.

        Parameters as for ``Producer.send_arrow``.
        """
        return self._batch_later("send_arrow", args, options)


@cython.final
cdef class AsyncStream:
    """Sending calls bound to one group, stream and set of attributes; made by ``AsyncProducer.stream``."""

    def __cinit__(self, AsyncCore producer not None, Stream plain not None):
        self.producer = producer
        self.plain = plain
        self.plain_send = plain.send

    @property
    def group_id(self):
        """Return the group's name."""
        return self.plain.group_id

    @property
    def stream_id(self):
        """Return the stream's name."""
        return self.plain.stream_id

    def send(self, body, **options):
        """Accept one message; the await ends with its ack and returns the Delivered.  Parameters as ``Stream.send``."""
        cdef Notifier notifier = self.producer.ready()
        if notifier is not None:
            try:
                delivery = self.plain_send(body, **options) if options else self.plain_send(body)
                return new_waiter(notifier, <Delivery>delivery, False)
            except BufferFullError:
                if not self.producer.core.suspends:
                    raise
        return self.producer._later(self.plain_send, (serialized_once(self.plain, body),), options, body)

    def send_soon(self, *args, **options):
        """Accept one message at once and return its Delivery; BufferFullError without room.  As ``Stream.send``."""
        if self.producer.generation != this_generation:
            self.producer._check()
        return self.plain_send(*args, **options)

    def send_nowait(self, *args, **options):
        """Accept one message at once and return nothing; BufferFullError without room.  As ``Stream.send_nowait``."""
        if self.producer.generation != this_generation:
            self.producer._check()
        self.plain.send_nowait(*args, **options)

    def send_batch(self, *args, **options):
        """Accept many messages; the await ends with their acks and returns a BatchDelivered."""
        return self.producer._batch_later(self.plain.send_batch, args, options)

    def send_arrow(self, *args, **options):
        """Accept a column of Arrow data; the await ends with the acks and returns a BatchDelivered."""
        return self.producer._batch_later(self.plain.send_arrow, args, options)

    def batch(self):
        """Return an ``async with`` block that gathers messages; see ``AsyncProducer.batch``."""
        return self.producer._batch_of(self.plain)

    def __repr__(self):
        return f"<AsyncStream {self.group_id}/{self.stream_id}>"


def turns(CoreHandle core):
    """Return a number that grows whenever there may be room again for waiting senders.  Any thread."""
    return accounting_turns(&core.engine.accounting)


def room(CoreHandle core):
    """Return (bytes, messages) that would be accepted now; messages is -1 without such a limit.  Any thread."""
    cdef int64_t free_bytes, messages
    batcher_left(&core.engine.batcher, &free_bytes, &messages)
    return free_bytes, messages


def seal_all(CoreHandle core):
    """Seal all open packs; return the largest serial of the packs sealed so far.  Any thread."""
    cdef int64_t mark
    with nogil:
        mark = batcher_seal_all(&core.engine.batcher)
    return mark


def seal_idle(CoreHandle core):
    """Seal all open packs if nothing is in flight: only packs that are sent can make room.  Any thread."""
    with nogil:
        if accounting_idle(&core.engine.accounting):
            batcher_seal_all(&core.engine.batcher)


def checked_body(
    Stream stream not None, body, *, attrs=None, dt=None, message_id=None, key=None, on_delivery=None,
):
    """Return a copy of a body that ``stream.send`` would accept if there was room; raises what ``send`` raises."""
    return stream.checked(body, attrs, dt, message_id, key, on_delivery)


def waiting_body(Stream stream not None, bytes body not None):
    """Return the object to pass to ``stream.send`` later for a body of `checked_body`.  Any thread."""
    return body if stream.serializer is None else Serialized(body)


def waiting_args(ProducerCore core not None, tuple args, dict options):
    """Return the arguments of ``core.send``; the stream's serializer makes the body now.  Any thread."""
    if len(args) != 2:
        return args
    return args[0], serialized_once(core.find(args[0], options.get("group_id")), args[1])


def new_batch(CoreHandle core):
    """Return a BatchDelivery without a message, for ``grow_batch``.  Any thread."""
    cdef BatchDelivery out = BatchDelivery.__new__(BatchDelivery, BY_CORE)
    out.core = core
    return out


def grow_batch(BatchDelivery batch, Delivery delivery):
    """Add one message to a batch; neighbours in a pack share an entry.  One thread a batch.  Raises MemoryError."""
    atomic_add(&delivery.pack_result.refs, 1)
    if segments_add(&batch.segments, delivery.pack_result, delivery.index, 1) != ST_OK:
        raise MemoryError("no memory for the results of a batch")


def _follow():
    """Give the forwarding calls the signatures of the plain ones, for help() and inspect."""
    for kind, plain in ((AsyncCore, ProducerCore), (AsyncStream, Stream)):
        for name in ("send", "send_nowait", "send_batch", "send_arrow"):
            getattr(kind, name).__wrapped__ = getattr(plain, name)
        kind.send_soon.__wrapped__ = plain.send


_follow()
