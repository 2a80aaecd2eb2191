"""The store in memory: bounded; the oldest entries are dropped for new ones.  Operations and reader as on disk."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t

from dataproxy._core.hub.dedupe cimport Dedupe
from dataproxy._core.hub.entry cimport StoreOps
from dataproxy._core.hub.storecatalog cimport Catalog, StreamStat
from dataproxy._core.hub.storeclock cimport StoreClock
from dataproxy._core.hub.storetxn cimport StoreLimits
from dataproxy._core.plat.thread cimport pthread_mutex_t


ctypedef struct MemEntry:   # followed by the value
    MemEntry* next          # the next younger one of all logs
    MemEntry* before        # the next older one
    StreamStat* stream
    uint64_t offset
    int64_t stored_ms       # by the store's own clock
    uint32_t records
    size_t size


ctypedef struct MemStore:
    StoreLimits limits      # max_bytes: memory of entries, the oldest are dropped beyond it
    Dedupe* dedupe          # the de-duplication window, NULL without one; appending thread only
    StoreClock clock        # appending thread only
    int64_t names_after_ms  # no look for names to give up before this time; appending thread only
    pthread_mutex_t mutex   # guards all below; the GIL is never taken while it is held
    Catalog catalog
    MemEntry* head          # oldest
    MemEntry* tail
    uint64_t held_bytes
    # Statistics, relaxed atomics.
    int64_t commits
    int64_t failures
    int64_t dropped_entries
    int64_t dropped_records
    int64_t dropped_bytes


cdef int memstore_init(MemStore* store, const StoreLimits* limits) noexcept nogil
cdef void memstore_free(MemStore* store) noexcept nogil
cdef const StoreOps* memstore_ops() noexcept nogil      # the store argument is a MemStore*
