"""Dropping the oldest entries of the durable store, a bounded step for each call.

Locality: appending thread.  Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.hub.header cimport QueueHeader, header_check, header_read
from dataproxy._core.hub.stages cimport STAGE_DROPPED, stage_passed
from dataproxy._core.hub.storecatalog cimport LogStat, StreamStat, Tally, catalog_dropped, catalog_lost
from dataproxy._core.hub.storeclock cimport storeclock_now
from dataproxy._core.hub.storeenv cimport FAULT_CHECKSUM, FAULT_ROW, KEY_ENTRY, KEY_INDEX, key_entry, key_index
from dataproxy._core.hub.storerecount cimport store_recount
from dataproxy._core.hub.storereserve cimport reserve_drop, reserve_make
from dataproxy._core.hub.storetxn cimport (
    Store,
    StoreLimits,
    store_begin,
    store_failed,
    store_finish,
    store_grow,
    store_is_full,
    store_is_roomy,
    store_save_clock,
)
from dataproxy._core.hub.windowlog cimport windowlog_expire, windowlog_is_due
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.plat.lmdb cimport MDB_NOTFOUND, MDB_txn, MDB_val, mdb_del, mdb_get, mdb_reader_check, mdb_txn_abort

cdef enum RetainStep:
    STEP_ENTRIES = 1024
    STEP_TIGHT = 256        # with the reserve as the only room
    STEP_BYTES = 32 << 20
    CLOCK_KEPT_MS = 60000   # what the clock may lose when the machine stops


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
    return store_finish(store, txn, _recount(store, txn, rc))


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


cdef int _recount(Store* store, MDB_txn* txn, int rc) noexcept nogil:
    """Count logs and streams again that have lost unreadable entries: 0 or an error."""
    cdef LogStat* log = store.catalog.touched_logs
    cdef StreamStat* stream = store.catalog.touched_streams
    while stream != NULL:
        if stream.recount and rc == 0:
            rc = store_recount(store, txn, stream.log, stream)
        stream.recount = False
        stream = stream.next_touched
    while log != NULL:
        if log.recount and rc == 0:
            rc = store_recount(store, txn, log, NULL)
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
