"""Dropping what the durable store keeps no longer, a bounded step for each call.

The oldest entries go by size and age.  Where an entry cannot be read, the entries of its stream are counted one by one,
because the counts in the stream's row may be wrong.  Names without entries are given up in a commit of their own,
before that of the entries which want room.

Locality: appending thread.  Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.server.store.header cimport QueueHeader, header_check, header_read
from dataproxy._core.server.store.stages cimport STAGE_DROPPED, stage_passed
from dataproxy._core.server.store.catalog cimport (
    LogStat, StreamStat, Tally, catalog_counted_anew, catalog_dropped, catalog_give_up, catalog_is_crowded,
    catalog_lost, catalog_mark, catalog_sum, catalog_unmark,
)
from dataproxy._core.server.store.clock cimport storeclock_now
from dataproxy._core.server.store.env cimport (
    FAULT_CHECKSUM, FAULT_ROW, KEY_ENTRY, KEY_INDEX, KEY_LOG, NAMES_ROW, key_entry, key_index, key_meta, key_name,
    reserve_drop, reserve_make, row_seal,
)
from dataproxy._core.server.store.txn cimport (
    Store, StoreLimits, store_begin, store_failed, store_finish, store_grow, store_is_full, store_is_roomy,
    store_save_clock, store_settle,
)
from dataproxy._core.server.store.window.windowlog cimport windowlog_expire, windowlog_is_due
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.plat.lmdb cimport (
    MDB_NEXT, MDB_NOTFOUND, MDB_SET_RANGE, MDB_cursor, MDB_cursor_op, MDB_txn, MDB_val, mdb_cursor_close,
    mdb_cursor_get, mdb_cursor_open, mdb_del, mdb_get, mdb_put, mdb_reader_check, mdb_txn_abort,
)
from dataproxy._core.plat.endian cimport load_be32, load_be64, store_be64

cdef enum RetainStep:
    STEP_ENTRIES = 1024
    STEP_TIGHT = 256        # with the reserve as the only room
    STEP_BYTES = 32 << 20
    CLOCK_KEPT_MS = 60000   # what the clock may lose when the machine stops

cdef enum:
    STEP_NAMES = 8192           # given up in one commit
    AGAIN_MS = 1000             # between two looks that found nothing


cdef int64_t store_retain(void* self) noexcept nogil:
    """Drop up to one step of what is past the limits and return the number of entries dropped.

    Locks: the library's writer lock, only when there is something to drop.
    """
    cdef Store* store = <Store*>self
    cdef int64_t now_ms = storeclock_now(&store.clock)
    cdef Tally before = store.catalog.now
    cdef int64_t dropped
    cdef int dead = 0
    cdef int rc
    if store.env.env != NULL:
        mdb_reader_check(store.env.env, &dead)      # readers that were killed would keep pages for ever
    if store.window != NULL and windowlog_is_due(store.window, now_ms):
        rc = _forget(store, now_ms)
        if rc:
            store_failed(store, rc)
    _keep_clock(store, now_ms)
    if not _is_due(store, now_ms):
        return 0
    rc = _step(store, now_ms, STEP_ENTRIES)
    while store_grow(store, rc):
        rc = _step(store, now_ms, STEP_ENTRIES)
    if store_is_full(rc) and reserve_drop(store.path):
        rc = _step(store, now_ms, STEP_TIGHT)
    if rc:
        store_failed(store, rc)
        return 0
    dropped = <int64_t>(before.entries - store.catalog.now.entries)
    relaxed_add(&store.dropped_entries, dropped)
    relaxed_add(&store.dropped_records, <int64_t>(before.records - store.catalog.now.records))
    relaxed_add(&store.dropped_bytes, <int64_t>(before.bytes - store.catalog.now.bytes))
    reserve_make(store.path)
    return dropped


cdef int _forget(Store* store, int64_t now_ms) noexcept nogil:
    """Drop one step of ids that are past the window's limits: 0 or an error.

    Locks: the library's writer lock.
    """
    cdef MDB_txn* txn = NULL
    cdef int rc = store_begin(store, &txn)
    if rc:
        return rc
    rc = windowlog_expire(store.window, txn, now_ms)
    return store_finish(store, txn, rc)


cdef void _keep_clock(Store* store, int64_t now_ms) noexcept nogil:
    """Write the store's clock to disk from time to time, and find out whether a disk that failed works again.

    Locks: the library's writer lock, only when there is something to write.
    """
    cdef bint troubled = relaxed_load(&store.trouble) != 0 and store_is_roomy(store)
    cdef uint64_t wanted = store.wanted
    cdef int rc
    if troubled or (store.catalog.now.entries and now_ms - store.clock.saved_ms >= CLOCK_KEPT_MS):
        if troubled:
            store.wanted = 0
        rc = store_save_clock(store)
        if rc:
            store.wanted = wanted
            relaxed_store(&store.trouble, rc)


cdef bint _is_due(Store* store, int64_t now_ms) noexcept nogil:
    """Tell whether some entry is past a limit.

    A write transaction is used: it is always possible, while other processes may use all places for readers.
    Locks: the library's writer lock.
    """
    cdef MDB_txn* txn = NULL
    cdef LogStat* log = NULL
    cdef uint32_t at = 0
    cdef int rc
    if store.catalog.now.entries == 0 or (store.limits.retention_bytes == 0 and store.limits.retention_ms == 0):
        return False
    rc = store_begin(store, &txn)
    if rc == 0:
        rc = _next_due(store, txn, now_ms, &at, &log)
        mdb_txn_abort(txn)
    if rc:
        store_failed(store, rc)
    return rc == 0 and log != NULL


cdef int _step(Store* store, int64_t now_ms, int left) noexcept nogil:
    """Drop up to ``left`` entries in a transaction: 0 or an error.

    Locks: the library's writer lock.
    """
    cdef uint64_t floor = store.catalog.now.bytes - STEP_BYTES if store.catalog.now.bytes > STEP_BYTES else 0
    cdef MDB_txn* txn = NULL
    cdef LogStat* log = NULL
    cdef uint32_t at = 0
    cdef int rc = store_begin(store, &txn)
    if rc:
        return rc
    while left > 0 and rc == 0 and store.catalog.now.bytes >= floor:
        left -= 1
        rc = _next_due(store, txn, now_ms, &at, &log)
        if log == NULL:
            break
        if rc == 0:
            rc = _drop_front(store, txn, log)
    stage_passed(STAGE_DROPPED)
    return store_finish(store, txn, _count_anew(store, txn, rc))


cdef int _next_due(Store* store, MDB_txn* txn, int64_t now_ms, uint32_t* at, LogStat** out) noexcept nogil:
    """Find the next log, from number ``at`` on, whose oldest entry is past a limit; NULL at the end.

    Returns 0 or an error.
    """
    cdef StoreLimits* limits = &store.limits
    cdef LogStat* log
    cdef QueueHeader header
    cdef size_t size = 0
    cdef int rc
    out[0] = NULL
    while at[0] < store.catalog.log_count:
        log = store.catalog.logs[at[0]]
        if log != NULL and log.now.entries:
            if limits.retention_ms and log.front_ms < 0:
                rc = _front(store, txn, log, &header, &size)
                if rc == FAULT_CHECKSUM:
                    log.front_ms = now_ms       # nobody knows its age: it is kept for one from here on
                elif rc:
                    return rc
                else:
                    log.front_ms = header.stored_ms if header.stored_ms >= 0 else 0
            if (limits.retention_bytes and log.now.bytes > limits.retention_bytes) or (
                    limits.retention_ms and log.front_ms < now_ms - limits.retention_ms):
                out[0] = log
                return 0
        at[0] += 1
    return 0


cdef int _front(Store* store, MDB_txn* txn, LogStat* log, QueueHeader* header, size_t* size) noexcept nogil:
    """Read the header and the value size of a log's oldest entry: 0 or an error, FAULT_CHECKSUM if that is damaged."""
    cdef uint8_t raw[KEY_ENTRY]
    cdef MDB_val key = key_entry(raw, log.id, log.first)
    cdef MDB_val value
    cdef size_t header_bytes = 0
    cdef int rc = mdb_get(txn, store.env.entries, &key, &value)
    size[0] = 0
    if rc:
        return FAULT_CHECKSUM if rc == MDB_NOTFOUND else rc
    size[0] = value.mv_size
    if (header_check(<const uint8_t*>value.mv_data, value.mv_size, raw, KEY_ENTRY, False) != ST_OK
            or header_read(<const uint8_t*>value.mv_data, value.mv_size, header, &header_bytes) != ST_OK):
        return FAULT_CHECKSUM
    return 0


cdef int _drop_front(Store* store, MDB_txn* txn, LogStat* log) noexcept nogil:
    """Delete the oldest entry of a log with its index row: 0 or an error."""
    cdef uint8_t raw[KEY_ENTRY]
    cdef uint8_t index_raw[KEY_INDEX]
    cdef MDB_val key
    cdef QueueHeader header
    cdef size_t size = 0
    cdef int rc = _front(store, txn, log, &header, &size)
    if rc == FAULT_CHECKSUM:
        return _drop_damaged(store, txn, log, size)
    if rc == 0 and (header.stream >= log.stream_count or log.streams[header.stream] == NULL):
        rc = FAULT_ROW
    if rc:
        return rc
    key = key_index(index_raw, log.id, header.stream, log.first)
    rc = mdb_del(txn, store.env.index, &key, NULL)
    if rc == 0:
        key = key_entry(raw, log.id, log.first)
        rc = mdb_del(txn, store.env.entries, &key, NULL)
    if rc:
        return FAULT_ROW if rc == MDB_NOTFOUND else rc
    catalog_dropped(&store.catalog, log.streams[header.stream], header.records, size)
    return 0


cdef int _count_anew(Store* store, MDB_txn* txn, int rc) noexcept nogil:
    """Count logs and streams again that have lost unreadable entries: 0 or an error."""
    cdef LogStat* log = store.catalog.touched_logs
    cdef StreamStat* stream = store.catalog.touched_streams
    while stream != NULL:
        if stream.recount and rc == 0:
            rc = _recount(store, txn, stream.log, stream)
        stream.recount = False
        stream = stream.next_touched
    while log != NULL:
        if log.recount and rc == 0:
            rc = _recount(store, txn, log, NULL)
        log.recount = False
        log = log.next_touched
    return rc


cdef int _drop_damaged(Store* store, MDB_txn* txn, LogStat* log, size_t size) noexcept nogil:
    """Delete the oldest entry of a log, which is damaged: 0 or an error.

    Its stream is the one whose index has its offset.
    """
    cdef uint8_t raw[KEY_ENTRY]
    cdef uint8_t index_raw[KEY_INDEX]
    cdef StreamStat* stream = NULL
    cdef MDB_val key
    cdef uint32_t i
    cdef int rc
    for i in range(log.stream_count):
        key = key_index(index_raw, log.id, i, log.first)
        rc = mdb_del(txn, store.env.index, &key, NULL)
        if rc == 0:
            stream = log.streams[i]
        elif rc != MDB_NOTFOUND:
            return rc
    key = key_entry(raw, log.id, log.first)
    rc = mdb_del(txn, store.env.entries, &key, NULL)
    if rc and rc != MDB_NOTFOUND:
        return rc
    catalog_lost(&store.catalog, log, stream, size)
    relaxed_add(&store.damaged_entries, 1)
    return 0


cdef int _recount(Store* store, MDB_txn* txn, LogStat* log, StreamStat* stream) noexcept nogil:
    """Correct the counts of a stream, or of all streams of a log: 0 or an error."""
    cdef MDB_cursor* cursor = NULL
    cdef uint32_t i
    cdef int rc = mdb_cursor_open(txn, store.env.index, &cursor)
    if rc:
        return rc
    for i in range(log.stream_count):
        if rc == 0 and log.streams[i] != NULL and (stream == NULL or stream == log.streams[i]):
            rc = _count(store, txn, cursor, log, log.streams[i])
    mdb_cursor_close(cursor)
    if rc == 0:
        catalog_sum(&store.catalog, log)
    return rc


cdef int _count(Store* store, MDB_txn* txn, MDB_cursor* cursor, LogStat* log, StreamStat* stream) noexcept nogil:
    """Count what the index of a stream names; an entry that cannot be read has no records.

    Returns 0 or an error.
    """
    cdef uint8_t raw[KEY_INDEX]
    cdef uint8_t entry_raw[KEY_ENTRY]
    cdef MDB_cursor_op op = MDB_SET_RANGE
    cdef MDB_val key = key_index(raw, log.id, stream.id, log.first)
    cdef MDB_val entry
    cdef MDB_val value
    cdef QueueHeader header
    cdef size_t head = 0
    cdef Tally found
    cdef int rc
    found.entries = found.records = found.bytes = 0
    while True:
        rc = mdb_cursor_get(cursor, &key, &value, op)
        op = MDB_NEXT
        if rc or key.mv_size != KEY_INDEX or load_be32(key.mv_data) != log.id or (
                load_be32(<uint8_t*>key.mv_data + 4) != stream.id):
            break
        entry = key_entry(entry_raw, log.id, load_be64(<uint8_t*>key.mv_data + 8))
        rc = mdb_get(txn, store.env.entries, &entry, &value)
        if rc and rc != MDB_NOTFOUND:
            return rc
        found.entries += 1
        if rc:
            continue
        found.bytes += value.mv_size
        if (header_check(<const uint8_t*>value.mv_data, value.mv_size, entry_raw, KEY_ENTRY, False) == ST_OK
                and header_read(<const uint8_t*>value.mv_data, value.mv_size, &header, &head) == ST_OK):
            found.records += header.records
    if rc and rc != MDB_NOTFOUND:
        return rc
    catalog_counted_anew(&store.catalog, stream, &found)
    return 0


cdef void names_make_room(Store* store, uint64_t wanted) noexcept nogil:
    """Give up names without entries if so many new ones may not fit.

    Locality: appending thread, without a transaction.
    Locks: the library's writer lock, only when there is something to give up.
    """
    cdef int64_t now_ms
    cdef int rc
    if not catalog_is_crowded(&store.catalog, wanted):
        return
    now_ms = storeclock_now(&store.clock)
    if now_ms < store.names_after_ms:
        return
    if catalog_mark(&store.catalog, STEP_NAMES) == 0:
        store.names_after_ms = now_ms + AGAIN_MS
        return
    rc = _delete_marked(store)
    if rc:
        catalog_unmark(&store.catalog)
        store.names_after_ms = now_ms + AGAIN_MS
        store_failed(store, rc)
    else:
        catalog_give_up(&store.catalog)


cdef int _delete_marked(Store* store) noexcept nogil:
    """Delete the rows of marked names: 0 or an error.

    Locality: appending thread.
    Locks: the library's writer lock.
    """
    cdef MDB_txn* txn = NULL
    cdef LogStat* log
    cdef uint64_t floor = store.catalog.floor
    cdef uint32_t i
    cdef uint32_t k
    cdef int rc = store_begin(store, &txn)
    if rc:
        return rc
    for i in range(store.catalog.log_count):
        log = store.catalog.logs[i]
        if log == NULL or rc:
            continue
        if log.node.marked:
            floor = max(floor, log.next)
            rc = _delete_log(store, txn, log)
        for k in range(log.stream_count):
            if rc == 0 and log.streams[k] != NULL and log.streams[k].node.marked:
                rc = _delete_stream(store, txn, log.streams[k])
    if rc == 0:
        rc = _put_row(store, txn, floor)
    return store_settle(store, txn, rc, True)


cdef int _delete_log(Store* store, MDB_txn* txn, LogStat* log) noexcept nogil:
    """Delete the row of a log, if it ever had one: 0 or an error.  Locality: appending thread."""
    cdef uint8_t raw[KEY_LOG]
    cdef MDB_val key = key_name(raw, log.partition, log.node.name)
    cdef int rc = mdb_del(txn, store.env.logs, &key, NULL)
    return 0 if rc == MDB_NOTFOUND else rc


cdef int _delete_stream(Store* store, MDB_txn* txn, StreamStat* stream) noexcept nogil:
    """Delete the row of a stream, if it ever had one: 0 or an error.  Locality: appending thread."""
    cdef uint8_t raw[KEY_LOG]
    cdef MDB_val key = key_name(raw, stream.log.id, stream.node.name)
    cdef int rc = mdb_del(txn, store.env.streams, &key, NULL)
    return 0 if rc == MDB_NOTFOUND else rc


cdef int _put_row(Store* store, MDB_txn* txn, uint64_t floor) noexcept nogil:
    """Put the row of what new names begin with: 0 or an error.  Locality: appending thread."""
    cdef uint8_t row[NAMES_ROW]
    cdef MDB_val key = key_meta(b"names")
    cdef MDB_val value
    store_be64(row, floor)
    store_be64(row + 8, store.catalog.generation + 1)
    row_seal(&key, row, NAMES_ROW)
    value.mv_data = row
    value.mv_size = NAMES_ROW
    return mdb_put(txn, store.env.meta, &key, &value, 0)
