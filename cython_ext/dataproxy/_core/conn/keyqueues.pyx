"""Order within a key queue: a pack is sent only after the result of its predecessor is final.

A frozen proxy may store a frame long after the frame was sent again to another proxy.  So the next pack is not sent
after an ack timeout or a lost connection, but only after a result.  This gives the order: the first copy of a
delivered pack is stored, then its ack comes, then the first byte of the next pack is written.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t

from dataproxy._core.pack.keyqueue cimport KeyQueue
from dataproxy._core.pack.pack cimport OUT_FAILED, PK_HELD, Pack, list_push, pack_enter
from dataproxy._core.conn.connection cimport ConnectionPool
from dataproxy._core.conn.retry cimport retry_expired, route
from dataproxy._core.conn.settle cimport detach, settle_failed
from dataproxy._core.plat.assertion cimport dp_assert


cdef bint key_queue_enter(ConnectionPool* pool, Pack* p) noexcept nogil:
    """Tell whether ``p``, which is in no list, may be sent at once; else it is put into the key queue's ``held`` list.
    """
    cdef KeyQueue* key_queue = <KeyQueue*>p.key_queue
    if key_queue.active == NULL and key_queue.held.head == NULL:
        key_queue.active = p
        return True
    dp_assert(key_queue.active != p, "a pack enters its key queue once: seq=%u", p.seq)
    pack_enter(p, PK_HELD)
    list_push(&key_queue.held, p)
    return False


cdef KeyQueue* _take_freed(ConnectionPool* pool) noexcept nogil:
    cdef KeyQueue* key_queue = pool.freed
    if key_queue != NULL:
        pool.freed = key_queue.next_freed
        key_queue.next_freed = NULL
        key_queue.freed = False
    return key_queue


cdef bint key_queues_advance(ConnectionPool* pool, int64_t now_us) noexcept nogil:
    """Send the next pack of every key queue that has no pack on its way; False if there was no such key queue."""
    cdef KeyQueue* key_queue = _take_freed(pool)
    cdef Pack* p
    cdef bint any = key_queue != NULL
    while key_queue != NULL:
        while key_queue.active == NULL and key_queue.held.head != NULL:
            p = key_queue.held.head
            if now_us >= p.deadline_us:
                retry_expired(pool, p)
            else:
                detach(pool, p)
                key_queue.active = p
                route(pool, p, now_us)
        key_queue = _take_freed(pool)
    return any


cdef void key_queues_abort(ConnectionPool* pool, int code) noexcept nogil:
    """Fail all held packs; no other pack has an unknown outcome any more."""
    cdef KeyQueue* key_queue = _take_freed(pool)
    while key_queue != NULL:
        while key_queue.held.head != NULL:
            settle_failed(pool, key_queue.held.head, OUT_FAILED, code)
        key_queue = _take_freed(pool)
