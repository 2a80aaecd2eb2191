"""Waiters: to asyncio what its futures are, one for each await of a message's result."""

from asyncio import CancelledError, InvalidStateError

cimport cython
from cpython.contextvars cimport PyContext_CopyCurrent, PyContext_Enter, PyContext_Exit
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t

from dataproxy._core.base.pack cimport Verdict, verdict_release
from dataproxy._core.client.bell cimport Bell, WakeFunction, bell_here, set_wake
from dataproxy._core.client.delivery cimport BatchDelivery, Delivery, new_delivery, outcome_of
from dataproxy._core.client.facts cimport verdict_facts
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load
from dataproxy._core.plat.pytype cimport SEND_NEXT, SEND_RETURN, SendSlot, is_builtin, set_send_slot

from dataproxy.errors import DeliveryError

__all__ = ["Waiter", "await_batch", "await_delivery"]

cdef enum:
    FRESH = 0           # nobody waits yet
    WAITING = 1         # in its pack's list
    DONE = 2
    CANCELLED = 3


def await_delivery(Delivery delivery):
    """Return the iterator behind ``await delivery``."""
    return new_waiter(bell_here(), delivery, True)


async def await_batch(BatchDelivery batch):
    """Wait for every message of a batch and return its BatchDelivered."""
    cdef int64_t i
    for i in range(batch.segments.n):
        if not atomic_load(&batch.segments.items[i].verdict.done):
            try:
                await new_waiter(bell_here(), _of_segment(batch, i), False)
            except DeliveryError:
                pass                    # it is in the result
    return batch.result(0)


cdef Delivery _of_segment(BatchDelivery batch, int64_t i):
    """Return a Delivery of the first message of a segment."""
    cdef Verdict* v = batch.segments.items[i].verdict
    atomic_add(&v.refs, 1)
    return new_delivery(batch.core, v, batch.segments.items[i].first, None)


cdef Waiter new_waiter(Bell bell, Delivery delivery, bint keep):
    """Return a fresh Waiter; unless ``keep``, it takes over what the Delivery holds, which is no use then.

    Locality: GIL.
    """
    cdef Waiter w = Waiter.__new__(Waiter)
    w.bell = bell
    w._loop = bell.loop
    w.core = delivery.core
    w.verdict = delivery.verdict
    w.index = delivery.index
    w.own_id = delivery.own_id
    if keep:
        atomic_add(&w.verdict.refs, 1)
    else:
        delivery.verdict = NULL
    return w


@cython.final
@cython.freelist(1024)
cdef class Waiter:
    """One await of a message's result, made by ``AsyncProducer.send`` and by ``await delivery``.

    It can be awaited, wrapped into a task or used where asyncio wants a future.  Cancelling it ends the wait
    and nothing else: the message is on its way and stays in the books.  Its loop's thread.
    """

    def __init__(self):
        raise TypeError("Waiter objects are made by AsyncProducer.send")

    def __dealloc__(self):
        if self.verdict != NULL:
            verdict_release(self.verdict)

    # --- as an awaitable and a coroutine

    def __await__(self):
        if self.state == FRESH:
            return self
        return new_waiter(bell_here(), self.delivery(), False)

    def __iter__(self):
        return self.__await__()

    def __next__(self):
        if self.state == FRESH:
            self.begin()
        if self.state == WAITING:
            self._asyncio_future_blocking = True
            return self
        raise StopIteration(self.result())

    def send(self, value):
        """Start or go on, as a coroutine does."""
        return self.__next__()

    def throw(self, kind, value=None, trace=None):
        """Raise the exception in the place of the await, as a coroutine does."""
        self.close()
        if value is None:
            value = kind() if isinstance(kind, type) else kind
        raise value

    def close(self):
        """End the wait, as for a coroutine; the message is not touched."""
        if self.state < DONE:
            self.state = CANCELLED
        self.callback = None
        self.context = None
        self.more = None

    # --- as a future

    def done(self):
        """Return whether there is a result, or the wait was cancelled."""
        return self.state >= DONE

    def cancelled(self):
        """Return whether the wait was cancelled."""
        return self.state == CANCELLED

    def cancel(self, msg=None):
        """End the wait; the message goes on.  Returns False when there was a result already."""
        if self.state >= DONE:
            return False
        self.state = CANCELLED
        self.message = msg
        loop = self._loop
        if self.callback is not None:
            loop.call_soon(self.callback, self, context=self.context)
        for callback, context in self.more or ():
            loop.call_soon(callback, self, context=context)
        self.callback = None
        self.context = None
        self.more = None
        return True

    def _make_cancelled_error(self):
        return CancelledError() if self.message is None else CancelledError(self.message)

    def result(self):
        """Return the Delivered, or raise the DeliveryError, CancelledError or InvalidStateError (not done)."""
        if self.state == CANCELLED:
            raise self._make_cancelled_error()
        if self.state != DONE:
            raise InvalidStateError("the message has no result yet")
        return self.outcome()

    def exception(self):
        """Return the DeliveryError or None; raises CancelledError, or InvalidStateError when not done."""
        if self.state == CANCELLED:
            raise self._make_cancelled_error()
        if self.state != DONE:
            raise InvalidStateError("the message has no result yet")
        return self.delivery().exception(0)

    def add_done_callback(self, callback, *, context=None):
        """Call ``callback(self)`` in the loop once it is done."""
        if context is None:
            context = PyContext_CopyCurrent()
        if self.state == FRESH:
            self.begin()
        if self.state >= DONE:
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
        kept = [pair for pair in self.more or () if pair[0] != callback]
        n = len(self.more or ()) - len(kept)
        if self.callback is not None and self.callback == callback:
            n += 1
            self.callback, self.context = kept.pop(0) if kept else (None, None)
        self.more = kept or None
        return n

    # --- inside

    cdef int begin(self) except -1:
        """Join the list of the pack, or be done at once."""
        cdef Verdict* v = self.verdict
        cdef list waiters = None
        if not atomic_load(&v.done):
            if self.bell.closed:
                self.bell = bell_here()
                self._loop = self.bell.loop
            waiters = self.bell.waiters_of(self.core, v)
        if waiters is None:
            self.state = DONE
        else:
            waiters.append(self)
            self.state = WAITING
        return 0

    cdef Delivery delivery(self):
        """Return a Delivery of the same message."""
        atomic_add(&self.verdict.refs, 1)
        return new_delivery(self.core, self.verdict, self.index, self.own_id)

    cdef object outcome(self):
        """Return the Delivered, made once, or raise the DeliveryError."""
        cdef Bell bell = self.bell
        if self.value is None:
            if bell.current != NULL and bell.current.verdict == self.verdict:
                self.value = outcome_of(bell.facts, self.index, self.own_id)
            else:
                self.value = outcome_of(verdict_facts(self.verdict), self.index, self.own_id)
        return self.value

    cdef int wake(self) except -1:
        """Call the callbacks.  Locality: the reader callback of the loop, outside of any task."""
        callback, context, more = self.callback, self.context, self.more
        if self.state != WAITING:
            return 0
        self.state = DONE
        self.callback = None
        self.context = None
        if more is not None:
            self.more = None
            for other, its_context in more:
                self._loop.call_soon(other, self, context=its_context)
        if callback is not None:
            self.call(callback, context)
        return 0

    cdef int call(self, object callback, object context) except -1:
        """Call one callback in its context; its exceptions go to the loop's handler.

        A task only asks what woke it for an error before it goes on, to ask for the result then: it is told of none.
        """
        done = self.bell.done if is_builtin(callback, b"task_wakeup") else self
        PyContext_Enter(context)
        try:
            callback(done)
        except Exception as error:
            self._loop.call_exception_handler({
                "message": f"the callback {callback!r} raised", "exception": error, "future": self})
        finally:
            PyContext_Exit(context)
        return 0

    def __repr__(self):
        state = ("fresh", "waiting", "done", "cancelled")[self.state]
        return f"<Waiter for {self.delivery()!r} {state}>"


cdef int _wake(object waiter) except -1:
    return (<Waiter>waiter).wake()


cdef int _send(PyObject* self, PyObject* value, PyObject** result) except -1:
    """Do what ``__next__`` does, and return the result without the StopIteration that an iterator would need."""
    cdef Waiter w = <Waiter>self
    if w.state == FRESH:
        w.begin()
    out = w if w.state == WAITING else w.outcome() if w.state == DONE else w.result()
    Py_INCREF(out)
    result[0] = <PyObject*>out
    if w.state == WAITING:
        w._asyncio_future_blocking = True
        return SEND_NEXT
    return SEND_RETURN


set_send_slot(<PyTypeObject*>Waiter, <SendSlot>_send)
set_wake(<WakeFunction>_wake)
