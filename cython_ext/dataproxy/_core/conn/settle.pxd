"""Final results: the only place where a pack leaves a connection pool."""

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.conn.connection cimport ConnectionPool


cdef void detach(ConnectionPool* pool, Pack* p) noexcept nogil
cdef void settle_delivered(ConnectionPool* pool, Pack* p) noexcept nogil
cdef void settle_sent(ConnectionPool* pool, Pack* p) noexcept nogil
cdef void settle_failed(ConnectionPool* pool, Pack* p, int outcome, int code) noexcept nogil
cdef void settle_split(ConnectionPool* pool, Pack* p) noexcept nogil
cdef void settle_dropped(ConnectionPool* pool, Pack* p) noexcept nogil
