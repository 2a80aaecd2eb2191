"""Waiters whose results a test gives: the accounting is real, there is no engine behind them.

While ``answering`` is in force, ``set_result`` and ``set_exception`` of a Waiter of a Desk do what an answer does, so
that tests written for futures can be run on Waiters.
"""

import sys
from asyncio import InvalidStateError
from contextlib import contextmanager

from cpython.object cimport PyObject, PyTypeObject
from cpython.type cimport PyType_Modified
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dataproxy._core.pack.pack cimport (
    OUT_DELIVERED, OUT_FAILED, PK_SETTLED, Pack, PackResult, pack_enter, pack_result_new,
)
from dataproxy._core.producer.aio.notifier cimport Notifier
from dataproxy._core.producer.results.accounting cimport (
    accounting_close, accounting_hold, accounting_let_go, accounting_open, accounting_sealed, accounting_settle,
    accounting_wake,
)
from dataproxy._core.producer.results.delivery cimport new_delivery
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.aio.waiter cimport Waiter, new_waiter
from dataproxy._core.plat.clock cimport now_us

__all__ = ["Desk", "answering"]


cdef class Desk(CoreHandle):
    """Make Waiters, and settle them."""

    cdef dict notifiers

    def __cinit__(self):
        accounting_open(&self.engine.accounting)
        self.notifiers = {}

    def __dealloc__(self):
        accounting_close(&self.engine.accounting)
        free(self.engine)

    def open(self, loop):
        """Open a Notifier for an open loop."""
        self.notifiers[loop] = notifier = Notifier(loop)
        notifier.acquire()

    def new(self, loop, bint begun=True):
        """Return a Waiter of a loop, with ``begun`` one that somebody waits for already."""
        cdef Notifier notifier
        cdef PackResult* v = pack_result_new()
        cdef Pack* p = <Pack*>calloc(1, sizeof(Pack))
        if v == NULL or p == NULL:
            raise MemoryError
        if loop not in self.notifiers:
            self.open(loop)
        notifier = self.notifiers[loop]
        p.count = 1
        p.attempts = 1
        p.opened_us = now_us()
        p.pack_result = v
        w = new_waiter(notifier, new_delivery(self, v, 0, None), False)
        accounting_sealed(&self.engine.accounting, p)
        if begun:
            w.begin()
        return w

    def settle(self, Waiter waiter, int outcome, value=None, error=None):
        """Give a result, as an executor does; the loop calls the callbacks in its next turn."""
        cdef Pack* p = self.engine.accounting.oldest
        while p != NULL and p.pack_result != waiter.pack_result:
            p = p.newer
        if p == NULL:
            raise InvalidStateError("it has its result")
        waiter.value = value
        waiter.error = error
        self.enter(p, outcome)
        waiter.notifier.loop.call_soon(waiter.notifier.drain)       # test loops look at no descriptor

    cdef void enter(self, Pack* p, int outcome) noexcept:
        """Enter a result into the accounting and wake who waits for it.  Locality: GIL.  Locks: takes accounting.lock.
        """
        p.outcome = outcome
        pack_enter(p, PK_SETTLED)
        accounting_hold(&self.engine.accounting)
        accounting_settle(&self.engine.accounting, p, now_us())
        accounting_wake(&self.engine.accounting)
        accounting_let_go(&self.engine.accounting)
        free(p)

    def settle_rest(self):
        """Deliver what has no result: the messages of those who do not wait any more."""
        while self.engine.accounting.oldest != NULL:
            self.enter(self.engine.accounting.oldest, OUT_DELIVERED)
        for notifier in self.notifiers.values():
            notifier.drain()

    @property
    def unsettled(self):
        """Return how many Waiters have no result."""
        return self.engine.accounting.in_flight

    @property
    def waiting(self):
        """Return how many packs are waited for in open notifiers."""
        return sum([len((<Notifier>notifier).waits) for notifier in self.notifiers.values()])

    def close(self):
        """Close every notifier; messages without a result get one that is not reported, so that their memory is freed.
        """
        for notifier in self.notifiers.values():
            notifier.close()
        self.notifiers = {}
        while self.engine.accounting.oldest != NULL:
            self.enter(self.engine.accounting.oldest, OUT_DELIVERED)
        accounting_close(&self.engine.accounting)
        memset(&self.engine.accounting, 0, sizeof(self.engine.accounting))
        accounting_open(&self.engine.accounting)


def _set_result(Waiter waiter, result):
    if waiter.done():
        raise InvalidStateError("it is done")
    (<Desk?>waiter.core).settle(waiter, OUT_DELIVERED, value=result)


def _set_exception(Waiter waiter, exception):
    if waiter.done():
        raise InvalidStateError("it is done")
    if isinstance(exception, type):
        exception = exception()
    if isinstance(exception, StopIteration):
        said = "StopIteration interacts badly with generators and cannot be raised into a Future"
        if sys.version_info < (3, 13):
            raise TypeError(said)
        cause, exception = exception, RuntimeError(said)
        exception.__cause__ = exception.__context__ = cause
    (<Desk?>waiter.core).settle(waiter, OUT_FAILED, error=exception)


cdef int _set_in_class(str name, function) except -1:
    """Change the compiled class; only this test program does so."""
    (<dict><PyObject*>(<PyTypeObject*>Waiter).tp_dict)[name] = function
    PyType_Modified(Waiter)
    return 0


@contextmanager
def answering():
    """Let tests give results by the calls that a Waiter otherwise refuses."""
    before = {name: vars(Waiter)[name] for name in ("set_result", "set_exception")}
    _set_in_class("set_result", _set_result)
    _set_in_class("set_exception", _set_exception)
    try:
        yield
    finally:
        _set_in_class("set_result", before["set_result"])
        _set_in_class("set_exception", before["set_exception"])
