"""One Notifier for each event loop: it wakes the loop's tasks when packs are settled."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.aio.loopqueue cimport LoopQueue, LoopWait

ctypedef int (*WakeFunction)(object waiter) except -1


cdef class Notifier:                # the loop's thread, unless said otherwise
    cdef readonly object loop
    cdef object done            # a future of the loop that has its result, None
    cdef LoopQueue* queue
    cdef bint closed
    cdef uint32_t generation    # of the process that made it
    cdef unsigned long drained_by       # ident of the thread that wakes tasks now, which is the loop's; 0: none
    cdef int64_t users          # producers that keep it open; GIL
    cdef dict waits             # key of a LoopWait -> list of Waiters, or a function
    cdef dict hasty             # CoreHandle -> [(key, list of Waiters)] to be sealed in the loop's next turn
    cdef PackResult* newest        # the pack that somebody waited for last; borrowed from a LoopWait in waits
    cdef list newest_waiters
    cdef LoopWait* taken           # settled waits that were taken from the queue and are not handled yet
    cdef LoopWait* current         # the wait whose waiters are being woken
    cdef list batch
    cdef Py_ssize_t at
    cdef tuple fields            # of the pack of ``current``

    cdef bint inherited(self)
    cdef list waiters_of(self, CoreHandle core, PackResult* v)
    cdef int wake_all(self) except -1
    cdef int next_batch(self) except -1
    cdef void end_batch(self)


cdef Notifier notifier_here()
cdef void set_wake(WakeFunction function)
