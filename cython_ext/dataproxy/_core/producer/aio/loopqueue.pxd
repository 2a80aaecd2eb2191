"""What event loops wait for: waits on packs and on the accounting, and the queue that each loop empties."""

from libc.stdint cimport int64_t

from dataproxy._core.base.forks cimport ForkNode
from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.plat.thread cimport pthread_mutex_t

cdef enum:
    MARK_ROOM = -1              # a wait of the accounting for bytes given back


ctypedef struct LoopQueue:      # of one event loop
    ForkNode fork               # closes fd in a child
    int64_t refs                # atomic: its Notifier, and every wait that may still ring it
    pthread_mutex_t lock
    # Guarded by lock.
    int fd                      # eventfd; -1 once the Notifier is closed
    bint poked                  # readable, or about to be
    LoopWait* first
    LoopWait* last


ctypedef struct LoopWait:       # one loop waits for one pack, or for the accounting
    # Of the result's or the accounting's list, under accounting.lock; then of the queue's, under its lock.
    LoopWait* next
    LoopQueue* queue            # holds a reference
    PackResult* pack_result     # holds a reference; NULL for a wait of the accounting
    int64_t mark                # of the accounting: serial to be settled, or MARK_ROOM
    size_t key                  # under which the loop knows who waits


cdef LoopQueue* loopqueue_new() noexcept nogil
cdef void loopqueue_close(LoopQueue* q) noexcept nogil
cdef void loopqueue_release(LoopQueue* q) noexcept nogil
cdef void loopqueue_poke(LoopQueue* q) noexcept nogil
cdef void loopqueue_put(LoopQueue* q, LoopWait* w) noexcept nogil
cdef LoopWait* loopqueue_take(LoopQueue* q) noexcept nogil

cdef LoopWait* wait_new(LoopQueue* q, PackResult* v, int64_t mark) noexcept nogil
cdef void wait_free(LoopWait* w) noexcept nogil
cdef void waits_ring(LoopWait** list) noexcept nogil
cdef void waits_ring_due(LoopWait** list, int64_t settled_to) noexcept nogil
