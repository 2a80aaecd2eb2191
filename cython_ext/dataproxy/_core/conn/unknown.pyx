"""Packs of streams that servers do not know yet: they wait, and one of them at a time asks.

A server that does not know a group or stream refuses its frames (class RC_LATE).  A group that was just approved is
known to all servers after some 30 seconds.  So such a frame is not at fault, and neither is its server: the refusal
uses up no attempt and no retry budget, and no connection is avoided.  Of all packs of a stream that wait, one is sent
when a pause is over.  The pauses grow.  As soon as one pack is delivered, all others may be sent.

Another executor that has packs of the same stream sees the delivery in ``Unknown``; its packs go when their timers are
due, a pause later at most.

Locality: executor.  Locks: none, but the hook ``ConnectionPool.unknown`` takes some.
"""

from libc.stdint cimport int64_t

from dataproxy._core.base.timers cimport timers_arm
from dataproxy._core.conn.balance.router cimport backoff_us
from dataproxy._core.pack.unknown cimport PROBE_FREE, Unknown
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, atomic_replace, atomic_store

cdef enum:
    FIRST_US = 200000       # span of the first pause at least, so that no option makes it a busy loop
    MOST_US = 5000000       # of later ones at most
    SPREAD_US = 50000       # packs that wait for the same moment do not all wake at once
    DOUBLINGS = 10


cdef int64_t _pause(ConnectionPool* pool, int64_t probes) noexcept nogil:
    """Return a pause in microseconds that grows with the number of probes, at least half of its span."""
    cdef int64_t span = max(<int64_t>FIRST_US, 4 * pool.config.retry_backoff_us) << min(probes, <int64_t>DOUBLINGS)
    span = min(span, <int64_t>MOST_US)
    return span // 2 + backoff_us(1, span // 2, span // 2, &pool.random)


cdef void _enter(ConnectionPool* pool, Pack* p, const char* label, int code, int64_t now_us) noexcept nogil:
    """Note the first refusal of ``p``, and tell the layer above when it is the only pack of its stream that waits."""
    cdef Unknown* u = p.unknown
    p.unknown_us = now_us if now_us else 1
    p.tied = True
    if not p.unknown_counted:
        p.unknown_counted = True
        atomic_add(pool.unknown_bytes, <int64_t>p.charge)
    if atomic_add(&u.packs, 1) == 1 and pool.unknown != NULL:
        pool.unknown(pool.event_context, p.stream, label, code)


cdef bint unknown_waits(ConnectionPool* pool, Pack* p, const char* label, int code, int64_t now_us) noexcept nogil:
    """Tell whether ``p``, just refused for its stream's name by the server ``label``, waits for another attempt."""
    cdef Unknown* u = p.unknown
    cdef int64_t probe
    if pool.config.unknown_us <= 0 or u == NULL:
        return False
    if p.unknown_us == 0:
        _enter(pool, p, label, code, now_us)
    elif unknown_over(pool, p, now_us):
        return False
    p.unknown_n += 1
    p.unknown_waits = True
    probe = atomic_load(&u.probe_us)
    if probe <= now_us:
        atomic_replace(&u.probe_us, probe, now_us + _pause(pool, atomic_add(&u.probes, 1) - 1))
    return True


cdef int64_t unknown_pause(ConnectionPool* pool, const Pack* p, int64_t now_us) noexcept nogil:
    """Return how long ``p`` waits before it asks for its turn, in microseconds."""
    cdef int64_t wait = atomic_load(&p.unknown.probe_us) - now_us
    wait = max(wait, <int64_t>0) + backoff_us(1, SPREAD_US, SPREAD_US, &pool.random)
    return min(wait, max(<int64_t>0, p.unknown_us + pool.config.unknown_us - now_us))


cdef int64_t unknown_turn(ConnectionPool* pool, Pack* p, int64_t now_us) noexcept nogil:
    """Return 0 if ``p``, whose wait is over, may be sent now, otherwise how long it waits again (microseconds)."""
    cdef Unknown* u = p.unknown
    cdef int64_t probe = atomic_load(&u.probe_us)
    if probe != PROBE_FREE:
        if now_us < probe or not atomic_replace(
                &u.probe_us, probe, now_us + _pause(pool, atomic_add(&u.probes, 1) - 1)):
            return max(<int64_t>1, unknown_pause(pool, p, now_us))
    p.unknown_waits = False
    return 0


cdef void _known(ConnectionPool* pool, Unknown* u) noexcept nogil:
    """Let all packs of a stream be sent: a server has taken one."""
    cdef Pack* p = pool.backoff.head
    if atomic_load(&u.probe_us) == PROBE_FREE:
        return
    atomic_store(&u.probe_us, PROBE_FREE)
    atomic_store(&u.probes, 0)
    while p != NULL:
        if p.unknown_waits and p.unknown == u:
            timers_arm(&pool.timers, &p.timer, 0)
        p = p.next


cdef void unknown_leave(ConnectionPool* pool, Pack* p, bint delivered) noexcept nogil:
    """Take ``p``, which gets its result now, out of the counts of what waits for unknown streams."""
    cdef Unknown* u = p.unknown
    if p.unknown_counted:
        p.unknown_counted = False
        atomic_add(pool.unknown_bytes, -<int64_t>p.charge)
        dp_assert(atomic_load(pool.unknown_bytes) >= 0, "unknown_bytes >= 0: %ld, charge=%zu",
                  atomic_load(pool.unknown_bytes), p.charge)
    if delivered and u != NULL:
        _known(pool, u)
    if p.unknown_us != 0:
        p.unknown_us = 0
        p.unknown_waits = False
        if atomic_add(&u.packs, -1) == 0 and pool.unknown != NULL:
            pool.unknown(pool.event_context, p.stream, NULL, 0)
