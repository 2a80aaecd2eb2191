"""The store in memory: appending, making room, and reading (copies under the store's mutex, one batch at a time).

Locks: none, except where a function says otherwise.
"""

from libc.stddef cimport size_t
from libc.stdint cimport SIZE_MAX, int64_t, uint32_t, uint64_t, uint8_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport buf_put
from dataproxy._core.base.status cimport ST_DISK_FULL, ST_LIMIT, ST_NO_MEMORY, ST_OK, ST_STORE
from dataproxy._core.base.clock cimport system_clock
from dataproxy._core.server.store.window.dedupe cimport (
    Dedupe, Rest, dedupe_entry, dedupe_forget, dedupe_keep, dedupe_undo,
)
from dataproxy._core.server.entries cimport ENTRY_MESSAGES, Entry, StoreOps
from dataproxy._core.server.store.header cimport HEADER_FIXED, header_place
from dataproxy._core.server.store.catalog cimport (
    LogStat, StreamStat, catalog_added, catalog_counted, catalog_dropped, catalog_find_log, catalog_find_stream,
    catalog_free, catalog_give_up, catalog_init, catalog_is_crowded, catalog_keep, catalog_log, catalog_mark,
    catalog_name_limit, catalog_next_log, catalog_stream, catalog_takes,
)
from dataproxy._core.server.store.clock cimport storeclock_init, storeclock_now
from dataproxy._core.server.store.txn cimport StoreLimits
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport relaxed_add
from dataproxy._core.plat.bits cimport prefetch
from dataproxy._core.plat.sanitizer cimport UNDER_ASAN
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.server.store.reader cimport (
    NamePlace, NameRow, ReadBatch, ReaderOps, batch_add, batch_add_name, batch_clear,
)
from dataproxy._core.server.store.segments cimport SEGMENT_MOST, Segment, segments_free, segments_give, segments_take
from dataproxy._core.server.store.visits cimport AHEAD, Visit, visit_add

cdef enum MemStep:
    STEP_APPEND = 128       # entries linked in one hold of the mutex
    STEP_RETAIN = 1024      # entries dropped in one call of retain
    STEP_NAMES = 8192       # names given up at once
    AGAIN_MS = 1000         # between two looks for them that found nothing
    STEP_FORGET = 64        # old ids forgotten with each entry, beside as many as it added


ctypedef struct MergedRing:     # a stream of several that are looked at together
    Ring* ring
    uint64_t position


cdef int ring_reserve(Ring* ring) noexcept nogil:
    """Make room for one more value.  Locality: as the ring's owner."""
    cdef uint64_t room = ring.room * 2 if ring.room else 16
    cdef uint64_t* items
    cdef uint64_t i
    if ring.tail - ring.head < ring.room:
        return ST_OK
    items = <uint64_t*>malloc(room * sizeof(uint64_t))
    if items == NULL:
        return ST_NO_MEMORY
    for i in range(ring.head, ring.tail):
        items[i & (room - 1)] = ring.items[i & (ring.room - 1)]
    free(ring.items)
    ring.items = items
    ring.room = room
    return ST_OK


cdef void ring_push(Ring* ring, uint64_t value) noexcept nogil:
    """Add the youngest value; there must be room.  Locality: as the ring's owner."""
    dp_assert(ring.tail - ring.head < ring.room, "there is room in the ring: head=%lu, tail=%lu, room=%lu",
              ring.head, ring.tail, ring.room)
    ring.items[ring.tail & (ring.room - 1)] = value
    ring.tail += 1


cdef void ring_drop(Ring* ring) noexcept nogil:
    """Drop the oldest value; there must be one.  Locality: as the ring's owner."""
    dp_assert(ring.head < ring.tail, "there is a value to drop: head=%lu, tail=%lu", ring.head, ring.tail)
    ring.head += 1


cdef StoreOps _ops
_ops.append = _append
_ops.retain = _retain
_ops.room = sizeof(MemEntry)
_ops.keeps = 0 if UNDER_ASAN else SEGMENT_MOST - sizeof(MemEntry) + 1
_ops.brief = True


cdef const StoreOps* memstore_ops() noexcept nogil:
    """Return the operations of the memory store.  Locality: any thread."""
    return &_ops


cdef int memstore_init(MemStore* store, const StoreLimits* limits) noexcept nogil:
    """Make an empty store.  Locality: owner."""
    memset(store, 0, sizeof(MemStore))
    store.limits = limits[0]
    storeclock_init(&store.clock, system_clock(), NULL)
    if pthread_mutex_init(&store.mutex, NULL) != 0:
        return ST_NO_MEMORY
    if catalog_init(&store.catalog) != ST_OK:
        return ST_NO_MEMORY
    store.catalog.name_limit = catalog_name_limit(limits.max_bytes)
    return ST_OK


cdef void memstore_free(MemStore* store) noexcept nogil:
    """Release every entry and the catalog.  Locality: owner."""
    cdef uint32_t i
    cdef uint32_t k
    cdef LogStat* log
    _free_entries(store, store.head)
    segments_free(&store.segments)
    for i in range(store.catalog.log_count):
        log = store.catalog.logs[i]
        if log == NULL:
            continue
        for k in range(log.stream_count):
            if log.streams[k] != NULL:
                _free_ring(<Ring*>log.streams[k].extra)
        _free_ring(<Ring*>log.extra)
    catalog_free(&store.catalog)
    pthread_mutex_destroy(&store.mutex)
    memset(store, 0, sizeof(MemStore))


cdef void _append(void* self, Entry* chain) noexcept nogil:
    """Append a chain in steps; values are copied before the mutex is taken.

    Locality: appending thread.
    Locks: takes mutex.
    """
    cdef MemStore* store = <MemStore*>self
    cdef MemEntry* copies[STEP_APPEND]
    cdef int64_t now_ms = storeclock_now(&store.clock)
    cdef int step = STEP_APPEND if store.dedupe == NULL else 1      # an entry is judged when the one before is stored
    cdef MemEntry* dropped
    cdef Entry* first = chain
    cdef Entry* entry
    cdef int n
    cdef int i
    while first != NULL:
        n = 0
        entry = first
        while entry != NULL and n < step:
            copies[n] = _copy(store, entry, now_ms)
            n += 1
            entry = entry.next
        pthread_mutex_lock(&store.mutex)
        _make_room(store, <uint64_t>n, now_ms)
        for i in range(n):
            if copies[i] != NULL:
                copies[i] = _place(store, first, copies[i])
            if store.dedupe != NULL:
                _settle_window(store.dedupe, first, now_ms)
            first = first.next
        dropped = _overflow(store)
        catalog_keep(&store.catalog)
        pthread_mutex_unlock(&store.mutex)
        for i in range(n):
            if copies[i] != NULL:
                _free_entry(store, copies[i])   # it could not be linked
        _free_entries(store, dropped)
    relaxed_add(&store.commits, 1)


cdef MemEntry* _copy(MemStore* store, Entry* entry, int64_t now_ms) noexcept nogil:
    """Return an entry's block if it has one, else a copy of its value; NULL, with the status set, if it is refused.

    Locality: appending thread.
    """
    cdef MemEntry* copy
    cdef Rest rest
    entry.status = ST_STORE
    if entry.kind != ENTRY_MESSAGES:
        entry.status = ST_OK        # who keeps positions in memory has this one
        return NULL
    if entry.value.n < HEADER_FIXED:
        return NULL
    if not catalog_takes(entry.group, entry.stream):
        entry.status = ST_LIMIT
        return NULL
    rest.value = entry.value
    rest.records = entry.records
    if store.dedupe != NULL and entry.ids.n:
        if dedupe_entry(store.dedupe, entry, now_ms, &rest) != ST_OK:
            relaxed_add(&store.failures, 1)
            return NULL
        if entry.duplicates and rest.records == 0:
            entry.status = ST_OK
            return NULL
    if store.limits.max_bytes and _held(rest.value.n) > store.limits.max_bytes:
        entry.status = ST_DISK_FULL
        relaxed_add(&store.failures, 1)
        return NULL
    if entry.block != NULL and rest.value.p == entry.value.p:
        copy = <MemEntry*>entry.block
        entry.block = NULL
        entry.value.p = NULL        # the store's from here on
        copy.segment = NULL
    else:
        copy = _entry_new(store, sizeof(MemEntry) + rest.value.n)
        if copy == NULL:
            relaxed_add(&store.failures, 1)
            return NULL
        memcpy(<uint8_t*>copy + sizeof(MemEntry), rest.value.p, rest.value.n)
    copy.next = NULL
    copy.stored_ms = now_ms
    copy.records = rest.records
    copy.size = rest.value.n
    return copy


cdef void _settle_window(Dedupe* d, const Entry* entry, int64_t now_ms) noexcept nogil:
    """Keep an entry's ids if it was taken, and forget a bounded number of old ones.

    Locality: appending thread.
    """
    if entry.status == ST_OK:
        dedupe_forget(d, now_ms, STEP_FORGET)
        dedupe_keep(d)
    else:
        dedupe_undo(d)


cdef MemEntry* _place(MemStore* store, Entry* entry, MemEntry* copy) noexcept nogil:
    """Give an entry its offset and append its copy; returns NULL, or the copy when it was refused.

    Locality: appending thread.
    Locks: the caller holds mutex.
    """
    cdef LogStat* log = NULL
    cdef StreamStat* stream = NULL
    cdef int status = catalog_log(&store.catalog, entry.group, entry.partition, &log)
    if status == ST_OK:
        status = catalog_stream(&store.catalog, log, entry.stream, &stream)
    if status == ST_OK:
        status = _reserve(&log.extra, log.next)
    if status == ST_OK:
        status = _reserve(&stream.extra, 0)
    if status != ST_OK:
        entry.status = ST_LIMIT if status == ST_LIMIT else ST_STORE
        return copy
    copy.stream = stream
    copy.offset = log.next
    header_place(<uint8_t*>copy + sizeof(MemEntry), stream.id, copy.stored_ms)
    ring_push(<Ring*>log.extra, <uint64_t><uintptr_t>copy)
    ring_push(<Ring*>stream.extra, log.next)
    copy.before = store.tail
    if store.tail == NULL:
        store.head = copy
    else:
        store.tail.next = copy
    store.tail = copy
    store.held_bytes += _held(copy.size)
    entry.offset = log.next
    entry.log = log.id
    entry.status = ST_OK
    catalog_added(&store.catalog, stream, copy.records, copy.size)
    return NULL


cdef int64_t _retain(void* self) noexcept nogil:
    """Drop up to one step of entries past the limits; returns the number dropped.

    Locality: appending thread.
    Locks: takes mutex.
    """
    cdef MemStore* store = <MemStore*>self
    cdef int64_t now_ms = storeclock_now(&store.clock)
    cdef MemEntry* dropped = NULL
    cdef MemEntry* front
    cdef LogStat* log
    cdef int64_t n = 0
    cdef uint32_t i
    if store.dedupe != NULL:
        dedupe_forget(store.dedupe, now_ms, STEP_RETAIN)
    if store.limits.retention_bytes == 0 and store.limits.retention_ms == 0:
        return 0
    pthread_mutex_lock(&store.mutex)
    for i in range(store.catalog.log_count):
        log = store.catalog.logs[i]
        while n < STEP_RETAIN and log != NULL and log.now.entries:
            front = <MemEntry*><uintptr_t>ring_at(<Ring*>log.extra, log.first)
            if not _is_past(store, log, front, now_ms):
                break
            _unlink(store, front)
            front.next = dropped
            dropped = front
            n += 1
    catalog_keep(&store.catalog)
    pthread_mutex_unlock(&store.mutex)
    _free_entries(store, dropped)
    return n


cdef bint _is_past(MemStore* store, LogStat* log, MemEntry* front, int64_t now_ms) noexcept nogil:
    """Tell whether a log's oldest entry is past a limit.

    Locality: appending thread.
    Locks: the caller holds mutex.
    """
    cdef StoreLimits* limits = &store.limits
    if limits.retention_bytes and log.now.bytes > limits.retention_bytes:
        return True
    return limits.retention_ms != 0 and front.stored_ms < now_ms - limits.retention_ms


cdef MemEntry* _overflow(MemStore* store) noexcept nogil:
    """Unlink the oldest entries beyond the limit and return them as a chain.

    Locality: appending thread.
    Locks: the caller holds mutex.
    """
    cdef MemEntry* dropped = NULL
    cdef MemEntry* oldest
    while (store.limits.max_bytes and store.held_bytes + catalog_counted(&store.catalog) > store.limits.max_bytes
            and store.head != NULL):
        oldest = store.head
        _unlink(store, oldest)
        oldest.next = dropped
        dropped = oldest
    return dropped


cdef void _unlink(MemStore* store, MemEntry* entry) noexcept nogil:
    """Take the oldest entry of a log out.  Locality: appending thread.  Locks: the caller holds mutex."""
    if entry.before == NULL:
        store.head = entry.next
    else:
        entry.before.next = entry.next
    if entry.next == NULL:
        store.tail = entry.before
    else:
        entry.next.before = entry.before
    store.held_bytes -= _held(entry.size)
    ring_drop(<Ring*>entry.stream.log.extra)
    ring_drop(<Ring*>entry.stream.extra)
    catalog_dropped(&store.catalog, entry.stream, entry.records, entry.size)
    relaxed_add(&store.dropped_entries, 1)
    relaxed_add(&store.dropped_records, entry.records)
    relaxed_add(&store.dropped_bytes, <int64_t>entry.size)


cdef void _make_room(MemStore* store, uint64_t wanted, int64_t now_ms) noexcept nogil:
    """Give up names without entries if so many new ones may not fit.

    Locality: appending thread.
    Locks: the caller holds mutex.
    """
    cdef LogStat* log
    cdef uint32_t i
    cdef uint32_t k
    if not catalog_is_crowded(&store.catalog, wanted) or now_ms < store.names_after_ms:
        return
    if catalog_mark(&store.catalog, STEP_NAMES) == 0:
        store.names_after_ms = now_ms + AGAIN_MS
        return
    for i in range(store.catalog.log_count):
        log = store.catalog.logs[i]
        if log == NULL:
            continue
        for k in range(log.stream_count):
            if log.streams[k] != NULL and log.streams[k].node.marked:
                _free_ring(<Ring*>log.streams[k].extra)
        if log.node.marked:
            _free_ring(<Ring*>log.extra)
    catalog_give_up(&store.catalog)


cdef int _reserve(void** extra, uint64_t start) noexcept nogil:
    """Make the ring of a log or stream if need be, its first position ``start``, with room for one value.

    Locality: appending thread.
    Locks: the caller holds mutex.
    """
    if extra[0] == NULL:
        extra[0] = calloc(1, sizeof(Ring))
        if extra[0] == NULL:
            return ST_NO_MEMORY
        (<Ring*>extra[0]).head = (<Ring*>extra[0]).tail = start
    return ring_reserve(<Ring*>extra[0])


cdef uint64_t _held(size_t value_bytes) noexcept nogil:
    """Return the memory of an entry with its places in both rings.  Locality: any thread."""
    return value_bytes + sizeof(MemEntry) + 2 * sizeof(uint64_t)


cdef MemEntry* _entry_new(MemStore* store, size_t n) noexcept nogil:
    """Return memory for an entry with its value, ``n`` bytes in all; NULL: there is none.

    With a limit for each log, entries do not go in the order in which they came, and get allocations of their own.
    Locality: appending thread.
    """
    cdef MemEntry* entry
    cdef Segment* segment = NULL
    if n > SEGMENT_MOST or store.limits.retention_bytes or UNDER_ASAN:
        entry = <MemEntry*>malloc(n)
    else:
        entry = <MemEntry*>segments_take(&store.segments, n, &segment)
    if entry != NULL:
        entry.segment = segment
    return entry


cdef void _free_entry(MemStore* store, MemEntry* entry) noexcept nogil:
    """Release an entry.  Locality: appending thread."""
    if entry.segment != NULL:
        segments_give(&store.segments, entry.segment)
    else:
        free(entry)


cdef void _free_entries(MemStore* store, MemEntry* entry) noexcept nogil:
    """Release a chain of entries.  Locality: appending thread."""
    cdef MemEntry* following
    while entry != NULL:
        following = entry.next
        _free_entry(store, entry)
        entry = following


cdef void _free_ring(Ring* ring) noexcept nogil:
    """Release a ring made by ``_reserve``.  Locality: owner."""
    if ring != NULL:
        free(ring.items)
        free(ring)


cdef ReaderOps _reader
_reader.read = _read
_reader.offsets = _offsets
_reader.logs = _logs
_reader.streams = _streams


cdef const ReaderOps* memory_reader() noexcept nogil:
    """Return the reader of the memory store.  Locality: any thread."""
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


cdef int visit_memory(void* self, Visit* v) noexcept nogil:
    """Look at entries of a log.

    Locality: any thread, with a Visit of its own.
    Locks: takes mutex, under which ``place`` and ``take`` are called.
    """
    cdef MemStore* store = <MemStore*>self
    cdef LogStat* log
    cdef int status
    v.seen.n = v.seen_bytes = v.counted = 0
    v.error = 0
    pthread_mutex_lock(&store.mutex)
    log = catalog_find_log(&store.catalog, v.topic, v.partition)
    v.first = v.next = store.catalog.floor
    memset(&v.tally, 0, sizeof(v.tally))
    if log != NULL:
        v.first, v.next, v.tally, v.log = log.first, log.next, log.now, log.id
    v.stop = v.next
    status = v.place(v.context)
    if status == ST_OK and log != NULL:
        status = _gather_some(store, log, v) if v.n_streams else _gather_all(log, v)
    if status == ST_OK:
        status = v.take(v.context)
    pthread_mutex_unlock(&store.mutex)
    return status


cdef int _see(Visit* v, const LogStat* log, uint64_t at) noexcept nogil:
    """Add an entry; where it is one too many, ``v.stop`` becomes its offset.  Locks: the caller holds mutex."""
    cdef MemEntry* entry = <MemEntry*><uintptr_t>ring_at(<Ring*>log.extra, at)
    cdef int status = visit_add(v, at, slice_of(<uint8_t*>entry + sizeof(MemEntry), entry.size),
                                entry.stream.node.name, entry.stream.id)
    if status == ST_LIMIT:
        v.stop = at
        return ST_OK
    return status


cdef int _gather_all(const LogStat* log, Visit* v) noexcept nogil:
    """Add entries of all streams.  Locks: the caller holds mutex."""
    cdef uint64_t at = v.offset
    cdef int status = ST_OK
    while at < log.next and status == ST_OK:
        if at + AHEAD < log.next:
            prefetch(<const void*><uintptr_t>ring_at(<Ring*>log.extra, at + AHEAD))
        status = _see(v, log, at)
        if v.stop == at:
            break
        at += 1
    return status


cdef int _gather_some(MemStore* store, LogStat* log, Visit* v) noexcept nogil:
    """Add entries of some streams, by their offsets.  Locks: the caller holds mutex."""
    cdef MergedRing head
    cdef MergedRing* heads
    cdef MergedRing* least
    cdef uint64_t at = 0
    cdef size_t i, n
    cdef int status = ST_OK
    v.heads.n = 0
    for i in range(v.n_streams):
        head.ring = _stream_ring(store, log, v.streams[i])
        head.position = _seek(head.ring, v.offset)
        if head.ring != NULL and head.position < head.ring.tail and buf_put(
                &v.heads, &head, sizeof(MergedRing)) != ST_OK:
            return ST_NO_MEMORY
    heads = <MergedRing*>v.heads.p
    n = v.heads.n // sizeof(MergedRing)
    while status == ST_OK:
        least = NULL
        for i in range(n):
            if heads[i].position < heads[i].ring.tail and (
                    least == NULL or ring_at(heads[i].ring, heads[i].position) < at):
                least = &heads[i]
                at = ring_at(least.ring, least.position)
        if least == NULL:
            return ST_OK
        status = _see(v, log, at)
        if v.stop == at:
            break
        least.position += 1
    return status
