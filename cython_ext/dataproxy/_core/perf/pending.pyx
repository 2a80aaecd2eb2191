"""Hand-over of sent messages from the thread that sends to the thread that collects results; the queue has no lock.

The counts of results are guarded by ``Tally.lock`` ("lock" below).
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

from dataproxy._core.base.hdr cimport hdr_add, hdr_close, hdr_open
from dataproxy._core.pack.pack cimport OUT_MIXED, PackResult, pack_result_release
from dataproxy._core.pack.parts cimport Part, parts_find
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.atomic cimport atomic_load, atomic_store
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)


cdef Block* _block() noexcept nogil:
    cdef Block* block = <Block*>malloc(sizeof(Block))
    if block != NULL:
        block.n = 0
        block.next = NULL
    return block


cdef int pending_open(Pending* q, Tally* t) noexcept nogil:
    """Open an empty queue and empty counts; ST_OK or ST_NO_MEMORY.  Locality: owner."""
    memset(q, 0, sizeof(Pending))
    memset(t, 0, sizeof(Tally))
    pthread_mutex_init(&t.lock, NULL)
    q.newest = q.oldest = _block()
    if hdr_open(&t.whole) != ST_OK or hdr_open(&t.recent) != ST_OK or q.oldest == NULL:
        return ST_NO_MEMORY
    return ST_OK


cdef void pending_close(Pending* q, Tally* t) noexcept nogil:
    """Give back all references and memory.  Locality: the last user."""
    cdef Block* block = q.oldest
    cdef Block* following
    cdef int64_t i
    while block != NULL:
        for i in range(q.taken, block.n):
            pack_result_release(block.items[i].pack_result)
        q.taken = 0
        following = block.next
        free(block)
        block = following
    for i in range(q.n_waiting):
        pack_result_release(q.waiting[i].pack_result)
    free(q.waiting)
    hdr_close(&t.whole)
    hdr_close(&t.recent)
    pthread_mutex_destroy(&t.lock)


cdef int pending_put(Pending* q, PackResult* v, uint32_t index, uint32_t n, int64_t planned_us) noexcept nogil:
    """Note messages that were accepted; ST_OK or ST_NO_MEMORY.  Takes over one reference to ``v``.

    Locality: the sender.
    """
    cdef Block* block = q.newest
    cdef Planned* item = &block.items[block.n]
    item.pack_result = v
    item.planned_us = planned_us
    item.index = index
    item.n = n
    if block.n == BLOCK - 1:
        block.next = _block()
        if block.next == NULL:
            pack_result_release(v)
            return ST_NO_MEMORY
        q.newest = block.next
    atomic_store(&block.n, block.n + 1)
    return ST_OK


cdef inline void _count(Tally* t, int outcome, int64_t n, int64_t latency_us, bint timed) noexcept nogil:
    t.outcomes[outcome] += n
    if timed:
        hdr_add(&t.whole, latency_us, n)
        hdr_add(&t.recent, latency_us, n)


cdef void tally_add(Tally* t, int outcome, int64_t latency_us, bint timed) noexcept nogil:
    """Count one message whose result the caller knows; ``timed`` unless it was dropped on arrival.

    Locality: any thread.  Locks: takes lock.
    """
    pthread_mutex_lock(&t.lock)
    _count(t, outcome, 1, latency_us, timed)
    pthread_mutex_unlock(&t.lock)


cdef void _settle(Tally* t, Planned* item) noexcept nogil:
    """Count messages that have their result, and give the reference back.  Locks: lock is held.

    A message that was dropped on arrival has no time of its result and counts in no percentile.
    """
    cdef PackResult* v = item.pack_result
    cdef const Part* part
    cdef int64_t latency = v.settled_us - item.planned_us
    cdef uint32_t first = item.index, left = item.n, n
    if v.outcome != OUT_MIXED:
        _count(t, v.outcome, item.n, latency, v.settled_us != 0)
    else:
        while left:
            part = parts_find(v.parts, first)
            n = min(left, part.first + part.n - first)
            _count(t, part.outcome, n, latency, True)
            first += n
            left -= n
    pack_result_release(v)


cdef int _keep(Pending* q, const Planned* item) noexcept nogil:
    cdef Planned* grown
    cdef int64_t cap
    if q.n_waiting == q.cap:
        cap = q.cap * 2 if q.cap else BLOCK
        grown = <Planned*>realloc(q.waiting, <size_t>cap * sizeof(Planned))
        if grown == NULL:
            return ST_NO_MEMORY
        q.waiting = grown
        q.cap = cap
    q.waiting[q.n_waiting] = item[0]
    q.n_waiting += 1
    return ST_OK


cdef void _look_again(Pending* q, Tally* t) noexcept nogil:
    """Count the waiting messages that have their result now.  Locks: lock is held.

    Neighbours are mostly in one pack.  Its result, which is elsewhere in memory, is read once.
    """
    cdef int64_t i, kept = 0
    cdef PackResult* asked = NULL
    for i in range(q.n_waiting):
        if q.waiting[i].pack_result == asked or not atomic_load(&q.waiting[i].pack_result.done):
            asked = q.waiting[i].pack_result
            q.waiting[kept] = q.waiting[i]
            kept += 1
        else:
            _settle(t, &q.waiting[i])
    q.n_waiting = kept


cdef int pending_collect(Pending* q, Tally* t) noexcept nogil:
    """Take the messages sent since the last call and count those with a result; ST_OK or ST_NO_MEMORY.

    Locality: one collector at a time.  Locks: takes lock.
    """
    cdef Block* spent
    cdef Planned* item
    cdef int64_t n
    cdef int status = ST_OK
    pthread_mutex_lock(&t.lock)
    _look_again(q, t)
    while status == ST_OK:
        n = atomic_load(&q.oldest.n)
        while q.taken < n and status == ST_OK:
            item = &q.oldest.items[q.taken]
            if atomic_load(&item.pack_result.done):
                _settle(t, item)
            else:
                status = _keep(q, item)
            if status == ST_OK:
                q.taken += 1
        if q.taken < BLOCK or status != ST_OK:
            break
        spent = q.oldest
        q.oldest = spent.next
        q.taken = 0
        free(spent)
    pthread_mutex_unlock(&t.lock)
    return status
