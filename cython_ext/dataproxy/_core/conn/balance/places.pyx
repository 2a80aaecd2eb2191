"""Which connections take frames, and which proxy a connection connects to.

The proxies of a cluster are in the order of this process (``dataproxy/producer/discovery/proxies.py``); each executor
begins at its own place in it.  So the proxies of a pool are a random part of all, another one in each process and
executor.

Locality: executor.  Locks: none.
"""

from dataproxy._core.conn.connection cimport CF_CLOSE, CS_ACTIVE, CS_IDLE, ONE_WEIGHT
from dataproxy._core.conn.clusters cimport part_of, same_proxy
from dataproxy._core.conn.balance.router cimport weigh_connections
from dataproxy._core.conn.sendq cimport mark_dirty

cdef enum:
    NO_PLACE = 1 << 20


cdef void connection_use(ConnectionPool* pool, Connection* conn) noexcept nogil:
    """Let a connection take frames if it may; does nothing if it does already."""
    cdef ClusterPart* part
    if conn.active_slot < 0 and conn.state == CS_ACTIVE and not (conn.standby or conn.leaving or conn.retired):
        part = part_of(pool, conn)
        conn.active_slot = part.n_active
        conn.weight = ONE_WEIGHT
        part.active[part.n_active] = conn
        part.n_active += 1
        pool.n_active += 1
        weigh_connections(part)


cdef void connection_rest(ConnectionPool* pool, Connection* conn) noexcept nogil:
    """Give a connection no more frames."""
    cdef Connection* last
    cdef ClusterPart* part
    if conn.active_slot >= 0:
        part = part_of(pool, conn)
        part.n_active -= 1
        pool.n_active -= 1
        last = part.active[part.n_active]
        part.active[conn.active_slot] = last
        last.active_slot = conn.active_slot
        conn.active_slot = -1
        weigh_connections(part)


cdef int find_endpoint(const ConnectionPool* pool, const Endpoint* peer) noexcept nogil:
    """Return the place of a proxy in the list, -1 if it is not there."""
    cdef int i
    for i in range(pool.n_endpoints):
        if same_proxy(&pool.endpoints[i], peer):
            return i
    return -1


cdef int _users(const ConnectionPool* pool, int endpoint, const Connection* but, bint active) noexcept nogil:
    """Return how many connections other than ``but`` have a proxy; ``active``: without standbys."""
    cdef const Connection* conn
    cdef int i, n = 0
    for i in range(pool.n_connections):
        conn = pool.connections[i]
        if conn.endpoint == endpoint and conn != but and not (active and conn.standby):
            n += 1
    return n


cdef bint endpoint_used(const ConnectionPool* pool, int endpoint) noexcept nogil:
    """Tell whether a connection has this proxy of the list."""
    return _users(pool, endpoint, NULL, False) > 0


cdef int busy_connections(const ConnectionPool* pool, const ClusterPart* part, bint standby) noexcept nogil:
    """Return how many connections have a proxy of a cluster, standbys or the others."""
    cdef int i, n = 0
    cdef const Connection* conn
    for i in range(pool.n_connections):
        conn = pool.connections[i]
        if conn.part == part.index and conn.state != CS_IDLE and not conn.retired and conn.standby == standby:
            n += 1
    return n


cdef bint _fails(const ConnectionPool* pool, int endpoint) noexcept nogil:
    return pool.health[endpoint].out != 0 or pool.health[endpoint].doubted


cdef int _place_cost(const ConnectionPool* pool, int endpoint, const Connection* conn, bint full) noexcept nogil:
    """Return how little a proxy is wanted for ``conn``: unused ones first, those that fail after other unused ones.

    ``full``: as many proxies are in use as the pool may use.
    """
    if full and _users(pool, endpoint, conn, True) == 0:
        return NO_PLACE
    return 2 * _users(pool, endpoint, conn, False) + _fails(pool, endpoint)


cdef bint _is_full(const ConnectionPool* pool, const ClusterPart* part, const Connection* conn) noexcept nogil:
    """Tell whether the active connections without ``conn`` have as many proxies as they may; failing ones do not count.
    """
    cdef int i, n = 0
    if conn.standby:
        return False
    for i in range(part.first, part.first + part.n):
        if not _fails(pool, i) and _users(pool, i, conn, True) > 0:
            n += 1
    return n >= max(part.shape.proxies, 1)


cdef int pick_endpoint(ConnectionPool* pool, ClusterPart* part, const Connection* conn) noexcept nogil:
    """Return the endpoint of a cluster for the next connect of ``conn``.

    A proxy that no connection uses is preferred, and one that is neither out nor doubted.  Otherwise the connection
    stays with its proxy as long as other connections to the cluster work, so that a proxy that returns is used again.
    If no connection works, it goes on to the next proxy.
    """
    cdef int i, at, best = -1, least = 0, cost
    cdef bint full = _is_full(pool, part, conn)
    for i in range(part.n):
        at = part.first + (part.next + i) % part.n
        if at == conn.endpoint and part.n > 1:
            continue
        cost = _place_cost(pool, at, conn, full)
        if best < 0 or cost < least:
            best = at
            least = cost
    if least > 0 and conn.endpoint >= 0 and part.n_active > 0 and (
            least > 1 or not pool.health[conn.endpoint].out):
        return conn.endpoint
    part.next = (best - part.first + 1) % part.n
    return best


cdef bint better_endpoint(const ConnectionPool* pool, const Connection* conn) noexcept nogil:
    """Tell whether the cluster of ``conn`` has a proxy that no connection uses and that is neither out nor doubted."""
    cdef const ClusterPart* part = part_of(pool, conn)
    cdef int i
    for i in range(part.first, part.first + part.n):
        if i != conn.endpoint and _place_cost(pool, i, conn, False) == 0:
            return True
    return False


cdef void connection_leave(ConnectionPool* pool, Connection* conn) noexcept nogil:
    """Let a connection go to another proxy as soon as its frames have their answers; until then it takes no more."""
    conn.leaving = True
    connection_rest(pool, conn)
    if conn.queue.head == NULL and conn.flight.head == NULL:
        mark_dirty(pool, conn, CF_CLOSE)
