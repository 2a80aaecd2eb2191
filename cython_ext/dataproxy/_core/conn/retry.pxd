"""Decisions on a frame after an attempt without success, and the reasons that its result will tell."""

from libc.stdint cimport int64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.conn.connection cimport Connection, ConnectionConfig, ConnectionPool
from dataproxy._core.pack.pack cimport Pack


cdef int retry_class(const ConnectionConfig* config, int code) noexcept nogil
cdef void route(ConnectionPool* pool, Pack* p, int64_t now_us) noexcept nogil
cdef void route_waiting(ConnectionPool* pool, int64_t now_us) noexcept nogil
cdef void node_refused(ConnectionPool* pool, Connection* conn, int kind, int64_t now_us) noexcept nogil
cdef void retry_refused(
    ConnectionPool* pool, Connection* conn, Pack* p, int code, Slice text, int64_t now_us,
) noexcept nogil
cdef void retry_unanswered(ConnectionPool* pool, Pack* p, int code, int64_t now_us) noexcept nogil
cdef void retry_yield(ConnectionPool* pool) noexcept nogil
cdef void retry_expired(ConnectionPool* pool, Pack* p) noexcept nogil
cdef void retry_due(ConnectionPool* pool, Pack* p, int64_t now_us) noexcept nogil
cdef void reason_note(Pack* p, int code, Slice text) noexcept nogil
cdef void reason_note_connection(Connection* conn, int code, Slice text) noexcept nogil
cdef void reason_inherit(ConnectionPool* pool, Pack* p) noexcept nogil
