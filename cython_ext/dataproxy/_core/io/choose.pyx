"""Choice of a link for a frame.

Two candidates, the next in turn and a random one, and the cheaper wins: this keeps the choice constant in
time and within a small factor of the best ("the power of two choices", Mitzenmacher 2001).  The cost is
what waits or is unanswered there, in bytes, scaled by the proxy's load when both loads are known.
"""

from libc.stdint cimport int64_t

from dataproxy._core.base.rand cimport rand_below
from dataproxy._core.io.link cimport Link, LinkPool
from dataproxy._core.io.load cimport LOAD_UNKNOWN

cdef enum:
    IDLE_COST = 4096        # so that load decides between idle links
    LOAD_CAP = 1000


cdef int64_t link_cost(const Link* link, bint with_load) noexcept nogil:
    """Return what one more frame on ``link`` costs; smaller is better.  Locality: executor.  Locks: none."""
    cdef int64_t waits = link.queue_bytes + link.flight_bytes + IDLE_COST
    cdef int64_t load = 0
    if with_load:
        load = link.counters.load if link.counters.load < LOAD_CAP else LOAD_CAP
    return waits * (100 + load)


cdef Link* _unavoided(LinkPool* pool, int64_t now_us) noexcept nogil:
    cdef Link* best = NULL
    cdef Link* link
    cdef int i
    for i in range(pool.n_active):
        link = pool.active[i]
        if best == NULL or link.avoid_until_us < best.avoid_until_us:
            best = link
    return best


cdef Link* choose_link(LinkPool* pool, int64_t now_us) noexcept nogil:
    """Return the link for the next frame, or NULL when none is active.  Locality: executor.  Locks: none."""
    cdef Link* a
    cdef Link* b
    cdef bint with_load
    if pool.n_active == 0:
        return NULL
    a = pool.active[pool.cursor % <unsigned int>pool.n_active]
    pool.cursor += 1
    if pool.n_active > 1:
        b = pool.active[rand_below(&pool.random, <unsigned long>pool.n_active)]
        with_load = a.counters.load > LOAD_UNKNOWN and b.counters.load > LOAD_UNKNOWN
        if a.avoid_until_us > now_us or (
            b.avoid_until_us <= now_us and link_cost(b, with_load) < link_cost(a, with_load)
        ):
            a = b
    if a.avoid_until_us > now_us:
        a = _unavoided(pool, now_us)
    return a
