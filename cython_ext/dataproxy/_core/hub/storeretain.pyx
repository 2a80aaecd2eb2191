"""Dropping the oldest entries of the durable store, a bounded step for each call."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.hub.header cimport QueueHeader, header_read
from dataproxy._core.hub.storecatalog cimport Catalog, LogStat, Tally, catalog_dropped
from dataproxy._core.hub.storeenv cimport FAULT_ROW, KEY_ENTRY, KEY_INDEX, key_entry, key_index, read_begin, read_end
from dataproxy._core.hub.storetxn cimport Store, store_begin, store_failed, store_finish
from dataproxy._core.plat.atomic cimport relaxed_add
from dataproxy._core.plat.lmdb cimport MDB_NOTFOUND, MDB_txn, MDB_val, mdb_del, mdb_get

cdef enum RetainStep:
    STEP_ENTRIES = 1024
    STEP_BYTES = 32 << 20


cdef int64_t store_retain(void* self, int64_t now_ms) noexcept nogil:
    """Drop up to one step of what is past the limits and return the number of entries dropped.

    The oldest entry of all logs goes first.
    Locality: appending thread.
    Locks: the library's writer lock, only when there is something to drop.
    """
    cdef Store* store = <Store*>self
    cdef Tally dropped
    cdef MDB_txn* txn = NULL
    cdef int rc
    if not _is_due(store, now_ms):
        return 0
    rc = store_begin(store, &txn)
    if rc:
        store_failed(store, rc)
        return 0
    dropped = store.catalog.now
    rc = _drop(store, txn, now_ms)
    rc = store_finish(store, txn, rc)
    if rc:
        return 0
    dropped.entries -= store.catalog.now.entries
    relaxed_add(&store.dropped_entries, <int64_t>dropped.entries)
    relaxed_add(&store.dropped_records, <int64_t>(dropped.records - store.catalog.now.records))
    relaxed_add(&store.dropped_bytes, <int64_t>(dropped.bytes - store.catalog.now.bytes))
    return <int64_t>dropped.entries


cdef bint _is_due(Store* store, int64_t now_ms) noexcept nogil:
    """Tell whether the oldest entry has to go.  Locality: appending thread.  Locks: takes the environment's mutex."""
    cdef MDB_txn* txn = NULL
    cdef LogStat* log = NULL
    cdef int rc
    if store.limits.retention_bytes and store.catalog.now.bytes > store.limits.retention_bytes:
        return True
    if store.limits.retention_ms == 0 or store.catalog.now.entries == 0:
        return False
    rc = read_begin(store.env, &txn)
    if rc == 0:
        rc = _oldest(store, txn, &log)
        read_end(store.env, txn)
    if rc:
        store_failed(store, rc)
        return False
    return _is_past(store, log, now_ms)


cdef bint _is_past(Store* store, LogStat* log, int64_t now_ms) noexcept nogil:
    """Tell whether the front of this log is past a limit.  Locality: appending thread.  Locks: none."""
    if log == NULL:
        return False
    if store.limits.retention_bytes and store.catalog.now.bytes > store.limits.retention_bytes:
        return True
    return store.limits.retention_ms != 0 and log.front_ms < now_ms - store.limits.retention_ms


cdef int _drop(Store* store, MDB_txn* txn, int64_t now_ms) noexcept nogil:
    """Drop one step: 0 or an error.  Locality: appending thread.  Locks: none."""
    cdef uint64_t floor = store.catalog.now.bytes - STEP_BYTES if store.catalog.now.bytes > STEP_BYTES else 0
    cdef LogStat* log = NULL
    cdef int left = STEP_ENTRIES
    cdef int rc
    while left > 0:
        left -= 1
        rc = _oldest(store, txn, &log)
        if rc:
            return rc
        if not _is_past(store, log, now_ms) or store.catalog.now.bytes < floor:
            return 0
        rc = _drop_front(store, txn, log)
        if rc:
            return rc
    return 0


cdef int _oldest(Store* store, MDB_txn* txn, LogStat** out) noexcept nogil:
    """Find the log with the oldest front entry, NULL when all are empty: 0 or an error.

    Locality: appending thread.
    Locks: none.
    """
    cdef Catalog* c = &store.catalog
    cdef LogStat* log = NULL
    cdef QueueHeader header
    cdef size_t size = 0
    cdef uint32_t i
    cdef int rc
    out[0] = NULL
    for i in range(c.log_count):
        log = c.logs[i]
        if log == NULL or log.now.entries == 0:
            continue
        if log.front_ms < 0:
            rc = _front(store, txn, log, &header, &size)
            if rc:
                return rc
            log.front_ms = header.receive_ms if header.receive_ms >= 0 else 0
        if out[0] == NULL or log.front_ms < out[0].front_ms:
            out[0] = log
    return 0


cdef int _front(Store* store, MDB_txn* txn, LogStat* log, QueueHeader* header, size_t* size) noexcept nogil:
    """Read the header and the value size of a log's oldest entry: 0 or an error.

    Locality: appending thread.
    Locks: none.
    """
    cdef uint8_t raw[KEY_ENTRY]
    cdef MDB_val key = key_entry(raw, log.id, log.first)
    cdef MDB_val value
    cdef size_t header_bytes = 0
    cdef int rc = mdb_get(txn, store.env.entries, &key, &value)
    if rc:
        return FAULT_ROW if rc == MDB_NOTFOUND else rc
    size[0] = value.mv_size
    if header_read(<const uint8_t*>value.mv_data, value.mv_size, header, &header_bytes) != ST_OK:
        return FAULT_ROW
    return 0


cdef int _drop_front(Store* store, MDB_txn* txn, LogStat* log) noexcept nogil:
    """Delete the oldest entry of a log with its index row: 0 or an error.

    Locality: appending thread.
    Locks: none.
    """
    cdef uint8_t raw[KEY_ENTRY]
    cdef uint8_t index_raw[KEY_INDEX]
    cdef MDB_val key
    cdef QueueHeader header
    cdef size_t size = 0
    cdef int rc = _front(store, txn, log, &header, &size)
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
