"""Awaiting: a Waiter for each await."""

from dataproxy._core.client.bell cimport Bell
from dataproxy._core.client.delivery cimport Delivery


cdef class Waiter:
    cdef Bell bell
    cdef Delivery delivery
    cdef object callback        # the first of them; nearly always a task's wake-up, and the only one
    cdef object context
    cdef list more              # (callback, context)
    cdef object message         # of the cancellation
    cdef object value
    cdef int state
    cdef public bint _asyncio_future_blocking

    cdef int begin(self) except -1
    cdef object outcome(self)
    cdef int wake(self) except -1
    cdef int call(self, object callback, object context) except -1


cdef Waiter new_waiter(Bell bell, Delivery delivery)
