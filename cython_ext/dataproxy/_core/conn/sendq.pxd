"""Send queue of a connection: frames in order, partial writes, heartbeats at frame boundaries."""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.conn.connection cimport Connection, ConnectionPool
from dataproxy._core.plat.socket cimport iovec


cdef void mark_dirty(ConnectionPool* pool, Connection* conn, int flag) noexcept nogil
cdef void sendq_put(ConnectionPool* pool, Connection* conn, Pack* p) noexcept nogil
cdef bint sendq_waits(const ConnectionPool* pool, const Connection* conn) noexcept nogil
cdef void sendq_shake(ConnectionPool* pool, Connection* conn) noexcept nogil
cdef bint sendq_empty(const Connection* conn) noexcept nogil
cdef int sendq_gather(ConnectionPool* pool, Connection* conn, iovec* out, int most, size_t most_bytes) noexcept nogil
cdef void sendq_cut(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil
cdef void sendq_wrote(ConnectionPool* pool, Connection* conn, size_t n, int64_t now_us) noexcept nogil
