"""Awaiting: a Waiter for each await."""

from libc.stdint cimport uint32_t

from dataproxy._core.base.pack cimport Verdict
from dataproxy._core.client.bell cimport Bell
from dataproxy._core.client.delivery cimport Delivery
from dataproxy._core.client.handle cimport CoreHandle


cdef class Waiter:
    cdef Bell bell
    cdef readonly object _loop  # the bell's, where asyncio looks for it
    cdef CoreHandle core
    cdef Verdict* verdict       # holds a reference
    cdef uint32_t index
    cdef object own_id          # the caller's message_id, else None
    cdef object callback        # the first of them; nearly always a task's wake-up, and the only one
    cdef object context
    cdef list more              # (callback, context)
    cdef object message         # of the cancellation
    cdef object value
    cdef int state
    cdef public bint _asyncio_future_blocking

    cdef int begin(self) except -1
    cdef Delivery delivery(self)
    cdef object outcome(self)
    cdef int wake(self) except -1
    cdef int call(self, object callback, object context) except -1


cdef Waiter new_waiter(Bell bell, Delivery delivery, bint keep)
