"""Which connections take frames of which group: proxies come in clusters, and a group's messages go to one of them.

A cluster is a number.  A list of proxies has the endpoints of each cluster side by side (``ClusterPart``), and says for
each group, by the number that the producer gave it, which cluster takes its messages.  A number is never used for
another cluster: where clients have to move, all proxies come back under a new number.  So no connection stays, packs
that wait go to the new ones, and packs that are in flight end where they are.

Locality: executor, except where a function says otherwise.  Locks: none.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset, strcmp

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.conn.connection cimport ONE_WEIGHT, RetryBudget
from dataproxy._core.wire.api cimport Admission


cdef int part_at(const ConnectionPool* pool, int endpoint) noexcept nogil:
    """Return the index of the cluster that has a proxy of the list."""
    cdef int i
    for i in range(pool.lists.n_parts):
        if pool.lists.parts[i].first <= endpoint < pool.lists.parts[i].first + pool.lists.parts[i].n:
            return i
    return -1


cdef ClusterPart* _numbered(const ProxyLists* lists, int cluster) noexcept nogil:
    cdef int i
    for i in range(lists.n_parts):
        if lists.parts[i].cluster == cluster:
            return &lists.parts[i]
    return NULL


cdef int64_t _most_active(const ConnectionPool* pool, const ClusterPart* part) noexcept nogil:
    """Return how many connections may take frames of a cluster: those that it has, and those that it will get."""
    cdef int64_t n = part.shape.connections + part.shape.standbys
    cdef int i
    for i in range(pool.n_connections):
        if pool.connections[i].peer.cluster == part.cluster:
            n += 1
    return n


cdef bint parts_adopt(const ConnectionPool* pool, ProxyLists* lists) noexcept nogil:
    """Make a copy of new lists those of a pool: what clusters share stays; False if there is no memory.

    No connection is active in them yet.  From now on ``groups`` has indexes of parts in place of numbers.
    """
    cdef ClusterPart* part
    cdef ClusterPart* before
    cdef int i
    for i in range(lists.n_parts):
        part = &lists.parts[i]
        part.index = i
        part.active = <Connection**>malloc(<size_t>_most_active(pool, part) * sizeof(Connection*))
        if part.active == NULL:
            return False
        part.n_active = 0
        part.top_weight = ONE_WEIGHT
        before = _numbered(&pool.lists, part.cluster)
        if before == NULL:
            memcpy(&part.budget, &pool.budget, sizeof(RetryBudget))
            part.cursor = pool.cursor
            continue
        part.cursor = before.cursor
        part.peers_us = before.peers_us
        part.swap_at_us = before.swap_at_us
        part.turn = before.turn
        memcpy(&part.budget, &before.budget, sizeof(RetryBudget))
    for i in range(lists.n_groups if lists.groups != NULL else 0):
        part = _numbered(lists, lists.groups[i]) if lists.groups[i] >= 0 else NULL
        lists.groups[i] = part.index if part != NULL else -1
    return True


cdef bint same_proxy(const Endpoint* a, const Endpoint* b) noexcept nogil:
    """Tell whether a connection to the one proxy is a connection to the other; without an id it may be any of them."""
    return a.cluster == b.cluster and (a.node == b.node or a.node == 0 or b.node == 0) and strcmp(a.label, b.label) == 0


cdef int lists_copy(ProxyLists* to, const ProxyLists* source) noexcept nogil:
    """Copy all arrays; ST_OK or ST_NO_MEMORY (``to`` is empty).  Locality: any thread."""
    cdef int i
    memset(to, 0, sizeof(ProxyLists))
    to.n_endpoints = source.n_endpoints
    to.n_parts = source.n_parts
    to.n_groups = source.n_groups
    to.endpoints = <Endpoint*>malloc(<size_t>(source.n_endpoints + 1) * sizeof(Endpoint))
    to.parts = <ClusterPart*>calloc(<size_t>source.n_parts + 1, sizeof(ClusterPart))
    memcpy(&to.admission, &source.admission, sizeof(Admission))
    if source.groups != NULL:
        to.groups = <int*>malloc(<size_t>(source.n_groups + 1) * sizeof(int))
    if source.fixed != NULL:
        to.fixed = <int*>malloc(<size_t>(source.n_groups + 1) * sizeof(int))
    if to.endpoints == NULL or to.parts == NULL or (source.groups != NULL and to.groups == NULL) or (
            source.fixed != NULL and to.fixed == NULL):
        lists_free(to)
        return ST_NO_MEMORY
    memcpy(to.endpoints, source.endpoints, <size_t>source.n_endpoints * sizeof(Endpoint))
    memcpy(to.parts, source.parts, <size_t>source.n_parts * sizeof(ClusterPart))
    for i in range(to.n_parts):
        to.parts[i].active = NULL       # the connections are those of a pool
    if source.groups != NULL:
        memcpy(to.groups, source.groups, <size_t>source.n_groups * sizeof(int))
    if source.fixed != NULL:
        memcpy(to.fixed, source.fixed, <size_t>source.n_groups * sizeof(int))
    return ST_OK


cdef void lists_free(ProxyLists* lists) noexcept nogil:
    """Release all arrays; the lists are empty then.  Locality: any thread."""
    cdef int i
    for i in range(lists.n_parts if lists.parts != NULL else 0):
        free(lists.parts[i].active)
    free(lists.endpoints)
    free(lists.parts)
    free(lists.groups)
    free(lists.fixed)
    memset(lists, 0, sizeof(ProxyLists))
