"""Waiters whose results a test gives: the books and the loop's bell are real, there is no engine behind them.

While ``answering`` is in force, ``set_result`` and ``set_exception`` of a Waiter of a Desk do what an answer does, so
that tests written for futures can be run on Waiters.
"""

import sys
from asyncio import InvalidStateError
from contextlib import contextmanager

from cpython.object cimport PyTypeObject
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dataproxy._core.base.pack cimport OUT_DELIVERED, OUT_FAILED, Pack, Verdict, verdict_new
from dataproxy._core.client.bell cimport Bell
from dataproxy._core.client.books cimport books_close, books_open, books_sealed, books_settle, books_wake
from dataproxy._core.client.delivery cimport new_delivery
from dataproxy._core.client.handle cimport CoreHandle
from dataproxy._core.client.waiter cimport Waiter, new_waiter
from dataproxy._core.plat.clock cimport now_us
from dataproxy._core.plat.pytype cimport refuse_blank, set_in_class
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock

__all__ = ["Desk", "answering"]


cdef class Desk(CoreHandle):
    """Make Waiters, and settle them."""

    cdef dict bells

    def __cinit__(self):
        books_open(&self.engine.books)
        self.bells = {}

    def __dealloc__(self):
        books_close(&self.engine.books)
        free(self.engine)

    def open(self, loop):
        """Open a Bell for an open loop."""
        self.bells[loop] = bell = Bell(loop)
        bell.acquire()

    def new(self, loop, bint begun=True):
        """Return a Waiter of a loop, with ``begun`` one that somebody waits for already."""
        cdef Bell bell
        cdef Verdict* v = verdict_new()
        cdef Pack* p = <Pack*>calloc(1, sizeof(Pack))
        if v == NULL or p == NULL:
            raise MemoryError
        if loop not in self.bells:
            self.open(loop)
        bell = self.bells[loop]
        p.count = 1
        p.attempts = 1
        p.opened_us = now_us()
        p.verdict = v
        w = new_waiter(bell, new_delivery(self, v, 0, None), False)
        books_sealed(&self.engine.books, p)
        if begun:
            w.begin()
        return w

    def settle(self, Waiter waiter, int outcome, value=None, error=None):
        """Give a result, as an executor does; the loop calls the callbacks in its next turn."""
        cdef Pack* p = self.engine.books.oldest
        while p != NULL and p.verdict != waiter.verdict:
            p = p.newer
        if p == NULL:
            raise InvalidStateError("it has its result")
        waiter.value = value
        waiter.error = error
        self.enter(p, outcome)
        waiter.bell.loop.call_soon(waiter.bell.drain)       # test loops look at no descriptor

    cdef void enter(self, Pack* p, int outcome) noexcept:
        """Enter a result into the books and wake who waits for it.  Locality: GIL.  Locks: takes books.lock."""
        p.outcome = outcome
        pthread_mutex_lock(&self.engine.books.lock)
        books_settle(&self.engine.books, p, now_us())
        books_wake(&self.engine.books)
        pthread_mutex_unlock(&self.engine.books.lock)
        free(p)

    def settle_rest(self):
        """Deliver what has no result: the messages of those who do not wait any more."""
        while self.engine.books.oldest != NULL:
            self.enter(self.engine.books.oldest, OUT_DELIVERED)
        for bell in self.bells.values():
            bell.drain()

    @property
    def unsettled(self):
        """Return how many Waiters have no result."""
        return self.engine.books.in_flight

    @property
    def waiting(self):
        """Return how many packs are waited for in open bells."""
        return sum([len((<Bell>bell).waits) for bell in self.bells.values()])

    def close(self):
        """Close every bell; messages without a result get one that is not reported, so that their memory is freed."""
        for bell in self.bells.values():
            bell.close()
        self.bells = {}
        while self.engine.books.oldest != NULL:
            self.enter(self.engine.books.oldest, OUT_DELIVERED)
        books_close(&self.engine.books)
        memset(&self.engine.books, 0, sizeof(self.engine.books))
        books_open(&self.engine.books)


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


@contextmanager
def answering():
    """Let tests give results by the calls that a Waiter otherwise refuses."""
    before = {name: vars(Waiter)[name] for name in ("set_result", "set_exception")}
    set_in_class(<PyTypeObject*>Waiter, b"set_result", _set_result)
    set_in_class(<PyTypeObject*>Waiter, b"set_exception", _set_exception)
    try:
        yield
    finally:
        set_in_class(<PyTypeObject*>Waiter, b"set_result", before["set_result"])
        set_in_class(<PyTypeObject*>Waiter, b"set_exception", before["set_exception"])


refuse_blank(<PyTypeObject*>Desk)
