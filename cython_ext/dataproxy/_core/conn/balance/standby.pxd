"""Standbys: connections that are kept warm, and when one takes the place of an active connection."""

from libc.stdint cimport int64_t

from dataproxy._core.conn.connection cimport Connection, ConnectionPool


cdef void standbys_fill(ConnectionPool* pool, int64_t now_us) noexcept nogil
cdef void standbys_look(ConnectionPool* pool, int64_t now_us) noexcept nogil
