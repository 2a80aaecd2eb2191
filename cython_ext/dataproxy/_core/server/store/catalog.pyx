"""Name table, counts and undo of a store's catalog.

Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.siphash cimport hash_bytes, hash_key
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.endian cimport store_be64
from dataproxy._core.plat.random cimport getrandom


cdef int catalog_init(Catalog* c) noexcept nogil:
    """Make an empty catalog.  Locality: owner."""
    cdef uint8_t key[16]
    memset(c, 0, sizeof(Catalog))
    if getrandom(key, sizeof(key), 0) != sizeof(key):
        return ST_NO_MEMORY
    c.key = hash_key(key)
    c.table_size = 256
    c.table = <NameNode**>calloc(c.table_size, sizeof(NameNode*))
    return ST_OK if c.table != NULL else ST_NO_MEMORY


cdef void catalog_free(Catalog* c) noexcept nogil:
    """Release everything but the ``extra`` pointers.  Locality: owner."""
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
    """Return the log, or NULL.  Locality: owner."""
    cdef LogStat* log = c.last_log
    if log != NULL and log.partition == partition and slice_equals(log.node.name, topic):
        return log
    log = <LogStat*>_find(c, partition, topic, _hash(c, partition, topic))
    if log != NULL:
        c.last_log = log
    return log


cdef LogStat* catalog_next_log(Catalog* c, Slice topic, uint64_t partition) noexcept nogil:
    """Return a topic's log in the first partition from one on, or NULL.

    Partitions are tried one by one.  That is faster than reading all logs, unless partition numbers have large gaps.
    Locality: owner.
    """
    cdef LogStat* found = NULL
    cdef LogStat* log
    cdef uint32_t i
    if c.last_partition <= c.log_count:
        while found == NULL and partition <= c.last_partition:
            found = catalog_find_log(c, topic, <uint32_t>partition)
            partition += 1
        return found
    for i in range(c.log_count):
        log = c.logs[i]
        if log != NULL and log.partition >= partition and slice_equals(log.node.name, topic) and (
                found == NULL or log.partition < found.partition):
            found = log
    return found


cdef StreamStat* catalog_find_stream(Catalog* c, LogStat* log, Slice name) noexcept nogil:
    """Return the stream of this log, or NULL.  Locality: owner."""
    cdef StreamStat* stream = log.last_stream
    cdef uint64_t owner = (<uint64_t>1 << 32) | log.id
    if stream != NULL and slice_equals(stream.node.name, name):
        return stream
    stream = <StreamStat*>_find(c, owner, name, _hash(c, owner, name))
    if stream != NULL:
        log.last_stream = stream
    return stream


cdef int catalog_log(Catalog* c, Slice topic, uint32_t partition, LogStat** out) noexcept nogil:
    """Find or make a log.  Locality: owner."""
    cdef int status
    out[0] = catalog_find_log(c, topic, partition)
    if out[0] != NULL:
        return ST_OK
    if _is_over(c, topic):
        return ST_LIMIT
    status = catalog_restore_log(
        c, topic, partition, _free_number(<void**>c.logs, c.log_count, c.used_logs, &c.free_from), out)
    if status == ST_OK:
        out[0].first = out[0].next = out[0].kept_first = out[0].kept_next = c.floor
    return status


cdef int catalog_stream(Catalog* c, LogStat* log, Slice name, StreamStat** out) noexcept nogil:
    """Find or make a stream of a log.  Locality: owner."""
    out[0] = catalog_find_stream(c, log, name)
    if out[0] != NULL:
        return ST_OK
    if _is_over(c, name):
        return ST_LIMIT
    return catalog_restore_stream(
        c, log, name, _free_number(<void**>log.streams, log.stream_count, log.used_streams, &log.free_from), out)


cdef int catalog_restore_log(Catalog* c, Slice topic, uint32_t partition, uint32_t id, LogStat** out) noexcept nogil:
    """Make a log with a given number.  Locality: owner."""
    cdef LogStat* log
    if topic.n == 0 or topic.n > CATALOG_NAME_MAX or id >= CATALOG_LOGS_MAX:
        return ST_LIMIT
    if _room(<void***>&c.logs, &c.log_room, id) != ST_OK:
        return ST_NO_MEMORY
    log = <LogStat*>_add(c, partition, topic, sizeof(LogStat))
    if log == NULL:
        return ST_NO_MEMORY
    log.partition = partition
    if c.last_partition < partition:
        c.last_partition = partition
    log.front_ms = -1
    log.id = id
    c.logs[id] = log
    c.used_logs += 1
    if id >= c.log_count:
        c.log_count = id + 1
    c.last_log = log
    out[0] = log
    return ST_OK


cdef int catalog_restore_stream(Catalog* c, LogStat* log, Slice name, uint32_t id, StreamStat** out) noexcept nogil:
    """Make a stream with a given number.  Locality: owner."""
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
    log.used_streams += 1
    if id >= log.stream_count:
        log.stream_count = id + 1
    c.stream_count += 1
    log.last_stream = stream
    out[0] = stream
    return ST_OK


cdef void catalog_added(Catalog* c, StreamStat* stream, uint32_t records, uint64_t size) noexcept nogil:
    """Count an entry that takes offset ``log.next``.  Locality: owner."""
    cdef LogStat* log = stream.log
    _touch(c, stream)
    log.next += 1
    _count(&log.now, 1, records, size)
    _count(&stream.now, 1, records, size)
    _count(&c.now, 1, records, size)


cdef void catalog_dropped(Catalog* c, StreamStat* stream, uint32_t records, uint64_t size) noexcept nogil:
    """Count the oldest entry of the log out.  Locality: owner."""
    cdef LogStat* log = stream.log
    _touch(c, stream)
    log.first += 1
    log.front_ms = -1
    _count(&log.now, -1, -<int64_t>records, -<int64_t>size)
    _count(&stream.now, -1, -<int64_t>records, -<int64_t>size)
    _count(&c.now, -1, -<int64_t>records, -<int64_t>size)


cdef void catalog_lost(Catalog* c, LogStat* log, StreamStat* stream, uint64_t size) noexcept nogil:
    """Remove the oldest entry of the log, which cannot be read, from the counts; they must be counted again later.

    ``stream`` NULL: its stream is not known.
    Locality: owner.
    """
    if stream != NULL:
        catalog_dropped(c, stream, 0, size)
        stream.recount = True
        return
    log.first += 1
    log.front_ms = -1
    log.recount = True
    _touch_log(c, log)
    _count(&log.now, -1, 0, -<int64_t>size)
    _count(&c.now, -1, 0, -<int64_t>size)


cdef void catalog_counted_anew(Catalog* c, StreamStat* stream, const Tally* found) noexcept nogil:
    """Set the counts of a stream; those of its log follow by ``catalog_sum``.  Locality: owner."""
    _touch(c, stream)
    stream.now = found[0]


cdef void catalog_sum(Catalog* c, LogStat* log) noexcept nogil:
    """Set the counts of a log to those of its streams.  Locality: owner."""
    cdef Tally before = log.now
    cdef uint32_t i
    log.now.entries = log.now.records = log.now.bytes = 0
    for i in range(log.stream_count):
        if log.streams[i] != NULL:
            _count(&log.now, <int64_t>log.streams[i].now.entries, <int64_t>log.streams[i].now.records,
                   <int64_t>log.streams[i].now.bytes)
    _count(&c.now, <int64_t>(log.now.entries - before.entries), <int64_t>(log.now.records - before.records),
           <int64_t>(log.now.bytes - before.bytes))


cdef bint catalog_is_crowded(const Catalog* c, uint64_t names) noexcept nogil:
    """Tell whether so many new names may not fit.  Locality: owner."""
    return (c.used_logs + names > CATALOG_LOGS_MAX or c.stream_count + names > CATALOG_STREAMS_MAX
            or (c.name_limit and c.name_bytes + 2 * names * (NAME_OVERHEAD + CATALOG_NAME_MAX) > c.name_limit))


cdef uint32_t catalog_mark(Catalog* c, uint32_t most) noexcept nogil:
    """Mark names without entries, a log with all its streams.  Locality: owner."""
    cdef LogStat* log
    cdef uint32_t n = 0
    cdef uint32_t i
    cdef uint32_t k
    for i in range(c.log_count):
        log = c.logs[i]
        if log == NULL or n >= most:
            continue
        log.node.marked = log.now.entries == 0
        n += log.node.marked
        for k in range(log.stream_count):
            if log.streams[k] != NULL and (log.node.marked or (n < most and log.streams[k].now.entries == 0)):
                log.streams[k].node.marked = True
                n += 1
    return n


cdef void catalog_give_up(Catalog* c) noexcept nogil:
    """Release every marked name but its ``extra``.  Locality: owner."""
    cdef LogStat* log
    cdef uint32_t i
    cdef uint32_t k
    c.generation += 1
    c.last_log = NULL
    c.free_from = 0
    for i in range(c.log_count):
        log = c.logs[i]
        if log == NULL:
            continue
        log.last_stream = NULL
        log.free_from = 0
        for k in range(log.stream_count):
            if log.streams[k] != NULL and log.streams[k].node.marked:
                _remove(c, &log.streams[k].node)
                log.streams[k] = NULL
                log.used_streams -= 1
                c.stream_count -= 1
        if log.node.marked:
            if log.next > c.floor:
                c.floor = log.next
            free(log.streams)
            _remove(c, &log.node)
            c.logs[i] = NULL
            c.used_logs -= 1


cdef void catalog_unmark(Catalog* c) noexcept nogil:
    """Keep every name after all.  Locality: owner."""
    cdef LogStat* log
    cdef uint32_t i
    cdef uint32_t k
    for i in range(c.log_count):
        log = c.logs[i]
        if log == NULL:
            continue
        log.node.marked = False
        for k in range(log.stream_count):
            if log.streams[k] != NULL:
                log.streams[k].node.marked = False


cdef void catalog_keep(Catalog* c) noexcept nogil:
    """Make the current counts those that ``catalog_undo`` restores.  Locality: owner."""
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
    """Return to the counts of the last ``catalog_keep``.  Locality: owner."""
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
    """Make place for index ``id`` in an array of pointers; new places are NULL.  Locality: owner."""
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


cdef void _touch_log(Catalog* c, LogStat* log) noexcept nogil:
    """Note that a log has changed.  Locality: owner."""
    if not log.touched:
        log.touched = True
        log.next_touched = c.touched_logs
        c.touched_logs = log


cdef bint _is_over(const Catalog* c, Slice name) noexcept nogil:
    """Tell whether a new name is beyond the limit of their bytes.  Locality: owner."""
    return c.name_limit != 0 and c.name_bytes + NAME_OVERHEAD + name.n > c.name_limit


cdef uint32_t _free_number(void** array, uint32_t count, uint32_t used, uint32_t* start) noexcept nogil:
    """Return a number that nothing has: one that was given up, else the next.  Locality: owner."""
    if used == count:
        return count
    while start[0] < count and array[start[0]] != NULL:
        start[0] += 1
    return start[0]


cdef void _touch(Catalog* c, StreamStat* stream) noexcept nogil:
    """Note that stream and log have changed.  Locality: owner."""
    _touch_log(c, stream.log)
    if not stream.touched:
        stream.touched = True
        stream.next_touched = c.touched_streams
        c.touched_streams = stream


cdef void _count(Tally* tally, int64_t entries, int64_t records, int64_t size) noexcept nogil:
    """Add to a tally.  Locality: owner."""
    tally.entries += <uint64_t>entries
    tally.records += <uint64_t>records
    tally.bytes += <uint64_t>size


cdef uint64_t _hash(const Catalog* c, uint64_t owner, Slice name) noexcept nogil:
    """Return a keyed hash of owner and name.  Locality: any thread."""
    cdef uint8_t text[8 + CATALOG_NAME_MAX]
    cdef size_t n = name.n if name.n <= CATALOG_NAME_MAX else CATALOG_NAME_MAX
    store_be64(text, owner)
    if n:
        memcpy(text + 8, name.p, n)
    return hash_bytes(&c.key, text, 8 + n).first


cdef NameNode* _find(Catalog* c, uint64_t owner, Slice name, uint64_t h) noexcept nogil:
    """Return the node with this owner and name, or NULL.  Locality: owner."""
    cdef NameNode* node = c.table[h & (c.table_size - 1)]
    while node != NULL:
        if node.hash == h and node.owner == owner and slice_equals(node.name, name):
            return node
        node = node.chain
    return NULL


cdef NameNode* _add(Catalog* c, uint64_t owner, Slice name, size_t size) noexcept nogil:
    """Add a zeroed node of ``size`` bytes with a copy of the name.  Locality: owner."""
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
    node.hash = _hash(c, owner, name)
    slot = node.hash & (c.table_size - 1)
    node.chain = c.table[slot]
    c.table[slot] = node
    c.names += 1
    c.name_bytes += NAME_OVERHEAD + name.n
    return node


cdef void _remove(Catalog* c, NameNode* node) noexcept nogil:
    """Take a node out of the table and release it.  Locality: owner."""
    cdef NameNode** place = &c.table[node.hash & (c.table_size - 1)]
    while place[0] != node:
        place = &place[0].chain
    place[0] = node.chain
    c.names -= 1
    c.name_bytes -= NAME_OVERHEAD + node.name.n
    free(<void*>node.name.p)
    free(node)


cdef void _grow(Catalog* c) noexcept nogil:
    """Double the table; without memory it stays as it is and chains get longer.  Locality: owner."""
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
