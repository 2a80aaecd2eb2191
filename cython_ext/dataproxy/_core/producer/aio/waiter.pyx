"""Waiters: asyncio sees a coroutine until somebody waits for a Waiter, and from then on a future.

Locality: GIL, the thread of the Waiter's loop.  Locks: a wait that begins takes accounting.lock.
"""

import sys
import warnings
from asyncio import CancelledError, InvalidStateError
from types import GenericAlias, TracebackType

cimport cython
from cpython.contextvars cimport PyContext_CopyCurrent, PyContext_Enter, PyContext_Exit
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t

from dataproxy._core.base.made cimport BY_CORE, CORE_ARGS
from dataproxy._core.pack.pack cimport OUT_DELIVERED, OUT_SENT, PackResult, pack_result_release
from dataproxy._core.producer.aio.notifier cimport Notifier, WakeFunction, notifier_here, set_wake
from dataproxy._core.producer.results.delivery cimport BatchDelivery, Delivery, new_delivery
from dataproxy._core.producer.results.fields cimport ended_well, fields_at, pack_result_fields
from dataproxy._core.producer.results.outcomes cimport new_success
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load
from dataproxy._core.plat.calltypes cimport SEND_NEXT, SEND_RETURN, Awaited
from dataproxy._core.plat.pytype cimport is_builtin, make

from dataproxy.errors import DeliveryError
from dataproxy.outcomes import delivery_error

__all__ = ["Waiter", "await_batch", "await_delivery"]

cdef enum:
    FRESH = 0           # nobody waits, and nobody has asked for the state
    WAITING = 1         # in the list of its pack
    DONE = 2
    CANCELLED = 3


def await_delivery(Delivery delivery):
    """Return the iterator behind ``await delivery``."""
    return new_waiter(notifier_here(), delivery, True)


async def await_batch(BatchDelivery batch):
    """Wait for every message of a batch and return its BatchDelivered."""
    cdef int64_t i
    for i in range(batch.segments.n):
        if not atomic_load(&batch.segments.items[i].pack_result.done):
            try:
                await new_waiter(notifier_here(), _of_segment(batch, i), False)
            except DeliveryError:
                pass                    # it is in the result
    return batch.result(0)


cdef Delivery _of_segment(BatchDelivery batch, int64_t i):
    """Return a Delivery of the first message of a segment."""
    cdef PackResult* v = batch.segments.items[i].pack_result
    atomic_add(&v.refs, 1)
    return new_delivery(batch.core, v, batch.segments.items[i].first, None)


cdef Waiter new_waiter(Notifier notifier, Delivery delivery, bint keep):
    """Return a fresh Waiter; unless ``keep``, it takes over what the Delivery holds, and the Delivery is unusable then.

    Locality: GIL.
    """
    cdef Waiter w = <Waiter>make(<PyTypeObject*>Waiter, CORE_ARGS)
    w.step = _send
    w.notifier = notifier
    w._loop = notifier.loop
    w.core = delivery.core
    w.pack_result = delivery.pack_result
    w.index = delivery.index
    w.own_id = delivery.own_id
    if keep:
        atomic_add(&w.pack_result.refs, 1)
    else:
        delivery.pack_result = NULL
    return w


@cython.final
cdef class Waiter(Awaited):
    """One await of a message's result, made by ``AsyncProducer.send`` and by ``await delivery``.

    For asyncio it is a coroutine: ``create_task``, ``TaskGroup``, ``gather``, ``ensure_future``, ``shield``,
    ``as_completed`` and ``wait_for`` take it like any coroutine.  Once somebody waits for it, it has the documented
    methods of an ``asyncio.Future`` and behaves like one: any number of tasks may await it and each gets the same
    result; cancelling one of these tasks cancels the wait of all.  Cancelling ends only the wait: the message is on
    its way and is still counted.  Thread: that of its loop.
    """

    def __cinit__(self, by=None):
        if by is not BY_CORE:
            raise TypeError("Waiter objects are made by AsyncProducer.send")

    def __dealloc__(self):
        if self.pack_result != NULL:
            if not self.asked and self.state == DONE and not ended_well(self.pack_result, self.index):
                self.tell_unasked()
            pack_result_release(self.pack_result)

    def __class_getitem__(cls, item):
        """Return the generic alias, as for ``asyncio.Future[...]``."""
        return GenericAlias(cls, item)

    # --- as an awaitable and a coroutine; __await__ is the base class's

    def __iter__(self):
        return self

    def __next__(self):
        if self.pending():
            self.block()
            return self
        raise StopIteration(self.result())

    def send(self, value):
        """Start or continue, as a coroutine does.  Raises what ``result`` raises, or StopIteration with the result."""
        return self.__next__()

    def throw(self, kind, value=None, trace=None):
        """Raise the exception at the await, as a coroutine does; other tasks go on waiting."""
        if sys.version_info >= (3, 12) and (value is not None or trace is not None):
            warnings.warn(
                "the (type, exc, tb) signature of throw() is deprecated, use the single-arg signature instead.",
                DeprecationWarning, 1)
        if trace is not None and not isinstance(trace, TracebackType):
            raise TypeError("throw() third argument must be a traceback object")
        if isinstance(kind, BaseException):
            if value is not None:
                raise TypeError("instance exception may not have a separate value")
            value = kind
        elif not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise TypeError(f"exceptions must be classes or instances deriving from BaseException, not {kind!r}")
        elif not isinstance(value, kind):
            value = kind() if value is None else kind(*value) if isinstance(value, tuple) else kind(value)
        raise value if trace is None else value.with_traceback(trace)

    def close(self):
        """End one await, as for a coroutine; this does not change the message, and other tasks go on waiting."""

    # --- as a future

    @property
    def _asyncio_future_blocking(self):
        # None tells asyncio that this is not a future, so asyncio makes a task of the coroutine.
        return None if self.state == FRESH else self.blocking

    @_asyncio_future_blocking.setter
    def _asyncio_future_blocking(self, bint value):
        self.blocking = value

    @property
    def _log_traceback(self):
        return self.state == DONE and not self.asked and not ended_well(self.pack_result, self.index)

    @_log_traceback.setter
    def _log_traceback(self, bint value):
        if value:
            raise ValueError("_log_traceback can only be set to False")
        self.asked = True

    def get_loop(self):
        """Return the event loop that it is bound to."""
        return self._loop

    def done(self):
        """Return whether there is a result, or the wait was cancelled."""
        return self.look() >= DONE

    def cancelled(self):
        """Return whether the wait was cancelled."""
        return self.state == CANCELLED

    def cancel(self, msg=None):
        """End the wait of all tasks; the message is still sent.  Returns False when there was a result already."""
        if self.look() >= DONE:
            return False
        self.state = CANCELLED
        self._cancel_message = msg
        callback, context, more = self.take_callbacks()
        if callback is not None:
            self._loop.call_soon(callback, self, context=context)
        self.schedule(more)
        return True

    def _make_cancelled_error(self):
        return CancelledError() if self._cancel_message is None else CancelledError(self._cancel_message)

    def result(self):
        """Return the Delivered (with ``ack="none"`` a Sent).

        Raises the DeliveryError, CancelledError, or InvalidStateError (not done).
        """
        self.check_done()
        return self.outcome()

    def exception(self):
        """Return the DeliveryError or None; raises CancelledError, or InvalidStateError when not done."""
        self.check_done()
        if ended_well(self.pack_result, self.index):
            return None
        self.asked = True
        return self.failure()

    def set_result(self, result):
        """Refuse: the hub's answer is the result."""
        raise RuntimeError("a Waiter does not support set_result: the answer to its message is its result")

    def set_exception(self, exception):
        """Refuse: the hub's answer is the result."""
        raise RuntimeError("a Waiter does not support set_exception: the answer to its message is its result")

    def add_done_callback(self, callback, *, context=None):
        """Call ``callback(self)`` in the loop once it is done."""
        if context is None:
            context = PyContext_CopyCurrent()
        self.pending()
        if self.state != WAITING:
            self._loop.call_soon(callback, self, context=context)
        elif self.callback is None:
            self.callback = callback
            self.context = context
        else:
            if self.more is None:
                self.more = []
            self.more.append((callback, context))

    def remove_done_callback(self, callback):
        """Take back a callback; returns how many times it was found."""
        cdef int n = 0
        if self.callback is None:
            return 0
        first, context, more = self.take_callbacks()
        kept = []
        for pair in [(first, context), *(more or ())]:
            if pair[0] == callback:
                n += 1
            else:
                kept.append(pair)
        if self.callback is not None:       # a comparison of callbacks has added others
            kept += [(self.callback, self.context), *(self.more or ())]
        self.callback, self.context = kept.pop(0) if kept else (None, None)
        self.more = kept or None
        return n

    @property
    def _callbacks(self):
        return None if self.callback is None else [(self.callback, self.context), *(self.more or ())]

    # --- inside

    cdef int begin(self) except -1:
        """Enter the list of the pack, or end at once if it is settled.  Raises LocalProtocolError, MemoryError."""
        cdef PackResult* v = self.pack_result
        cdef list waiters = None
        if not atomic_load(&v.done):
            if self.notifier.closed:
                self.notifier = notifier_here()
                self._loop = self.notifier.loop
            waiters = self.notifier.waiters_of(self.core, v)
        if waiters is None:
            self.state = DONE
        else:
            waiters.append(self)
            self.state = WAITING
        return 0

    cdef bint pending(self) except -1:
        """Tell whether the result is still missing; begins the wait if nobody waits yet."""
        if self.state == FRESH:
            self.begin()
        return self.look() == WAITING

    cdef int block(self) except -1:
        """Set the mark with which an await tells its task to wait for this object.  Raises RuntimeError."""
        if self.blocking:
            raise RuntimeError("await wasn't used with future")
        self.blocking = True
        return 0

    cdef int look(self) noexcept:
        """Return the state: done as soon as the pack is settled, also before the loop calls the callbacks."""
        if self.state < DONE and atomic_load(&self.pack_result.done):
            if self.state == WAITING:
                return DONE
            self.state = DONE
        return self.state

    cdef int check_done(self) except -1:
        """Raise CancelledError, or InvalidStateError without a result."""
        if self.state == CANCELLED:
            raise self._make_cancelled_error()
        if self.look() != DONE:
            raise InvalidStateError("the message has no result yet")
        return 0

    cdef tuple take_callbacks(self):
        """Return (callback, context, more) and remove them from the Waiter."""
        taken = self.callback, self.context, self.more
        self.callback = None
        self.context = None
        self.more = None
        return taken

    cdef int schedule(self, list callbacks) except -1:
        """Let the loop call the callbacks in its next turn."""
        if callbacks is not None:
            for callback, context in callbacks:
                self._loop.call_soon(callback, self, context=context)
        return 0

    cdef object outcome(self):
        """Return the Delivered (with ``ack="none"`` the Sent) or raise the DeliveryError, each made once."""
        cdef Notifier notifier = self.notifier
        self.asked = True
        if self.value is not None:
            return self.value
        if self.pack_result.outcome == OUT_DELIVERED or self.pack_result.outcome == OUT_SENT:
            current = notifier.current != NULL and notifier.current.pack_result == self.pack_result
            fields = notifier.fields if current else None
            if fields is None:
                fields = pack_result_fields(self.pack_result)
            self.value = new_success(fields, self.index, self.own_id)
            return self.value
        if ended_well(self.pack_result, self.index):      # in a pack that was split
            self.value = new_success(fields_at(self.pack_result, self.index), self.index, self.own_id)
            return self.value
        raise self.failure().with_traceback(None)

    cdef object failure(self):
        """Return the DeliveryError, made once."""
        if self.error is None:
            self.error = delivery_error(fields_at(self.pack_result, self.index), self.index, self.own_id)
        return self.error

    cdef int tell_unasked(self) except -1:
        """Report an error that nobody has asked for, as asyncio does for a future; called when this is freed."""
        context = {"message": "Waiter exception was never retrieved", "exception": self.failure()}
        if self.core is not None:
            atomic_add(&self.pack_result.refs, 1)
            context["delivery"] = new_delivery(self.core, self.pack_result, self.index, self.own_id)
        if self._loop is not None:      # else the garbage collector has cleared it
            self._loop.call_exception_handler(context)
        return 0

    cdef int wake(self) except -1:
        """Call the callbacks.  Locality: the reader callback of the loop, outside of any task."""
        if self.state != WAITING:
            return 0
        callback, context, more = self.callback, self.context, self.more
        self.state = DONE
        self.callback = None
        self.context = None
        if more is not None:
            self.more = None
            self.schedule(more)
        if callback is not None:
            self.call(callback, context)
        return 0

    cdef int call(self, object callback, object context) except -1:
        """Call one callback in its context, as the loop would; its exceptions go to the loop's handler.

        A task first asks the object that it gets for an error, and then asks this Waiter for the result.  It gets a
        future without an error, so that an error is made only once, with the result.
        """
        cdef bint entered = False
        done = self.notifier.done if is_builtin(callback, b"task_wakeup") else self
        try:
            PyContext_Enter(context)
            entered = True
            callback(done)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            self._loop.call_exception_handler({
                "message": f"the callback {callback!r} raised", "exception": error, "future": self})
        finally:
            if entered:
                PyContext_Exit(context)
        return 0

    def __repr__(self):
        state = ("fresh", "pending", "finished", "cancelled")[self.look()]
        return f"<Waiter for message {self.pack_result.seq}:{self.index} {state}>"


cdef int _wake(object waiter) except -1:
    return (<Waiter>waiter).wake()


cdef int _send(PyObject* self, PyObject* value, PyObject** result) except -1:
    """Do what ``__next__`` does, and return the result without the StopIteration that an iterator would need."""
    cdef Waiter w = <Waiter>self
    cdef bint pending = w.pending()
    if pending:
        w.block()
    out = w if pending else w.result() if w.state == CANCELLED else w.outcome()
    Py_INCREF(out)
    result[0] = <PyObject*>out
    return SEND_NEXT if pending else SEND_RETURN


set_wake(<WakeFunction>_wake)
