"""Logs and streams of a store with their counts, as the appending thread keeps them in memory.

Changes since the last ``catalog_keep`` can be taken back (``catalog_undo``) when a commit fails.  An
offset of a failed commit was never seen by anybody and is given out again.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from dataproxy._core.base.slice cimport Slice


cdef enum CatalogLimit:
    CATALOG_NAME_MAX = 255          # bytes of a topic or stream name
    CATALOG_LOGS_MAX = 1 << 16
    CATALOG_STREAMS_MAX = 1 << 20   # over all logs


ctypedef struct Tally:
    uint64_t entries
    uint64_t records
    uint64_t bytes


ctypedef struct NameNode:       # first member of everything in the name table
    NameNode* chain
    uint64_t hash
    uint64_t owner              # logs: the partition; streams: 1 << 32 | log id
    Slice name                  # owned


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
    int64_t front_ms            # receive time of the oldest entry, -1 while unknown
    StreamStat** streams        # by stream number
    uint32_t stream_count
    uint32_t stream_room
    StreamStat* last_stream     # the stream found last
    void* extra                 # of the store


ctypedef struct StreamStat:
    NameNode node
    StreamStat* next_touched
    bint touched
    LogStat* log
    uint32_t id
    Tally now
    Tally kept
    void* extra                 # of the store


ctypedef struct Catalog:
    NameNode** table
    uint64_t table_size         # a power of two
    uint64_t names
    LogStat** logs              # by log id; NULL where a number is unused
    uint32_t log_count
    uint32_t log_room
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
cdef void catalog_added(Catalog* c, StreamStat* stream, uint32_t records, uint64_t size) noexcept nogil
cdef void catalog_dropped(Catalog* c, StreamStat* stream, uint32_t records, uint64_t size) noexcept nogil
cdef void catalog_keep(Catalog* c) noexcept nogil
cdef void catalog_undo(Catalog* c) noexcept nogil


cdef inline bint catalog_takes(Slice topic, Slice stream) noexcept nogil:
    """Tell whether names are within their limits.  Locality: any thread.  Locks: none."""
    return 0 < topic.n <= CATALOG_NAME_MAX and stream.n <= CATALOG_NAME_MAX
