"""The sending calls of asyncio: they make the plain calls and return what can be awaited."""

from libc.stdint cimport uint32_t

from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.ingest.stream cimport Stream
from dataproxy._core.producer.aio.notifier cimport Notifier


cdef class AsyncCore:
    cdef object target          # the Producer inside; None until it is open; GIL
    cdef CoreHandle core        # the same object, as its C type
    cdef object target_send     # its bound send
    cdef Notifier notifier              # of the loop that sent last
    cdef readonly dict _notifiers       # id of a loop -> its Notifier, held open by this producer
    cdef readonly int _queueing     # tasks that wait for room: later ones wait behind them
    cdef uint32_t generation    # of the process that made it
    cdef bint ended             # no loop is used any more: the producer is closed

    cdef Notifier here(self)
    cdef Notifier ready(self)


cdef class AsyncStream:
    cdef AsyncCore producer
    cdef Stream plain
    cdef object plain_send
