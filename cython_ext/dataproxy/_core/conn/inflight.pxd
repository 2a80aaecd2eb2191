"""Frames in flight: every pack that was written at least once and is not settled, by its number; and its attempts."""

from libc.stdint cimport uint32_t

from dataproxy._core.conn.connection cimport InFlight, Connection, ConnectionPool
from dataproxy._core.pack.pack cimport Pack


cdef int inflight_init(InFlight* t) noexcept nogil
cdef void inflight_free(InFlight* t) noexcept nogil
cdef int inflight_put(InFlight* t, Pack* p) noexcept nogil
cdef Pack* inflight_get(const InFlight* t, uint32_t seq) noexcept nogil
cdef void inflight_remove(InFlight* t, uint32_t seq) noexcept nogil
cdef void attempt_made(const ConnectionPool* pool, Pack* p, const Connection* conn) noexcept nogil
cdef bint attempt_open(const Pack* p, const Connection* conn) noexcept nogil
cdef bint attempt_refused(Pack* p, const Connection* conn) noexcept nogil
cdef void attempts_end(Pack* p) noexcept nogil
