"""Reader of the store in memory: copies under the store's mutex, one batch at a time.

Locality: any thread.  Locks: none, except where a function says otherwise.
"""

from libc.stddef cimport size_t
from libc.stdint cimport SIZE_MAX, uint8_t, uint32_t, uint64_t, uintptr_t

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.hub.memstore cimport MemEntry, MemStore
from dataproxy._core.hub.reader cimport (
    NamePlace,
    NameRow,
    ReadBatch,
    ReaderOps,
    batch_add,
    batch_add_name,
    batch_clear,
)
from dataproxy._core.hub.ring cimport Ring, ring_at
from dataproxy._core.hub.storecatalog cimport (
    LogStat,
    StreamStat,
    catalog_find_log,
    catalog_find_stream,
    catalog_next_log,
)
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock

cdef ReaderOps _reader
_reader.read = _read
_reader.offsets = _offsets
_reader.logs = _logs
_reader.streams = _streams


cdef const ReaderOps* memory_reader() noexcept nogil:
    """Return the reader of the memory store."""
    return &_reader


cdef int _read(void* self, Slice topic, uint32_t partition, const Slice* stream, uint64_t offset,
               size_t max_entries, size_t max_bytes, ReadBatch* out) noexcept nogil:
    """Read entries.  Locks: takes mutex."""
    cdef MemStore* store = <MemStore*>self
    cdef LogStat* log
    cdef MemEntry* entry
    cdef Ring* ring = NULL
    cdef uint64_t position = 0
    cdef size_t n = 0
    cdef int status = ST_OK
    batch_clear(out)
    pthread_mutex_lock(&store.mutex)
    out.generation = store.catalog.generation
    log = catalog_find_log(&store.catalog, topic, partition)
    if log != NULL:
        ring = <Ring*>log.extra
        position = log.first if offset < log.first else offset
        if stream != NULL:
            ring = _stream_ring(store, log, stream[0])
            position = _seek(ring, offset)
    while ring != NULL and position < ring.tail and status == ST_OK and n < max_entries and (
            n == 0 or out.data.n < max_bytes):
        if stream == NULL:
            entry = <MemEntry*><uintptr_t>ring_at(ring, position)
        else:
            entry = <MemEntry*><uintptr_t>ring_at(<Ring*>log.extra, ring_at(ring, position))
        status = batch_add(out, entry.offset, <uint8_t*>entry + sizeof(MemEntry), entry.size)
        position += 1
        n += 1
    pthread_mutex_unlock(&store.mutex)
    return status


cdef int _offsets(void* self, Slice topic, uint32_t partition, Slice stream, uint64_t start, size_t n,
                  ReadBatch* out) noexcept nogil:
    """Read offsets of one stream.  Locks: takes mutex."""
    cdef MemStore* store = <MemStore*>self
    cdef LogStat* log
    cdef Ring* ring = NULL
    cdef uint64_t position
    cdef int status = ST_OK
    batch_clear(out)
    pthread_mutex_lock(&store.mutex)
    log = catalog_find_log(&store.catalog, topic, partition)
    if log != NULL:
        ring = _stream_ring(store, log, stream)
    position = _seek(ring, start)
    while ring != NULL and position < ring.tail and n > 0 and status == ST_OK:
        status = batch_add(out, ring_at(ring, position), NULL, 0)
        position += 1
        n -= 1
    pthread_mutex_unlock(&store.mutex)
    return status


cdef int _logs(void* self, const Slice* topic, ReadBatch* out) noexcept nogil:
    """Read all logs, or those of a topic.  Locks: takes mutex."""
    if topic != NULL:
        return _topic_logs(<MemStore*>self, topic[0], out)
    return _names(<MemStore*>self, False, NULL, SIZE_MAX, out)


cdef int _topic_logs(MemStore* store, Slice topic, ReadBatch* out) noexcept nogil:
    """Read the logs of a topic, by their partitions.  Locks: takes mutex."""
    cdef LogStat* log
    cdef NameRow row
    cdef int status = ST_OK
    batch_clear(out)
    pthread_mutex_lock(&store.mutex)
    out.generation = store.catalog.generation
    log = catalog_next_log(&store.catalog, topic, 0)
    while log != NULL and status == ST_OK:
        _log_row(&row, log)
        status = batch_add_name(out, &row, topic, slice_of(NULL, 0))
        log = catalog_next_log(&store.catalog, topic, <uint64_t>log.partition + 1)
    pthread_mutex_unlock(&store.mutex)
    return status


cdef void _log_row(NameRow* row, const LogStat* log) noexcept nogil:
    """Describe a log.  Locks: the caller holds mutex."""
    row.log = log.id
    row.partition = log.partition
    row.stream = 0
    row.first = log.first
    row.next = log.next
    row.tally = log.now


cdef int _streams(void* self, const NamePlace* after, size_t most, ReadBatch* out) noexcept nogil:
    """Read streams.  Locks: takes mutex."""
    return _names(<MemStore*>self, True, after, most, out)


cdef int _names(MemStore* store, bint streams, const NamePlace* after, size_t most, ReadBatch* out) noexcept nogil:
    """Read all logs, or up to ``most`` streams behind ``after``, by their numbers.

    Locks: takes mutex.
    """
    cdef LogStat* log
    cdef NameRow row
    cdef uint32_t i
    cdef uint32_t k
    cdef uint32_t begin = 0 if after == NULL else after.log
    cdef int status = ST_OK
    batch_clear(out)
    pthread_mutex_lock(&store.mutex)
    out.generation = store.catalog.generation
    for i in range(begin, store.catalog.log_count):
        log = store.catalog.logs[i]
        if log == NULL:
            continue
        _log_row(&row, log)
        if not streams:
            status = batch_add_name(out, &row, log.node.name, slice_of(NULL, 0))
        for k in range(after.stream + 1 if after != NULL and i == begin else 0, log.stream_count if streams else 0):
            if log.streams[k] == NULL:
                continue
            if status != ST_OK or out.rows.n // sizeof(NameRow) >= most:
                break
            row.stream = k
            row.tally = log.streams[k].now
            status = batch_add_name(out, &row, log.node.name, log.streams[k].node.name)
        if status != ST_OK or out.rows.n // sizeof(NameRow) >= most:
            break
    pthread_mutex_unlock(&store.mutex)
    return status


cdef Ring* _stream_ring(MemStore* store, LogStat* log, Slice name) noexcept nogil:
    """Return the offsets of a stream, or NULL.  Locks: the caller holds mutex."""
    cdef StreamStat* stream = catalog_find_stream(&store.catalog, log, name)
    return NULL if stream == NULL else <Ring*>stream.extra


cdef uint64_t _seek(const Ring* ring, uint64_t offset) noexcept nogil:
    """Return the position of the first offset that is not smaller.

    Locks: the caller holds mutex.
    """
    cdef uint64_t low
    cdef uint64_t high
    cdef uint64_t middle
    if ring == NULL:
        return 0
    low = ring.head
    high = ring.tail
    while low < high:
        middle = low + ((high - low) >> 1)
        if ring_at(ring, middle) < offset:
            low = middle + 1
        else:
            high = middle
    return low
