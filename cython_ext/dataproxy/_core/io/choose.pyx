"""Choice of a link for a frame.

There are two candidates: the next link in turn and a random one.  The cheaper of the two is chosen.  This takes
constant time, and the result is within a small factor of the best link ("the power of two choices", Mitzenmacher
2001).  The cost of a link is the number of bytes that wait or are unanswered there.  It is scaled by the proxy's
load if both loads are known.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.base.rand cimport rand_below
from dataproxy._core.io.doubt cimport avoided_until
from dataproxy._core.io.link cimport Link, LinkPool
from dataproxy._core.io.load cimport LOAD_UNKNOWN

cdef enum:
    IDLE_COST = 4096        # so that load decides between idle links
    LOAD_CAP = 1000


cdef int64_t link_cost(const Link* link, bint with_load) noexcept nogil:
    """Return what one more frame on ``link`` costs; smaller is better."""
    cdef int64_t waits = link.queue_bytes + link.flight_bytes + IDLE_COST
    cdef int64_t load = 0
    if with_load:
        load = link.counters.load if link.counters.load < LOAD_CAP else LOAD_CAP
    return waits * (100 + load)


cdef bint _cheaper(const Link* a, const Link* b) noexcept nogil:
    cdef bint with_load = a.counters.load > LOAD_UNKNOWN and b.counters.load > LOAD_UNKNOWN
    return link_cost(a, with_load) < link_cost(b, with_load)


cdef Link* _least_avoided(LinkPool* pool, int64_t now_us) noexcept nogil:
    """Return the link whose avoidance ends first; of several, the cheapest."""
    cdef Link* best = NULL
    cdef Link* link
    cdef int64_t least = 0, until
    cdef uint32_t i
    for i in range(<uint32_t>pool.n_active):
        link = pool.active[(pool.cursor + i) % <uint32_t>pool.n_active]     # in turn while they cost the same
        until = avoided_until(pool, link)
        until = until if until > now_us else now_us
        if best == NULL or until < least or until == least and _cheaper(link, best):
            best = link
            least = until
    return best


cdef Link* choose_link(LinkPool* pool, int64_t now_us) noexcept nogil:
    """Return the link for the next frame, or NULL if none is active."""
    cdef Link* a
    cdef Link* b
    if pool.n_active == 0:
        return NULL
    a = pool.active[pool.cursor % <unsigned int>pool.n_active]
    pool.cursor += 1
    if pool.n_active > 1:
        b = pool.active[rand_below(&pool.random, <unsigned long>pool.n_active)]
        if avoided_until(pool, a) > now_us or avoided_until(pool, b) <= now_us and _cheaper(b, a):
            a = b
    if avoided_until(pool, a) > now_us:
        a = _least_avoided(pool, now_us)
    return a
