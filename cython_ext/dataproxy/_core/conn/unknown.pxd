"""Packs of streams that servers do not know yet."""

from libc.stdint cimport int64_t

from dataproxy._core.conn.connection cimport ConnectionPool
from dataproxy._core.pack.pack cimport Pack


cdef bint unknown_waits(ConnectionPool* pool, Pack* p, const char* label, int code, int64_t now_us) noexcept nogil
cdef int64_t unknown_pause(ConnectionPool* pool, const Pack* p, int64_t now_us) noexcept nogil
cdef int64_t unknown_turn(ConnectionPool* pool, Pack* p, int64_t now_us) noexcept nogil
cdef void unknown_leave(ConnectionPool* pool, Pack* p, bint delivered) noexcept nogil


cdef inline bint unknown_over(const ConnectionPool* pool, const Pack* p, int64_t now_us) noexcept nogil:
    """Tell whether a pack that was refused for its stream's name has waited for long enough.

    Locality: executor.  Locks: none.
    """
    return now_us - p.unknown_us >= pool.config.unknown_us
