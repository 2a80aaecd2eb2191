"""Name table, counts and undo of a store's catalog."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK


cdef int catalog_init(Catalog* c) noexcept nogil:
    """Make an empty catalog.  Locality: owner.  Locks: none."""
    memset(c, 0, sizeof(Catalog))
    c.table_size = 256
    c.table = <NameNode**>calloc(c.table_size, sizeof(NameNode*))
    return ST_OK if c.table != NULL else ST_NO_MEMORY


cdef void catalog_free(Catalog* c) noexcept nogil:
    """Release everything but the ``extra`` pointers.  Locality: owner.  Locks: none."""
    cdef uint64_t i
    cdef NameNode* node
    cdef NameNode* following
    for i in range(c.log_count):
        if c.logs[i] != NULL:       # the number of a log whose first commit failed is never used
            free(c.logs[i].streams)
    for i in range(c.table_size if c.table != NULL else 0):
        node = c.table[i]
        while node != NULL:
            following = node.chain
            free(<void*>node.name.p)
            free(node)
            node = following
    free(c.table)
    free(c.logs)
    memset(c, 0, sizeof(Catalog))


cdef LogStat* catalog_find_log(Catalog* c, Slice topic, uint32_t partition) noexcept nogil:
    """Return the log, or NULL.  Locality: owner.  Locks: none."""
    cdef LogStat* log = c.last_log
    if log != NULL and log.partition == partition and slice_equals(log.node.name, topic):
        return log
    log = <LogStat*>_find(c, partition, topic, _hash(partition, topic))
    if log != NULL:
        c.last_log = log
    return log


cdef StreamStat* catalog_find_stream(Catalog* c, LogStat* log, Slice name) noexcept nogil:
    """Return the stream of this log, or NULL.  Locality: owner.  Locks: none."""
    cdef StreamStat* stream = log.last_stream
    cdef uint64_t owner = (<uint64_t>1 << 32) | log.id
    if stream != NULL and slice_equals(stream.node.name, name):
        return stream
    stream = <StreamStat*>_find(c, owner, name, _hash(owner, name))
    if stream != NULL:
        log.last_stream = stream
    return stream


cdef int catalog_log(Catalog* c, Slice topic, uint32_t partition, LogStat** out) noexcept nogil:
    """Find or make a log.  Locality: owner.  Locks: none."""
    out[0] = catalog_find_log(c, topic, partition)
    if out[0] != NULL:
        return ST_OK
    return catalog_restore_log(c, topic, partition, c.log_count, out)


cdef int catalog_stream(Catalog* c, LogStat* log, Slice name, StreamStat** out) noexcept nogil:
    """Find or make a stream of a log.  Locality: owner.  Locks: none."""
    out[0] = catalog_find_stream(c, log, name)
    if out[0] != NULL:
        return ST_OK
    return catalog_restore_stream(c, log, name, log.stream_count, out)


cdef int catalog_restore_log(Catalog* c, Slice topic, uint32_t partition, uint32_t id, LogStat** out) noexcept nogil:
    """Make a log with a given number.  Locality: owner.  Locks: none."""
    cdef LogStat* log
    if topic.n == 0 or topic.n > CATALOG_NAME_MAX or id >= CATALOG_LOGS_MAX:
        return ST_LIMIT
    if _room(<void***>&c.logs, &c.log_room, id) != ST_OK:
        return ST_NO_MEMORY
    log = <LogStat*>_add(c, partition, topic, sizeof(LogStat))
    if log == NULL:
        return ST_NO_MEMORY
    log.partition = partition
    log.front_ms = -1
    log.id = id
    c.logs[id] = log
    if id >= c.log_count:
        c.log_count = id + 1
    c.last_log = log
    out[0] = log
    return ST_OK


cdef int catalog_restore_stream(Catalog* c, LogStat* log, Slice name, uint32_t id, StreamStat** out) noexcept nogil:
    """Make a stream with a given number.  Locality: owner.  Locks: none."""
    cdef StreamStat* stream
    if name.n > CATALOG_NAME_MAX or id >= CATALOG_STREAMS_MAX or c.stream_count >= CATALOG_STREAMS_MAX:
        return ST_LIMIT
    if _room(<void***>&log.streams, &log.stream_room, id) != ST_OK:
        return ST_NO_MEMORY
    stream = <StreamStat*>_add(c, (<uint64_t>1 << 32) | log.id, name, sizeof(StreamStat))
    if stream == NULL:
        return ST_NO_MEMORY
    stream.log = log
    stream.id = id
    log.streams[id] = stream
    if id >= log.stream_count:
        log.stream_count = id + 1
    c.stream_count += 1
    log.last_stream = stream
    out[0] = stream
    return ST_OK


cdef void catalog_added(Catalog* c, StreamStat* stream, uint32_t records, uint64_t size) noexcept nogil:
    """Count an entry that takes offset ``log.next``.  Locality: owner.  Locks: none."""
    cdef LogStat* log = stream.log
    _touch(c, stream)
    log.next += 1
    _count(&log.now, 1, records, size)
    _count(&stream.now, 1, records, size)
    _count(&c.now, 1, records, size)


cdef void catalog_dropped(Catalog* c, StreamStat* stream, uint32_t records, uint64_t size) noexcept nogil:
    """Count the oldest entry of the log out.  Locality: owner.  Locks: none."""
    cdef LogStat* log = stream.log
    _touch(c, stream)
    log.first += 1
    log.front_ms = -1
    _count(&log.now, -1, -<int64_t>records, -<int64_t>size)
    _count(&stream.now, -1, -<int64_t>records, -<int64_t>size)
    _count(&c.now, -1, -<int64_t>records, -<int64_t>size)


cdef void catalog_keep(Catalog* c) noexcept nogil:
    """Make the present counts the ones to return to.  Locality: owner.  Locks: none."""
    cdef LogStat* log = c.touched_logs
    cdef StreamStat* stream = c.touched_streams
    while log != NULL:
        log.kept = log.now
        log.kept_first = log.first
        log.kept_next = log.next
        log.touched = False
        log = log.next_touched
    while stream != NULL:
        stream.kept = stream.now
        stream.touched = False
        stream = stream.next_touched
    c.kept = c.now
    c.touched_logs = NULL
    c.touched_streams = NULL


cdef void catalog_undo(Catalog* c) noexcept nogil:
    """Return to the counts of the last ``catalog_keep``.  Locality: owner.  Locks: none."""
    cdef LogStat* log = c.touched_logs
    cdef StreamStat* stream = c.touched_streams
    while log != NULL:
        log.now = log.kept
        log.first = log.kept_first
        log.next = log.kept_next
        log.front_ms = -1
        log.touched = False
        log = log.next_touched
    while stream != NULL:
        stream.now = stream.kept
        stream.touched = False
        stream = stream.next_touched
    c.now = c.kept
    c.touched_logs = NULL
    c.touched_streams = NULL


cdef int _room(void*** array, uint32_t* room, uint32_t id) noexcept nogil:
    """Make place for index ``id`` in an array of pointers; new places are NULL.  Locality: owner.  Locks: none."""
    cdef uint32_t wanted = 8 if room[0] == 0 else room[0]
    cdef void** grown
    if id < room[0]:
        return ST_OK
    while wanted <= id:
        wanted *= 2
    grown = <void**>realloc(array[0], wanted * sizeof(void*))
    if grown == NULL:
        return ST_NO_MEMORY
    memset(grown + room[0], 0, (wanted - room[0]) * sizeof(void*))
    array[0] = grown
    room[0] = wanted
    return ST_OK


cdef void _touch(Catalog* c, StreamStat* stream) noexcept nogil:
    """Note that stream and log have changed.  Locality: owner.  Locks: none."""
    cdef LogStat* log = stream.log
    if not log.touched:
        log.touched = True
        log.next_touched = c.touched_logs
        c.touched_logs = log
    if not stream.touched:
        stream.touched = True
        stream.next_touched = c.touched_streams
        c.touched_streams = stream


cdef void _count(Tally* tally, int64_t entries, int64_t records, int64_t size) noexcept nogil:
    """Add to a tally.  Locality: owner.  Locks: none."""
    tally.entries += <uint64_t>entries
    tally.records += <uint64_t>records
    tally.bytes += <uint64_t>size


cdef uint64_t _hash(uint64_t owner, Slice name) noexcept nogil:
    """Return a hash of owner and name (FNV-1a, mixed).  Locality: any thread.  Locks: none."""
    cdef uint64_t h = <uint64_t>0xCBF29CE484222325 ^ owner
    cdef size_t i
    for i in range(name.n):
        h = (h ^ name.p[i]) * <uint64_t>0x100000001B3
    return h ^ (h >> 29)


cdef NameNode* _find(Catalog* c, uint64_t owner, Slice name, uint64_t h) noexcept nogil:
    """Return the node with this owner and name, or NULL.  Locality: owner.  Locks: none."""
    cdef NameNode* node = c.table[h & (c.table_size - 1)]
    while node != NULL:
        if node.hash == h and node.owner == owner and slice_equals(node.name, name):
            return node
        node = node.chain
    return NULL


cdef NameNode* _add(Catalog* c, uint64_t owner, Slice name, size_t size) noexcept nogil:
    """Add a zeroed node of ``size`` bytes with a copy of the name.  Locality: owner.  Locks: none."""
    cdef NameNode* node
    cdef uint8_t* text
    cdef uint64_t slot
    if c.names >= c.table_size:
        _grow(c)
    node = <NameNode*>calloc(1, size)
    text = <uint8_t*>malloc(name.n + 1)
    if node == NULL or text == NULL:
        free(node)
        free(text)
        return NULL
    if name.n:
        memcpy(text, name.p, name.n)
    node.name = slice_of(text, name.n)
    node.owner = owner
    node.hash = _hash(owner, name)
    slot = node.hash & (c.table_size - 1)
    node.chain = c.table[slot]
    c.table[slot] = node
    c.names += 1
    return node


cdef void _grow(Catalog* c) noexcept nogil:
    """Double the table; without memory it stays as it is and chains get longer.  Locality: owner.  Locks: none."""
    cdef uint64_t size = c.table_size * 2
    cdef NameNode** table = <NameNode**>calloc(size, sizeof(NameNode*))
    cdef NameNode* node
    cdef NameNode* following
    cdef uint64_t i
    if table == NULL:
        return
    for i in range(c.table_size):
        node = c.table[i]
        while node != NULL:
            following = node.chain
            node.chain = table[node.hash & (size - 1)]
            table[node.hash & (size - 1)] = node
            node = following
    free(c.table)
    c.table = table
    c.table_size = size
