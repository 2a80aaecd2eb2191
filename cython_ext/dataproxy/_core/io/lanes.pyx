"""Order within a lane: a pack is sent only after the result of its predecessor is final.

A frozen proxy may store a frame long after the frame was sent again to another proxy.  So the next pack is not sent
after an ack timeout or a lost connection, but only after a result.  This gives the order: the first copy of a
delivered pack is stored, then its ack comes, then the first byte of the next pack is written.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t

from dataproxy._core.base.lane cimport Lane
from dataproxy._core.base.pack cimport OUT_FAILED, PK_HELD, Pack, list_push
from dataproxy._core.io.link cimport LinkPool
from dataproxy._core.io.retry cimport retry_expired, route
from dataproxy._core.io.settle cimport detach, settle_failed


cdef bint lane_enter(LinkPool* pool, Pack* p) noexcept nogil:
    """Tell whether ``p``, which is in no list, may be sent at once; else it is put into the lane's ``held`` list."""
    cdef Lane* lane = <Lane*>p.lane
    if lane.active == NULL and lane.held.head == NULL:
        lane.active = p
        return True
    p.state = PK_HELD
    list_push(&lane.held, p)
    return False


cdef Lane* _take_freed(LinkPool* pool) noexcept nogil:
    cdef Lane* lane = pool.freed
    if lane != NULL:
        pool.freed = lane.next_freed
        lane.next_freed = NULL
        lane.freed = False
    return lane


cdef bint lanes_advance(LinkPool* pool, int64_t now_us) noexcept nogil:
    """Send the next pack of every lane that has no pack on its way; False if there was no such lane."""
    cdef Lane* lane = _take_freed(pool)
    cdef Pack* p
    cdef bint any = lane != NULL
    while lane != NULL:
        while lane.active == NULL and lane.held.head != NULL:
            p = lane.held.head
            if now_us >= p.deadline_us:
                retry_expired(pool, p)
            else:
                detach(pool, p)
                lane.active = p
                route(pool, p, now_us)
        lane = _take_freed(pool)
    return any


cdef void lanes_abort(LinkPool* pool, int code) noexcept nogil:
    """Fail all held packs; no other pack has an unknown outcome any more."""
    cdef Lane* lane = _take_freed(pool)
    while lane != NULL:
        while lane.held.head != NULL:
            settle_failed(pool, lane.held.head, OUT_FAILED, code)
        lane = _take_freed(pool)
