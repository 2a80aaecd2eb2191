"""Reading a store: the functions of the durable and the memory store for readers, on any thread."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.store.catalog cimport Tally
from dataproxy._core.server.store.env cimport StoreEnv
from dataproxy._core.plat.lmdb cimport MDB_txn, MDB_val


ctypedef struct ReadRow:    # one entry, or one offset (size 0)
    uint64_t offset
    uint64_t start          # of its value in ReadBatch.data
    uint64_t size


ctypedef struct NameRow:    # one log, or one stream of a log
    uint32_t log
    uint32_t partition
    uint32_t stream         # stream number; logs: 0
    uint32_t topic_size
    uint32_t name_size      # streams: bytes of the name; logs: 0
    uint64_t first
    uint64_t next
    Tally tally
    uint64_t start          # of the topic in ReadBatch.data, the stream name follows it


ctypedef struct NamePlace:  # the stream after which reading continues; names may have been removed or made meanwhile
    uint32_t log
    uint32_t partition
    uint32_t stream
    Slice topic
    Slice name


ctypedef struct ReadBatch:  # filled by one read; reused by the caller
    Buf rows                # ReadRow or NameRow structs
    Buf data
    uint64_t generation     # times that names were given up before the read
    int error               # library or system error behind ST_STORE
    uint64_t damaged        # offset of the entry behind FAULT_CHECKSUM


ctypedef struct ReaderOps:  # all: ST_OK, ST_STORE or ST_NO_MEMORY; any thread; what is unknown gives no rows
    # Entries with an offset of at least `offset`, of one stream or (stream NULL) of all, oldest first; stops
    # after max_entries, or when max_bytes are reached (one entry is always given).
    int (*read)(void* store, Slice topic, uint32_t partition, const Slice* stream, uint64_t offset,
                size_t max_entries, size_t max_bytes, ReadBatch* out) noexcept nogil
    int (*offsets)(void* store, Slice topic, uint32_t partition, Slice stream, uint64_t start, size_t n,
                   ReadBatch* out) noexcept nogil
    # The logs of one topic, which costs what its partitions cost, or (topic NULL) all.
    int (*logs)(void* store, const Slice* topic, ReadBatch* out) noexcept nogil
    # Up to `most` streams behind `after` (NULL: from the first on), in an order of the store's own.
    int (*streams)(void* store, const NamePlace* after, size_t most, ReadBatch* out) noexcept nogil


cdef void batch_init(ReadBatch* batch) noexcept nogil
cdef void batch_free(ReadBatch* batch) noexcept nogil
cdef void batch_clear(ReadBatch* batch) noexcept nogil
cdef int batch_add(ReadBatch* batch, uint64_t offset, const void* p, size_t n) noexcept nogil
cdef int batch_add_name(ReadBatch* batch, NameRow* row, Slice topic, Slice name) noexcept nogil
cdef const ReaderOps* durable_reader() noexcept nogil   # the store argument is a StoreEnv*


ctypedef struct LogKeys:    # what a read of the durable store needs to know of one log
    uint32_t id
    uint64_t first
    uint64_t next
    Tally tally


# 0, MDB_NOTFOUND or an error.
cdef int find_log(StoreEnv* e, MDB_txn* txn, Slice topic, uint32_t partition, LogKeys* out) noexcept nogil
cdef int find_stream(StoreEnv* e, MDB_txn* txn, uint32_t log, Slice name, uint32_t* number) noexcept nogil
cdef bint is_index(const MDB_val* key, uint32_t log, uint32_t stream) noexcept nogil    # a row of this stream's
