"""Standbys: connections that are kept warm, and when one takes the place of an active connection.

A standby is connected, sends heartbeats and takes no frames.  It becomes active when an active connection is lost, when
the proxy of an active connection is out, or when its proxy reports much less load.  The other connection becomes a
standby in its place, so the number of active connections stays; no connection is closed for it.

Everything here happens among the connections to one cluster.

Load: once in SWAP_US the busiest active connection is compared with the least loaded standby.  They swap if the load of
the first is more than that of the second by a quarter and SWAP_LOAD.  At most one pair of a cluster swaps at a time,
and what became active less than DWELL_US ago stays.  Where loads are known, one standby goes on to an unused proxy each
time, so that in the course of time all proxies are compared.

A proxy that is out is left, as soon as its frames have results, if the list has a sound proxy that no connection uses.

Locality: executor.  Locks: none.
"""

from libc.stdio cimport snprintf

from dataproxy._core.base.rand cimport rand_below
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.conn.clusters cimport part_of
from dataproxy._core.conn.connection cimport (
    CE_SWAPPED, CF_CLOSE, CS_ACTIVE, CS_BACKOFF, CS_CONNECTING, LOAD_UNKNOWN, SR_LOAD, SR_LOST, SR_OUT, ClusterPart,
)
from dataproxy._core.conn.balance.places cimport (
    better_endpoint, connection_leave, connection_rest, connection_use, proxy_sound,
)
from dataproxy._core.conn.sendq cimport mark_dirty
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_store

cdef enum:
    LOOK_US = 1000000
    SWAP_US = 30000000          # and up to as much again by chance
    SWAP_LOAD = 5
    DWELL_US = 60000000
    TEXT = 160


cdef bint _ready(const ConnectionPool* pool, const Connection* conn, int64_t now_us) noexcept nogil:
    return (conn.standby and conn.state == CS_ACTIVE and not conn.leaving and conn.endpoint >= 0
            and conn.avoid_until_us <= now_us and proxy_sound(pool, conn.endpoint, now_us))


cdef Connection* _best_standby(
    const ConnectionPool* pool, const ClusterPart* part, bint with_load, int64_t now_us,
) noexcept nogil:
    """Return the standby of a cluster with the least load; NULL: there is none.

    ``with_load``: of those whose load is known.
    """
    cdef Connection* best = NULL
    cdef Connection* conn
    cdef int i
    for i in range(pool.n_connections):
        conn = pool.connections[i]
        if conn.part != part.index or not _ready(pool, conn, now_us) or (
                with_load and conn.counters.load <= LOAD_UNKNOWN):
            continue
        if best == NULL or conn.counters.load < best.counters.load:
            best = conn
    return best


cdef void _swap(
    ConnectionPool* pool, Connection* active, Connection* standby, int reason, int64_t now_us,
) noexcept nogil:
    cdef char text[TEXT]
    cdef int n
    if reason == SR_LOAD:
        n = snprintf(text, sizeof(text), "%s: load %ld against %ld", active.peer.label, active.counters.load,
                     standby.counters.load)
    else:
        n = snprintf(text, sizeof(text), "%s", active.peer.label)
    active.standby = True
    connection_rest(pool, active)
    standby.standby = False
    standby.swapped_us = now_us
    connection_use(pool, standby)
    relaxed_store(&active.counters.standby, 1)
    relaxed_store(&standby.counters.standby, 0)
    relaxed_add(&pool.swaps[reason], 1)
    pool.event(pool.event_context, CE_SWAPPED, standby.peer.label, reason, slice_of(text, <size_t>n))


cdef int _reason(const ConnectionPool* pool, const Connection* conn) noexcept nogil:
    """Return the SwapReason for which an active connection needs a standby; 0: it needs none."""
    if conn.standby or conn.retired or conn.endpoint < 0:
        return 0
    if conn.failures and (conn.state == CS_BACKOFF or conn.state == CS_CONNECTING):
        return SR_LOST
    return SR_OUT if conn.state == CS_ACTIVE and pool.health[conn.endpoint].out else 0


cdef void standbys_fill(ConnectionPool* pool, int64_t now_us) noexcept nogil:
    """Let standbys take the places of active connections that are lost or whose proxies are out."""
    cdef Connection* standby
    cdef int i, reason
    if pool.closing:
        return
    for i in range(pool.n_connections):
        reason = _reason(pool, pool.connections[i])
        if reason and part_of(pool, pool.connections[i]).shape.standbys:
            standby = _best_standby(pool, part_of(pool, pool.connections[i]), False, now_us)
            if standby != NULL:
                _swap(pool, pool.connections[i], standby, reason, now_us)


cdef void _move_on(ConnectionPool* pool) noexcept nogil:
    """Close the connections that are to leave and have no frames; let those leave whose proxies are out."""
    cdef Connection* conn
    cdef int i
    for i in range(pool.n_connections):
        conn = pool.connections[i]
        if conn.state != CS_ACTIVE or conn.endpoint < 0:
            continue
        if conn.leaving:
            if conn.queue.head == NULL and conn.flight.head == NULL:
                mark_dirty(pool, conn, CF_CLOSE)
        elif pool.health[conn.endpoint].out and better_endpoint(pool, conn):
            connection_leave(pool, conn)


cdef Connection* _busiest(const ClusterPart* part, int64_t now_us) noexcept nogil:
    """Return the active connection to a cluster with the highest load.

    NULL if no load is known, or if it has just become active.
    """
    cdef Connection* best = NULL
    cdef Connection* conn
    cdef int i
    for i in range(part.n_active):
        conn = part.active[i]
        if conn.counters.load > LOAD_UNKNOWN and (best == NULL or conn.counters.load > best.counters.load):
            best = conn
    if best != NULL and best.swapped_us and now_us - best.swapped_us < DWELL_US:
        return NULL
    return best


cdef void _rotate(ConnectionPool* pool, ClusterPart* part, int64_t now_us) noexcept nogil:
    """Let the next standby whose load is known go on to an unused proxy, if there is one."""
    cdef Connection* conn
    cdef int i, at
    for i in range(pool.n_connections):
        at = (part.turn + i) % pool.n_connections
        conn = pool.connections[at]
        if conn.part == part.index and _ready(pool, conn, now_us) and (
                conn.counters.load > LOAD_UNKNOWN and better_endpoint(pool, conn)):
            part.turn = at + 1
            connection_leave(pool, conn)
            return


cdef void _compare_loads(ConnectionPool* pool, ClusterPart* part, int64_t now_us) noexcept nogil:
    cdef Connection* standby = _best_standby(pool, part, True, now_us)
    cdef Connection* active = _busiest(part, now_us) if standby != NULL else NULL
    if active == NULL:
        return
    if 4 * active.counters.load <= 5 * standby.counters.load + 4 * SWAP_LOAD:
        _rotate(pool, part, now_us)
        return
    _swap(pool, active, standby, SR_LOAD, now_us)
    if better_endpoint(pool, active):
        connection_leave(pool, active)


cdef void standbys_look(ConnectionPool* pool, int64_t now_us) noexcept nogil:
    """Move connections and compare loads, if it is time."""
    cdef ClusterPart* part
    cdef int i
    if now_us < pool.look_at_us:
        return
    pool.look_at_us = now_us + LOOK_US
    _move_on(pool)
    for i in range(pool.lists.n_parts):
        part = &pool.lists.parts[i]
        if now_us >= part.swap_at_us:
            if part.swap_at_us and part.shape.standbys:
                _compare_loads(pool, part, now_us)
            part.swap_at_us = now_us + SWAP_US + <int64_t>rand_below(&pool.random, SWAP_US)
