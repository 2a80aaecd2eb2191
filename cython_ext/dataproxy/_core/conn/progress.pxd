"""Progress of a connection: bytes that the peer's host acknowledges, and answers that come."""

from libc.stdint cimport int64_t

from dataproxy._core.conn.connection cimport Connection, ConnectionConfig, ConnectionPool


cdef int64_t look_every_us(const ConnectionConfig* config) noexcept nogil
cdef void progress_begin(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil
cdef void progress_wrote(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil
cdef void progress_look(ConnectionPool* pool, Connection* conn, int64_t held, int64_t now_us) noexcept nogil
cdef bint progress_stalled(const ConnectionPool* pool, const Connection* conn, int64_t now_us) noexcept nogil
