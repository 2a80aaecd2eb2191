"""Sequence number -> pack, for every pack that was written at least once and is not settled."""

from libc.stdint cimport uint32_t

from dataproxy._core.base.pack cimport Pack


ctypedef struct InFlight:       # owned by one executor
    Pack** slots                # open addressing, linear probing; NULL is empty
    size_t mask                 # capacity - 1 (a power of two)
    size_t n


cdef int inflight_init(InFlight* t) noexcept nogil
cdef void inflight_free(InFlight* t) noexcept nogil
cdef int inflight_put(InFlight* t, Pack* p) noexcept nogil
cdef Pack* inflight_get(const InFlight* t, uint32_t seq) noexcept nogil
cdef void inflight_remove(InFlight* t, uint32_t seq) noexcept nogil
