"""Retention of the durable store: entries by size and age, and names of logs and streams that have no entries."""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.server.store.txn cimport Store


cdef int64_t store_retain(void* store) noexcept nogil
cdef void names_make_room(Store* store, uint64_t wanted) noexcept nogil     # for so many new ones
