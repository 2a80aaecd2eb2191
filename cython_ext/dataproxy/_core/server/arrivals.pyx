"""News of entries that have come in.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport uint32_t

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.net.poller cimport wakeup_signal
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load
from dataproxy._core.server.entries cimport ENTRY_MESSAGES


cdef int bucket_of(Slice topic, uint32_t partition) noexcept nogil:
    """Return the bucket of a log."""
    cdef uint32_t digest = 2166136261U ^ partition * 2654435761U
    cdef size_t i
    for i in range(topic.n):
        digest = (digest ^ topic.p[i]) * 16777619U
    return <int>((digest ^ digest >> 15) % BUCKETS)


cdef void arrivals_notice(void* arrivals, const Entry* chain) noexcept nogil:
    """Note entries that were appended, and wake the server loops if a request may wait for one of them.

    The follower is woken if it follows one of their buckets.
    """
    cdef Arrivals* a = <Arrivals*>arrivals
    cdef bint wanted = False
    cdef bint followed = False
    cdef int bucket
    cdef int i
    while chain != NULL:
        if chain.kind == ENTRY_MESSAGES and chain.status == ST_OK:
            bucket = bucket_of(chain.group, chain.partition)
            # In this order: who begins to wait counts itself first, and looks at `arrived` after that.
            atomic_add(&a.arrived[bucket], 1)
            wanted |= atomic_load(&a.watched[bucket]) > 0
            followed |= atomic_load(&a.followed[bucket]) > 0
        chain = chain.next
    if followed and a.follower != NULL:
        a.follower(a.follower_context)
    if not wanted:
        return
    atomic_add(&a.changes, 1)
    for i in range(a.n_loops):
        if atomic_load(&a.waiting[i]) > 0:
            wakeup_signal(a.loops[i])


cdef void arrivals_watch(Arrivals* a, int bucket, int loop, int change) noexcept nogil:
    """Count a request that begins or ends to wait."""
    atomic_add(&a.watched[bucket], change)
    atomic_add(&a.waiting[loop], change)


cdef void arrivals_follow(Arrivals* a, int bucket, int change) noexcept nogil:
    """Count a log that the follower begins or ends to follow."""
    atomic_add(&a.followed[bucket], change)
