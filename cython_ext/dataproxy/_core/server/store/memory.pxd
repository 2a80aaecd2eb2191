"""The store in memory: bounded; the oldest entries are dropped for new ones.  Operations and reader as on disk.

A ring is a growing queue of 64-bit values with access by position: the places of a stream's entries, or of a log's.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t

from dataproxy._core.server.store.window.dedupe cimport Dedupe
from dataproxy._core.server.entries cimport StoreOps
from dataproxy._core.server.store.catalog cimport Catalog, StreamStat
from dataproxy._core.server.store.clock cimport StoreClock
from dataproxy._core.server.store.txn cimport StoreLimits
from dataproxy._core.plat.thread cimport pthread_mutex_t
from dataproxy._core.server.store.reader cimport ReaderOps
from dataproxy._core.server.store.segments cimport Segment, Segments
from dataproxy._core.server.store.visits cimport Visit


ctypedef struct Ring:
    uint64_t* items
    uint64_t room       # a power of two, or 0
    uint64_t head       # position of the oldest value, counted from the first ever pushed
    uint64_t tail       # position behind the youngest


cdef int ring_reserve(Ring* ring) noexcept nogil     # room for one more value; ST_OK or ST_NO_MEMORY
cdef void ring_push(Ring* ring, uint64_t value) noexcept nogil     # after ring_reserve
cdef void ring_drop(Ring* ring) noexcept nogil


cdef inline uint64_t ring_at(const Ring* ring, uint64_t position) noexcept nogil:
    """Return the value at a position between head and tail.  Locality: as the ring's owner.  Locks: none."""
    return ring.items[position & (ring.room - 1)]


ctypedef struct MemEntry:   # followed by the value
    Segment* segment        # whose memory it is; NULL: an allocation of its own
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
    Segments segments       # of small values; appending thread only
    # Statistics, relaxed atomics.
    int64_t commits
    int64_t failures
    int64_t dropped_entries
    int64_t dropped_records
    int64_t dropped_bytes


cdef int memstore_init(MemStore* store, const StoreLimits* limits) noexcept nogil
cdef void memstore_free(MemStore* store) noexcept nogil
cdef const StoreOps* memstore_ops() noexcept nogil      # the store argument is a MemStore*
cdef const ReaderOps* memory_reader() noexcept nogil    # the store argument is a MemStore*
cdef int visit_memory(void* store, Visit* v) noexcept nogil     # the store argument is a MemStore*
