"""Key queues of one executor: which pack may be sent, and which waits for its predecessor."""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.conn.connection cimport ConnectionPool


cdef bint key_queue_enter(ConnectionPool* pool, Pack* p) noexcept nogil
cdef bint key_queues_advance(ConnectionPool* pool, int64_t now_us) noexcept nogil
cdef void key_queues_abort(ConnectionPool* pool, int code) noexcept nogil
