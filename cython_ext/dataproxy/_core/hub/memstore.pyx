"""Appending to and reading from the store in memory."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_DISK_FULL, ST_NO_MEMORY, ST_OK, ST_STORE
from dataproxy._core.hub.entry cimport Entry, StoreOps
from dataproxy._core.hub.header cimport HEADER_AT_STREAM, HEADER_FIXED
from dataproxy._core.hub.reader cimport NameRow, ReadBatch, ReaderOps, batch_add, batch_add_name, batch_clear
from dataproxy._core.hub.ring cimport Ring, ring_at, ring_drop, ring_push, ring_reserve
from dataproxy._core.hub.storecatalog cimport (
    LogStat,
    StreamStat,
    catalog_added,
    catalog_dropped,
    catalog_find_log,
    catalog_find_stream,
    catalog_free,
    catalog_init,
    catalog_keep,
    catalog_log,
    catalog_stream,
)
from dataproxy._core.plat.atomic cimport relaxed_add
from dataproxy._core.plat.endian cimport store_be32
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)

cdef enum MemStep:
    STEP_APPEND = 128       # entries linked in one hold of the mutex
    STEP_RETAIN = 1024      # entries dropped in one call of retain

cdef StoreOps _ops
_ops.append = _append
_ops.retain = _retain

cdef ReaderOps _reader
_reader.read = _read
_reader.offsets = _offsets
_reader.logs = _logs
_reader.streams = _streams


cdef const StoreOps* memstore_ops() noexcept nogil:
    """Return the operations of the memory store.  Locality: any thread.  Locks: none."""
    return &_ops


cdef const ReaderOps* memory_reader() noexcept nogil:
    """Return the reader of the memory store.  Locality: any thread.  Locks: none."""
    return &_reader


cdef int memstore_init(MemStore* store, const StoreLimits* limits) noexcept nogil:
    """Make an empty store.  Locality: owner.  Locks: none."""
    memset(store, 0, sizeof(MemStore))
    store.limits = limits[0]
    if pthread_mutex_init(&store.mutex, NULL) != 0:
        return ST_NO_MEMORY
    return catalog_init(&store.catalog)


cdef void memstore_free(MemStore* store) noexcept nogil:
    """Release every entry and the catalog.  Locality: owner.  Locks: none."""
    cdef uint32_t i
    cdef uint32_t k
    cdef LogStat* log
    _free_entries(store.head)
    for i in range(store.catalog.log_count):
        log = store.catalog.logs[i]
        for k in range(log.stream_count):
            _free_ring(<Ring*>log.streams[k].extra)
        _free_ring(<Ring*>log.extra)
    catalog_free(&store.catalog)
    pthread_mutex_destroy(&store.mutex)
    memset(store, 0, sizeof(MemStore))


cdef void _append(void* self, Entry* chain) noexcept nogil:
    """Append a chain in steps; copies are made before the mutex is taken.

    Locality: appending thread.
    Locks: takes mutex.
    """
    cdef MemStore* store = <MemStore*>self
    cdef MemEntry* copies[STEP_APPEND]
    cdef MemEntry* dropped
    cdef Entry* first = chain
    cdef Entry* entry
    cdef int n
    cdef int i
    while first != NULL:
        n = 0
        entry = first
        while entry != NULL and n < STEP_APPEND:
            copies[n] = _copy(store, entry)
            n += 1
            entry = entry.next
        pthread_mutex_lock(&store.mutex)
        for i in range(n):
            if copies[i] != NULL:
                copies[i] = _link(store, first, copies[i])
            first = first.next
        dropped = _overflow(store)
        catalog_keep(&store.catalog)
        pthread_mutex_unlock(&store.mutex)
        for i in range(n):
            free(copies[i])         # what could not be linked
        _free_entries(dropped)
    relaxed_add(&store.commits, 1)


cdef MemEntry* _copy(MemStore* store, Entry* entry) noexcept nogil:
    """Return a copy of an entry's value; NULL with the entry's status set when it cannot be kept.

    Locality: appending thread.
    Locks: none.
    """
    cdef MemEntry* copy
    entry.status = ST_STORE
    if entry.value.n < HEADER_FIXED:
        return NULL
    if store.limits.max_bytes and _held(entry.value.n) > store.limits.max_bytes:
        entry.status = ST_DISK_FULL
        relaxed_add(&store.failures, 1)
        return NULL
    copy = <MemEntry*>malloc(sizeof(MemEntry) + entry.value.n)
    if copy == NULL:
        relaxed_add(&store.failures, 1)
        return NULL
    copy.next = NULL
    copy.receive_ms = entry.receive_ms
    copy.records = entry.records
    copy.size = entry.value.n
    memcpy(<uint8_t*>copy + sizeof(MemEntry), entry.value.p, entry.value.n)
    return copy


cdef MemEntry* _link(MemStore* store, Entry* entry, MemEntry* copy) noexcept nogil:
    """Give an entry its offset and link its copy; returns NULL, or the copy when it was refused.

    Locality: appending thread.
    Locks: the caller holds mutex.
    """
    cdef LogStat* log = NULL
    cdef StreamStat* stream = NULL
    if (catalog_log(&store.catalog, entry.group, entry.partition, &log) != ST_OK
            or catalog_stream(&store.catalog, log, entry.stream, &stream) != ST_OK
            or _reserve(&log.extra) != ST_OK or _reserve(&stream.extra) != ST_OK):
        return copy
    copy.stream = stream
    copy.offset = log.next
    store_be32(<uint8_t*>copy + sizeof(MemEntry) + HEADER_AT_STREAM, stream.id)
    ring_push(<Ring*>log.extra, <uint64_t><uintptr_t>copy)
    ring_push(<Ring*>stream.extra, log.next)
    if store.tail == NULL:
        store.head = copy
    else:
        store.tail.next = copy
    store.tail = copy
    store.held_bytes += _held(copy.size)
    entry.offset = log.next
    entry.status = ST_OK
    catalog_added(&store.catalog, stream, copy.records, copy.size)
    return NULL


cdef int64_t _retain(void* self, int64_t now_ms) noexcept nogil:
    """Drop up to one step of what is past the limits; returns the number dropped.

    Locality: appending thread.
    Locks: takes mutex.
    """
    cdef MemStore* store = <MemStore*>self
    cdef MemEntry* first
    cdef MemEntry* last = NULL
    cdef int64_t n = 0
    pthread_mutex_lock(&store.mutex)
    first = store.head
    while n < STEP_RETAIN and _is_past(store, now_ms):
        last = _unlink(store)
        n += 1
    if n:
        last.next = NULL
        catalog_keep(&store.catalog)
    pthread_mutex_unlock(&store.mutex)
    if n:
        _free_entries(first)
    return n


cdef bint _is_past(MemStore* store, int64_t now_ms) noexcept nogil:
    """Tell whether the oldest entry is past a limit.  Locality: appending thread.  Locks: the caller holds mutex."""
    cdef StoreLimits* limits = &store.limits
    if store.head == NULL:
        return False
    if limits.retention_bytes and store.catalog.now.bytes > limits.retention_bytes:
        return True
    return limits.retention_ms != 0 and store.head.receive_ms < now_ms - limits.retention_ms


cdef MemEntry* _overflow(MemStore* store) noexcept nogil:
    """Unlink the oldest entries beyond the limit and return them as a chain.

    Locality: appending thread.
    Locks: the caller holds mutex.
    """
    cdef MemEntry* first = store.head
    cdef MemEntry* last = NULL
    while store.limits.max_bytes and store.held_bytes > store.limits.max_bytes and store.head != NULL:
        last = _unlink(store)
    if last == NULL:
        return NULL
    last.next = NULL
    return first


cdef MemEntry* _unlink(MemStore* store) noexcept nogil:
    """Take the oldest entry out; its ``next`` still leads on.  Locality: appending thread.  Locks: the caller holds mutex."""
    cdef MemEntry* oldest = store.head
    store.head = oldest.next
    if store.head == NULL:
        store.tail = NULL
    store.held_bytes -= _held(oldest.size)
    ring_drop(<Ring*>oldest.stream.log.extra)
    ring_drop(<Ring*>oldest.stream.extra)
    catalog_dropped(&store.catalog, oldest.stream, oldest.records, oldest.size)
    relaxed_add(&store.dropped_entries, 1)
    relaxed_add(&store.dropped_records, oldest.records)
    relaxed_add(&store.dropped_bytes, <int64_t>oldest.size)
    return oldest


cdef int _read(void* self, Slice topic, uint32_t partition, const Slice* stream, uint64_t offset,
               size_t max_entries, size_t max_bytes, ReadBatch* out) noexcept nogil:
    """Read entries.  Locality: any thread.  Locks: takes mutex."""
    cdef MemStore* store = <MemStore*>self
    cdef LogStat* log
    cdef MemEntry* entry
    cdef Ring* ring = NULL
    cdef uint64_t position = 0
    cdef size_t n = 0
    cdef int status = ST_OK
    batch_clear(out)
    pthread_mutex_lock(&store.mutex)
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
    """Read offsets of one stream.  Locality: any thread.  Locks: takes mutex."""
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


cdef int _logs(void* self, ReadBatch* out) noexcept nogil:
    """Read all logs.  Locality: any thread.  Locks: takes mutex."""
    return _names(<MemStore*>self, False, out)


cdef int _streams(void* self, ReadBatch* out) noexcept nogil:
    """Read all streams.  Locality: any thread.  Locks: takes mutex."""
    return _names(<MemStore*>self, True, out)


cdef int _names(MemStore* store, bint streams, ReadBatch* out) noexcept nogil:
    """Read all logs, or all streams of all logs.  Locality: any thread.  Locks: takes mutex."""
    cdef LogStat* log
    cdef NameRow row
    cdef uint32_t i
    cdef uint32_t k
    cdef int status = ST_OK
    batch_clear(out)
    pthread_mutex_lock(&store.mutex)
    for i in range(store.catalog.log_count):
        log = store.catalog.logs[i]
        row.log = i
        row.partition = log.partition
        row.stream = 0
        row.first = log.first
        row.next = log.next
        row.tally = log.now
        if not streams:
            status = batch_add_name(out, &row, log.node.name, slice_of(NULL, 0))
        for k in range(log.stream_count if streams else 0):
            row.stream = k
            row.tally = log.streams[k].now
            status = batch_add_name(out, &row, log.node.name, log.streams[k].node.name)
            if status != ST_OK:
                break
        if status != ST_OK:
            break
    pthread_mutex_unlock(&store.mutex)
    return status


cdef Ring* _stream_ring(MemStore* store, LogStat* log, Slice name) noexcept nogil:
    """Return the offsets of a stream, or NULL.  Locality: any thread.  Locks: the caller holds mutex."""
    cdef StreamStat* stream = catalog_find_stream(&store.catalog, log, name)
    return NULL if stream == NULL else <Ring*>stream.extra


cdef uint64_t _seek(const Ring* ring, uint64_t offset) noexcept nogil:
    """Return the position of the first offset that is not smaller.  Locality: any thread.  Locks: the caller holds mutex."""
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


cdef int _reserve(void** extra) noexcept nogil:
    """Make the ring of a log or stream if need be, with room for one value.

    Locality: appending thread.
    Locks: the caller holds mutex.
    """
    if extra[0] == NULL:
        extra[0] = calloc(1, sizeof(Ring))
        if extra[0] == NULL:
            return ST_NO_MEMORY
    return ring_reserve(<Ring*>extra[0])


cdef uint64_t _held(size_t value_bytes) noexcept nogil:
    """Return the memory of an entry with its places in both rings.  Locality: any thread.  Locks: none."""
    return value_bytes + sizeof(MemEntry) + 2 * sizeof(uint64_t)


cdef void _free_entries(MemEntry* entry) noexcept nogil:
    """Release a chain of entries.  Locality: owner.  Locks: none."""
    cdef MemEntry* following
    while entry != NULL:
        following = entry.next
        free(entry)
        entry = following


cdef void _free_ring(Ring* ring) noexcept nogil:
    """Release a ring made by ``_reserve``.  Locality: owner.  Locks: none."""
    if ring != NULL:
        free(ring.items)
        free(ring)
