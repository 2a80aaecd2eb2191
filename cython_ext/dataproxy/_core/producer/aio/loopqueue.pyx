"""Waits of event loops: they move from the accounting to the queues of their loops; no step needs the GIL.

Each queue has a lock of its own.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from dataproxy._core.base.forks cimport forks_unwatch, forks_watch
from dataproxy._core.pack.pack cimport PackResult, pack_result_release
from dataproxy._core.plat.atomic cimport atomic_add
from dataproxy._core.plat.eventfd cimport EFD_CLOEXEC, EFD_NONBLOCK, eventfd, eventfd_read, eventfd_t, eventfd_write
from dataproxy._core.plat.socket cimport close
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)


cdef void _in_child(void* context) noexcept nogil:
    close((<LoopQueue*>context).fd)


cdef LoopQueue* loopqueue_new() noexcept nogil:
    """Return an empty queue with its eventfd, or NULL.  Locality: the loop's thread."""
    cdef LoopQueue* q = <LoopQueue*>calloc(1, sizeof(LoopQueue))
    if q == NULL:
        return NULL
    q.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
    if q.fd < 0:
        free(q)
        return NULL
    q.refs = 1
    pthread_mutex_init(&q.lock, NULL)
    forks_watch(&q.fork, _in_child, q)
    return q


cdef void loopqueue_release(LoopQueue* q) noexcept nogil:
    """Drop one reference.  Locality: any thread.  Locks: the caller holds none that guards ``q``."""
    if atomic_add(&q.refs, -1) == 0:
        pthread_mutex_destroy(&q.lock)
        free(q)


cdef void loopqueue_close(LoopQueue* q) noexcept nogil:
    """Release the descriptor and the queued waits; waits that come later are released at once.

    Locality: the Notifier's owner, once.  Locks: takes lock.
    """
    cdef LoopWait* w
    cdef LoopWait* following
    forks_unwatch(&q.fork)
    pthread_mutex_lock(&q.lock)
    close(q.fd)
    q.fd = -1
    w = q.first
    q.first = NULL
    q.last = NULL
    pthread_mutex_unlock(&q.lock)
    while w != NULL:
        following = w.next
        wait_free(w)
        w = following


cdef void loopqueue_poke(LoopQueue* q) noexcept nogil:
    """Make the eventfd readable, so that the loop reads its queue.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&q.lock)
    if q.fd >= 0 and not q.poked:
        q.poked = True
        eventfd_write(q.fd, 1)
    pthread_mutex_unlock(&q.lock)


cdef LoopWait* loopqueue_take(LoopQueue* q) noexcept nogil:
    """Return everything in the queue, linked by ``next``; the next poke writes again.

    Locality: the loop's thread.  Locks: takes lock.
    """
    cdef eventfd_t value = 0
    cdef LoopWait* w
    pthread_mutex_lock(&q.lock)
    if q.poked:
        eventfd_read(q.fd, &value)
        q.poked = False
    w = q.first
    q.first = NULL
    q.last = NULL
    pthread_mutex_unlock(&q.lock)
    return w


cdef void loopqueue_put(LoopQueue* q, LoopWait* w) noexcept nogil:
    """Queue a wait that has ended and wake its loop.  Locality: any thread.  Locks: takes q.lock."""
    cdef bint taken = False
    w.next = NULL
    atomic_add(&q.refs, 1)          # the loop may free a queued wait at once, and with it the last other reference
    pthread_mutex_lock(&q.lock)
    if q.fd >= 0:
        taken = True
        if q.last == NULL:
            q.first = w
        else:
            q.last.next = w
        q.last = w
        if not q.poked:
            q.poked = True
            eventfd_write(q.fd, 1)
    pthread_mutex_unlock(&q.lock)
    if not taken:
        wait_free(w)
    loopqueue_release(q)


cdef void waits_ring(LoopWait** list) noexcept nogil:
    """Hand every wait of a list to its loop.  Locality: any thread.  Locks: accounting.lock is held; takes the queues'.
    """
    cdef LoopWait* w = list[0]
    cdef LoopWait* following
    list[0] = NULL
    while w != NULL:
        following = w.next
        loopqueue_put(w.queue, w)
        w = following


cdef void waits_ring_due(LoopWait** list, int64_t settled_to) noexcept nogil:
    """Hand over the waits of the accounting that wait for room, or for a serial up to ``settled_to``.

    Locality: any thread.  Locks: accounting.lock is held; takes the queues'.
    """
    cdef LoopWait* w = list[0]
    cdef LoopWait* following
    list[0] = NULL
    while w != NULL:
        following = w.next
        if w.mark <= settled_to:
            loopqueue_put(w.queue, w)
        else:
            w.next = list[0]
            list[0] = w
        w = following


cdef LoopWait* wait_new(LoopQueue* q, PackResult* v, int64_t mark) noexcept nogil:
    """Return a wait that is in no list yet, or NULL.  Locality: the loop's thread."""
    cdef LoopWait* w = <LoopWait*>calloc(1, sizeof(LoopWait))
    if w == NULL:
        return NULL
    atomic_add(&q.refs, 1)
    w.queue = q
    w.pack_result = v
    w.mark = mark
    w.key = <size_t>v if v != NULL else <size_t>w
    if v != NULL:
        atomic_add(&v.refs, 1)
    return w


cdef void wait_free(LoopWait* w) noexcept nogil:
    """Release a wait that is in no list.  Locality: any thread.  Locks: the caller does not hold its queue's."""
    if w.pack_result != NULL:
        pack_result_release(w.pack_result)
    loopqueue_release(w.queue)
    free(w)
