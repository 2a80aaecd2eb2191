"""Which connections take frames, and which proxy a connection connects to."""

from libc.stdint cimport int64_t

from dataproxy._core.conn.connection cimport ClusterPart, Connection, ConnectionPool, Endpoint


cdef void connection_use(ConnectionPool* pool, Connection* conn) noexcept nogil
cdef void connection_rest(ConnectionPool* pool, Connection* conn) noexcept nogil
cdef int find_endpoint(const ConnectionPool* pool, const Endpoint* peer) noexcept nogil
cdef bint endpoint_used(const ConnectionPool* pool, int endpoint) noexcept nogil
cdef int pick_endpoint(ConnectionPool* pool, ClusterPart* part, const Connection* conn) noexcept nogil
cdef bint better_endpoint(const ConnectionPool* pool, const Connection* conn) noexcept nogil
cdef int busy_connections(const ConnectionPool* pool, const ClusterPart* part, bint standby) noexcept nogil
cdef void connection_leave(ConnectionPool* pool, Connection* conn) noexcept nogil


cdef inline bint proxy_sound(const ConnectionPool* pool, int endpoint, int64_t now_us) noexcept nogil:
    """Tell whether a proxy of the list is neither out nor doubted.  Locality: executor.  Locks: none."""
    return pool.health[endpoint].out == 0 and pool.health[endpoint].until_us <= now_us
