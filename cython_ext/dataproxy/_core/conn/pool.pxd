"""A pool of the connections of one executor: their states and timers, without descriptors."""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.conn.connection cimport EventSink, Connection, ConnectionConfig, ConnectionPool, ProxyLists
from dataproxy._core.wire.api cimport WireOps


cdef int connections_open(
    ConnectionPool* pool, const WireOps* wire, const ConnectionConfig* config, EventSink event, void* context,
) noexcept nogil
cdef void connections_free(ConnectionPool* pool) noexcept nogil
cdef int connections_endpoints(ConnectionPool* pool, const ProxyLists* lists, int64_t now_us) noexcept nogil
cdef void connections_submit(ConnectionPool* pool, Pack* p, int64_t now_us) noexcept nogil
cdef void connections_shaking(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil
cdef void connections_connected(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil
cdef void connections_lost(ConnectionPool* pool, Connection* conn, int event, int detail, int64_t now_us) noexcept nogil
cdef void connections_looked(ConnectionPool* pool, Connection* conn, int64_t held, int64_t now_us) noexcept nogil
cdef void connections_expire(ConnectionPool* pool, int64_t now_us) noexcept nogil
cdef void connections_abort(ConnectionPool* pool, int code) noexcept nogil
cdef Connection* connections_take_dirty(ConnectionPool* pool) noexcept nogil
