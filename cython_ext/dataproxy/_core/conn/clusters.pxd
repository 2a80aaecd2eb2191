"""Which connections take frames of which group: proxies come in clusters, and a group's messages go to one of them.

Locality: executor, except where a function says otherwise.  Locks: none.
"""

from dataproxy._core.conn.connection cimport ClusterPart, Connection, ConnectionPool, Endpoint, ProxyLists
from dataproxy._core.pack.pack cimport Pack


cdef inline ClusterPart* part_for(const ConnectionPool* pool, const Pack* p) noexcept nogil:
    """Return the cluster that takes ``p``; NULL while nothing is known of the group."""
    if pool.lists.groups == NULL:
        return pool.lists.parts
    if p.group >= pool.lists.n_groups or pool.lists.groups[p.group] < 0:
        return NULL
    return &pool.lists.parts[pool.lists.groups[p.group]]


cdef inline ClusterPart* part_of(const ConnectionPool* pool, const Connection* conn) noexcept nogil:
    """Return the cluster that has the proxy of ``conn``, which is listed: ``part`` is not negative."""
    return &pool.lists.parts[conn.part]


cdef int part_at(const ConnectionPool* pool, int endpoint) noexcept nogil
cdef bint parts_adopt(const ConnectionPool* pool, ProxyLists* lists) noexcept nogil
cdef bint same_proxy(const Endpoint* a, const Endpoint* b) noexcept nogil
cdef int lists_copy(ProxyLists* to, const ProxyLists* source) noexcept nogil
cdef void lists_free(ProxyLists* lists) noexcept nogil
