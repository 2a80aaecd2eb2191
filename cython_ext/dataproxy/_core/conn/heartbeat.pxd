"""When an idle connection sends a heartbeat, and when silence closes it."""

from libc.stdint cimport int64_t

from dataproxy._core.conn.connection cimport Connection, ConnectionPool


cdef void heartbeat_due(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil
cdef void heartbeat_at(ConnectionPool* pool, Connection* conn, int64_t at_us) noexcept nogil
cdef void connection_silent(ConnectionPool* pool, Connection* conn, int event) noexcept nogil
