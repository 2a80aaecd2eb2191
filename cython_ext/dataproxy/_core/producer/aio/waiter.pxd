"""Awaiting: a Waiter for each await."""

from libc.stdint cimport uint32_t

from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.producer.aio.notifier cimport Notifier
from dataproxy._core.producer.results.delivery cimport Delivery
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.plat.calltypes cimport Awaited


cdef class Waiter(Awaited):
    cdef Notifier notifier
    cdef readonly object _loop  # the notifier's, where asyncio looks for it
    cdef CoreHandle core
    cdef PackResult* pack_result  # holds a reference
    cdef uint32_t index
    cdef object own_id          # the caller's message_id, else None
    cdef object callback        # the first of them; nearly always a task's wake-up, and the only one
    cdef object context
    cdef list more              # (callback, context)
    cdef public object _cancel_message
    cdef object value           # the Delivered, once somebody asked
    cdef object error           # the DeliveryError, once somebody asked
    cdef int state
    cdef bint blocking          # an await has yielded it to its task
    cdef bint asked             # for the result: nobody has to be told that it is an error

    cdef int begin(self) except -1
    cdef bint pending(self) except -1
    cdef int block(self) except -1
    cdef int look(self) noexcept
    cdef int check_done(self) except -1
    cdef tuple take_callbacks(self)
    cdef int schedule(self, list callbacks) except -1
    cdef object outcome(self)
    cdef object failure(self)
    cdef int tell_unasked(self) except -1
    cdef int wake(self) except -1
    cdef int call(self, object callback, object context) except -1


cdef Waiter new_waiter(Notifier notifier, Delivery delivery, bint keep)
