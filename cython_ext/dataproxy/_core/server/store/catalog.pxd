"""Logs and streams of a store with their counts, as the appending thread keeps them in memory.

Changes since the last ``catalog_keep`` can be undone (``catalog_undo``) if a commit fails.  No reader has seen an
offset of a failed commit, so it is used again.

Logs and streams without entries can be removed when room for names is needed.  Offsets are not used again after that:
a log that is made later begins at ``floor``, which is not below the next offset of any removed log.

Locks: none.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.base.slice cimport Slice


cdef enum CatalogLimit:
    CATALOG_NAME_MAX = 255          # bytes of a topic or stream name
    CATALOG_LOGS_MAX = 1 << 16
    CATALOG_STREAMS_MAX = 1 << 20   # over all logs
    NAME_OVERHEAD = 256             # what a name takes beside its bytes: its row, its node
    NAMES_FREE = 64 << 10           # bytes of names that do not count


ctypedef struct Tally:
    uint64_t entries
    uint64_t records
    uint64_t bytes


ctypedef struct NameNode:       # first member of everything in the name table
    NameNode* chain
    uint64_t hash
    uint64_t owner              # logs: the partition; streams: 1 << 32 | log id
    Slice name                  # owned
    bint marked                 # about to be given up


ctypedef struct LogStat:
    NameNode node               # name: the topic
    LogStat* next_touched
    bint touched
    uint32_t partition
    uint32_t id
    uint64_t first              # oldest offset that is kept
    uint64_t next               # offset of the next entry; never goes back
    uint64_t kept_first
    uint64_t kept_next
    Tally now
    Tally kept
    int64_t front_ms            # the store's own time at the oldest entry, -1 while unknown
    StreamStat** streams        # by stream number
    uint32_t stream_count
    uint32_t stream_room
    uint32_t used_streams
    uint32_t free_from          # no number before it is free
    StreamStat* last_stream     # the stream found last
    bint recount                # its counts, and those of its streams, are to be taken anew
    void* extra                 # of the store


ctypedef struct StreamStat:
    NameNode node
    StreamStat* next_touched
    bint touched
    LogStat* log
    uint32_t id
    Tally now
    Tally kept
    bint recount                # its counts are to be taken anew
    void* extra                 # of the store


ctypedef struct Catalog:
    NameNode** table
    uint64_t table_size         # a power of two
    uint64_t names
    uint64_t name_bytes         # of all names, with NAME_OVERHEAD each
    uint64_t name_limit         # most of them; 0 = none
    HashKey key                 # nobody outside knows which names share a chain
    uint64_t floor              # first offset of a log that is made
    uint64_t generation         # changes when names are given up: their numbers may stand for others then
    uint32_t used_logs
    uint32_t free_from          # no log number before it is free
    LogStat** logs              # by log id; NULL where a number is unused
    uint32_t log_count
    uint32_t log_room
    uint32_t last_partition     # the highest that any log ever had
    uint32_t stream_count       # over all logs
    LogStat* last_log           # the log found last
    LogStat* touched_logs
    StreamStat* touched_streams
    Tally now                   # totals
    Tally kept


cdef int catalog_init(Catalog* c) noexcept nogil
cdef void catalog_free(Catalog* c) noexcept nogil
# Find, or make when it is missing: ST_OK, ST_LIMIT (name or number of names) or ST_NO_MEMORY.
cdef int catalog_log(Catalog* c, Slice topic, uint32_t partition, LogStat** out) noexcept nogil
cdef int catalog_stream(Catalog* c, LogStat* log, Slice name, StreamStat** out) noexcept nogil
# The same with the number that was given before.  A number may be missing: its log's first commit failed.
cdef int catalog_restore_log(Catalog* c, Slice topic, uint32_t partition, uint32_t id, LogStat** out) noexcept nogil
cdef int catalog_restore_stream(Catalog* c, LogStat* log, Slice name, uint32_t id, StreamStat** out) noexcept nogil
cdef LogStat* catalog_find_log(Catalog* c, Slice topic, uint32_t partition) noexcept nogil
cdef StreamStat* catalog_find_stream(Catalog* c, LogStat* log, Slice name) noexcept nogil
# The topic's log in the first partition from `partition` on, or NULL.
cdef LogStat* catalog_next_log(Catalog* c, Slice topic, uint64_t partition) noexcept nogil
cdef void catalog_added(Catalog* c, StreamStat* stream, uint32_t records, uint64_t size) noexcept nogil
cdef void catalog_dropped(Catalog* c, StreamStat* stream, uint32_t records, uint64_t size) noexcept nogil
cdef void catalog_lost(Catalog* c, LogStat* log, StreamStat* stream, uint64_t size) noexcept nogil
# What was found of a stream; after the last stream of a log that was counted, the log's sum.
cdef void catalog_counted_anew(Catalog* c, StreamStat* stream, const Tally* found) noexcept nogil
cdef void catalog_sum(Catalog* c, LogStat* log) noexcept nogil
# Whether `names` new ones may not fit.
cdef bint catalog_is_crowded(const Catalog* c, uint64_t names) noexcept nogil
# Mark up to `most` logs and streams that have no entries, and count them; then give up what is marked, or do not.
# Nothing may have changed since the last `catalog_keep`.
cdef uint32_t catalog_mark(Catalog* c, uint32_t most) noexcept nogil
cdef void catalog_give_up(Catalog* c) noexcept nogil
cdef void catalog_unmark(Catalog* c) noexcept nogil
cdef void catalog_keep(Catalog* c) noexcept nogil
cdef void catalog_undo(Catalog* c) noexcept nogil


cdef inline uint64_t catalog_name_limit(uint64_t max_bytes) noexcept nogil:
    """Return the most bytes of names in a store with a limit, 0 for none.  Locality: any thread."""
    return max_bytes // 2 + NAMES_FREE if max_bytes else 0


cdef inline uint64_t catalog_counted(const Catalog* c) noexcept nogil:
    """Return the bytes of names that count against a store's limit.  Locality: owner."""
    return c.name_bytes - NAMES_FREE if c.name_bytes > NAMES_FREE else 0


cdef inline bint catalog_takes(Slice topic, Slice stream) noexcept nogil:
    """Tell whether names are within their limits.  Locality: any thread."""
    return 0 < topic.n <= CATALOG_NAME_MAX and stream.n <= CATALOG_NAME_MAX
