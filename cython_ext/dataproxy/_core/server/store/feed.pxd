"""Entries made from Python objects, appended directly or through a committer (tests and tools)."""

from libc.stddef cimport size_t

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.server.committer cimport Committer
from dataproxy._core.server.entries cimport Entry


cdef Entry* feed_chain(object entries, unsigned int partition, unsigned int records, long long data_time_ms,
                       long long receive_ms, bytes source, const HashKey* window_key, size_t room) except NULL
cdef list feed_results(Entry* chain)     # releases the chain
cdef Entry* feed_through(Committer* committer, Entry* chain) noexcept nogil
cdef void feed_done(void* origin, Entry* chain) noexcept nogil      # an EntryDone
