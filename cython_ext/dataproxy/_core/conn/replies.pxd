"""Bytes from a proxy -> acks, heartbeat answers and loads."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.conn.connection cimport Connection, ConnectionPool


cdef enum ForeignProtocol:  # what bytes look like that are no reply: the detail of CE_PROTOCOL
    FP_UNKNOWN = 0
    FP_HTTP = 1
    FP_TLS = 2


cdef int foreign_protocol(const ConnectionPool* pool, Slice data) noexcept nogil
cdef int take_bytes(
    ConnectionPool* pool, Connection* conn, const uint8_t* p, size_t n, int64_t now_us, size_t* used,
) noexcept nogil
