"""Order within a lane: a pack is sent when its predecessor's result is final, whatever that took.

A frozen proxy may store a frame long after it was sent again elsewhere, so neither an ack timeout nor a lost
connection lets the next pack go, but a result alone.  Then the first stored copy of a delivered pack is older
than its ack, and that is older than the first byte of the next pack.
"""

from libc.stdint cimport int64_t

from dataproxy._core.base.lane cimport Lane
from dataproxy._core.base.pack cimport OUT_FAILED, PK_HELD, Pack, list_push
from dataproxy._core.io.link cimport LinkPool
from dataproxy._core.io.retry cimport retry_expired, route
from dataproxy._core.io.settle cimport detach, settle_failed


cdef bint lane_enter(LinkPool* pool, Pack* p) noexcept nogil:
    """Tell whether ``p``, which is in no list, may go at once; else it is held.  Locality: executor.  Locks: none."""
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
    """Send the next pack of every lane that has nothing on its way; False when there was none.

    Locality: executor.
    Locks: none.
    """
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
    """Fail what is held; nothing else has an unknown outcome any more.  Locality: executor.  Locks: none."""
    cdef Lane* lane = _take_freed(pool)
    while lane != NULL:
        while lane.held.head != NULL:
            settle_failed(pool, lane.held.head, OUT_FAILED, code)
        lane = _take_freed(pool)
