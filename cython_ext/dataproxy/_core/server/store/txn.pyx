"""Catalog and write transactions of the durable store.

Locks: none, except where a function says otherwise.
"""

from libc.errno cimport EIO, ENOMEM
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset
from posix.stat cimport fstat, struct_stat

from dataproxy._core.base.clock cimport system_clock
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_STORE
from dataproxy._core.server.store.stages cimport STAGE_BEGUN, STAGE_CATALOG, STAGE_WRITTEN, stage_passed
from dataproxy._core.server.store.catalog cimport (
    LogStat,
    StreamStat,
    Tally,
    catalog_counted,
    catalog_free,
    catalog_init,
    catalog_keep,
    catalog_name_limit,
    catalog_restore_log,
    catalog_restore_stream,
    catalog_undo,
)
from dataproxy._core.server.store.clock cimport (
    CLOCK_ROW,
    storeclock_init,
    storeclock_now,
    storeclock_read,
    storeclock_write,
)
from dataproxy._core.server.store.env cimport (
    FAULT_OWNER, FAULT_ROW, KEY_LOG, LOG_ROW, ROW_CRC, STREAM_ROW, env_names, env_reopen, env_resize, files_check,
    files_note, files_sync, key_meta, key_name, reserve_make, reserve_probe, row_fits, row_seal,
)
from dataproxy._core.server.store.window.windowlog cimport windowlog_settle, windowlog_writes
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_store
from dataproxy._core.plat.endian cimport load_be32, load_be64, store_be32, store_be64
from dataproxy._core.plat.file cimport posix_fallocate
from dataproxy._core.plat.lmdb cimport (
    MDB_FIRST,
    MDB_MAP_FULL,
    MDB_NEXT,
    MDB_NOTFOUND,
    MDB_PANIC,
    MDB_cursor,
    MDB_cursor_op,
    MDB_txn,
    MDB_val,
    mdb_cursor_close,
    mdb_cursor_get,
    mdb_cursor_open,
    mdb_env_get_fd,
    mdb_get,
    mdb_put,
    mdb_txn_abort,
    mdb_txn_begin,
    mdb_txn_commit,
    mdb_txn_id,
)

cdef enum Probe:
    PROBE_BYTES = 64 << 10      # asked of the file system to tell a full disk from a broken one
    CLOCK_EVERY_MS = 1000       # so often a commit takes the clock with it


cdef int store_init(Store* store, StoreEnv* env, const char* path, size_t map_bytes, size_t map_limit,
                    const StoreLimits* limits, const uint8_t* boot, int* error) noexcept nogil:
    """Load the catalog of an open environment: ST_OK, ST_NO_MEMORY, or ST_STORE with *error.

    Locality: owner, before the appending thread starts.
    Locks: takes the environment's mutex.
    """
    cdef MDB_txn* txn = NULL
    cdef int status
    memset(store, 0, sizeof(Store))
    store.env = env
    store.path = path
    store.map_bytes = map_bytes
    store.map_limit = map_limit
    store.limits = limits[0]
    error[0] = 0
    if catalog_init(&store.catalog) != ST_OK:
        return ST_NO_MEMORY
    store.catalog.name_limit = catalog_name_limit(limits.max_bytes)
    storeclock_init(&store.clock, system_clock(), boot)
    error[0] = files_note(&store.files, env.env, path)
    if error[0] == 0:       # for writing, as another process may have taken every reader's place
        error[0] = mdb_txn_begin(env.env, NULL, 0, &txn)
    if error[0]:
        return ST_STORE
    store.last_txn = mdb_txn_id(txn) - 1
    error[0] = _load_clock(store, txn)
    if error[0] == 0:
        error[0] = env_names(env, txn, &store.catalog.floor, &store.catalog.generation)
    status = _load_logs(store, txn, error) if error[0] == 0 else ST_STORE
    if status == ST_OK:
        status = _load_streams(store, txn, error)
    mdb_txn_abort(txn)
    if status == ST_OK:
        reserve_make(path)
        error[0] = files_sync(path)
        status = ST_OK if error[0] == 0 else ST_STORE
    return status


cdef void store_free(Store* store) noexcept nogil:
    """Release the catalog; the environment belongs to the caller.  Locality: owner."""
    catalog_free(&store.catalog)


cdef int store_begin(Store* store, MDB_txn** txn) noexcept nogil:
    """Begin a write transaction; opens the environment again if the library declared it unusable.

    Nothing is written to a store whose files were removed or replaced, or to which another writer has written.
    Returns 0 or an error.
    Locality: appending thread.
    Locks: takes the environment's mutex; the library's writer lock until the transaction ends.
    """
    cdef int rc = files_check(&store.files, store.path)
    if rc:
        return rc
    rc = MDB_PANIC
    if store.env.env != NULL:
        rc = mdb_txn_begin(store.env.env, NULL, 0, txn)
    if rc == MDB_PANIC:
        rc = env_reopen(store.env, store.path, store.map_bytes)
        if rc == 0:
            rc = mdb_txn_begin(store.env.env, NULL, 0, txn)
    if rc == 0 and mdb_txn_id(txn[0]) != store.last_txn + 1:
        mdb_txn_abort(txn[0])
        rc = FAULT_OWNER
    stage_passed(STAGE_BEGUN)
    return rc


cdef int store_finish(Store* store, MDB_txn* txn, int rc) noexcept nogil:
    """Write the changed counts and commit; with an error in ``rc`` or on the way, take everything back.

    A commit to files that were removed meanwhile counts as failed.
    Returns 0 or an error.
    Locality: appending thread.
    """
    cdef bint writes = (store.catalog.touched_logs != NULL or store.moved
                        or (store.window != NULL and windowlog_writes(store.window)))
    if rc == 0:
        rc = _save_catalog(store, txn)
    if rc == 0 and writes and storeclock_now(&store.clock) - store.clock.saved_ms >= CLOCK_EVERY_MS:
        rc = _put_clock(store, txn)
    return store_settle(store, txn, rc, writes)


cdef int store_save_clock(Store* store) noexcept nogil:
    """Commit only the clock; this also shows whether the disk takes commits again.  0 or an error.

    Locality: appending thread.
    Locks: the library's writer lock.
    """
    cdef MDB_txn* txn = NULL
    cdef int rc = store_begin(store, &txn)
    if rc:
        return rc
    return store_settle(store, txn, _put_clock(store, txn), True)


cdef int store_settle(Store* store, MDB_txn* txn, int rc, bint writes) noexcept nogil:
    """Commit, or take everything back: 0 or an error.  Locality: appending thread."""
    if rc == 0:
        stage_passed(STAGE_CATALOG)
        rc = mdb_txn_commit(txn)
        stage_passed(STAGE_WRITTEN)
    else:
        mdb_txn_abort(txn)
    store.moved = False
    if store.window != NULL:
        windowlog_settle(store.window, rc == 0)
    if rc == 0:
        store.last_txn += 1 if writes else 0        # the library gives no number to a commit of nothing
        catalog_keep(&store.catalog)
        rc = files_check(&store.files, store.path)
        if rc == 0:
            relaxed_add(&store.commits, 1)
            if store.wanted == 0:       # what there was no room for is more than this
                relaxed_store(&store.trouble, 0)
    else:
        catalog_undo(&store.catalog)
        if rc == EIO:
            rc = _write_error(store)
    return rc


cdef int _write_error(Store* store) noexcept nogil:
    """Return the cause of the library's EIO, which also stands for a short write, as on a full disk.

    Locality: appending thread.
    """
    cdef struct_stat found
    cdef int fd = -1
    cdef int rc
    if mdb_env_get_fd(store.env.env, &fd) != 0 or fstat(fd, &found) != 0:
        return EIO
    rc = posix_fallocate(fd, found.st_size, PROBE_BYTES)
    return rc if store_is_full(rc) else EIO


cdef bint store_grow(Store* store, int rc) noexcept nogil:
    """Double the map if ``rc`` says that it is full; true if the transaction can be tried again.

    Locality: appending thread, without a transaction.
    Locks: takes the environment's mutex; waits for the reads under way in this process.
    """
    cdef size_t wanted
    if rc != MDB_MAP_FULL or store.map_bytes >= store.map_limit:
        return False
    wanted = store.map_bytes * 2
    if wanted > store.map_limit:
        wanted = store.map_limit
    if env_resize(store.env, wanted) != 0:
        return False
    store.map_bytes = wanted
    return True


cdef bint store_has_room(Store* store, uint64_t wanted) noexcept nogil:
    """Tell whether so many bytes more fit the store's own limit.  Locality: appending thread."""
    if store.limits.max_bytes == 0:
        return True
    return (store.catalog.now.bytes + store.catalog.now.entries * ENTRY_OVERHEAD + catalog_counted(&store.catalog)
            + wanted <= store.limits.max_bytes)


cdef void store_failed(Store* store, int error) noexcept nogil:
    """Count a refused commit and keep its error for the statistics.  Locality: appending thread."""
    relaxed_add(&store.failures, 1)
    relaxed_store(&store.last_error, error)
    relaxed_store(&store.trouble, error)


cdef void store_refused(Store* store, int error, uint64_t wanted) noexcept nogil:
    """Count a refused commit of entries; the missing bytes are remembered until they are known to fit.

    Locality: appending thread.
    """
    store_failed(store, error)
    if store_is_full(error):
        if 0 < store.limits.max_bytes // 2 < wanted:    # a part of it may fit at last, and all of it never
            wanted = store.limits.max_bytes // 2
        store.wanted = wanted
        store.wanted_at = store.catalog.now.bytes


cdef void store_took(Store* store) noexcept nogil:
    """Note that entries were stored.  Locality: appending thread."""
    store.wanted = 0
    relaxed_store(&store.trouble, 0)


cdef bint store_is_roomy(Store* store) noexcept nogil:
    """Tell whether entries that were refused on a full disk would fit now; a small commit that succeeds is no proof.

    They fit if as many bytes were dropped since, or if the file system can give as many to the reserve.
    Locality: appending thread.
    """
    cdef uint64_t wanted = store.wanted + store.wanted // 8 + PROBE_BYTES   # pages are not full
    if not store_has_room(store, store.wanted if store.wanted else 1):
        return False
    return (store.wanted == 0 or store.catalog.now.bytes + wanted <= store.wanted_at
            or reserve_probe(store.path, wanted))


cdef int _save_catalog(Store* store, MDB_txn* txn) noexcept nogil:
    """Put the rows of every log and stream that changed: 0 or an error.

    Locality: appending thread.
    """
    cdef uint8_t raw[KEY_LOG]
    cdef uint8_t row[LOG_ROW]
    cdef LogStat* log = store.catalog.touched_logs
    cdef StreamStat* stream = store.catalog.touched_streams
    cdef MDB_val key
    cdef MDB_val value
    cdef int rc = 0
    value.mv_data = row
    while log != NULL and rc == 0:
        store_be32(row, log.id)
        store_be64(row + 4, log.first)
        store_be64(row + 12, log.next)
        _store_tally(row + 20, &log.now)
        value.mv_size = LOG_ROW
        key = key_name(raw, log.partition, log.node.name)
        row_seal(&key, row, LOG_ROW)
        rc = mdb_put(txn, store.env.logs, &key, &value, 0)
        log = log.next_touched
    while stream != NULL and rc == 0:
        store_be32(row, stream.id)
        _store_tally(row + 4, &stream.now)
        value.mv_size = STREAM_ROW
        key = key_name(raw, stream.log.id, stream.node.name)
        row_seal(&key, row, STREAM_ROW)
        rc = mdb_put(txn, store.env.streams, &key, &value, 0)
        stream = stream.next_touched
    return rc


cdef int _put_clock(Store* store, MDB_txn* txn) noexcept nogil:
    """Put the row of the store's clock: 0 or an error.  Locality: appending thread."""
    cdef uint8_t row[CLOCK_ROW + ROW_CRC]
    cdef MDB_val key = key_meta(b"clock")
    cdef MDB_val value
    storeclock_write(&store.clock, row)
    row_seal(&key, row, CLOCK_ROW + ROW_CRC)
    value.mv_data = row
    value.mv_size = CLOCK_ROW + ROW_CRC
    return mdb_put(txn, store.env.meta, &key, &value, 0)


cdef int _load_clock(Store* store, MDB_txn* txn) noexcept nogil:
    """Go on with the clock of the row, if there is one: 0 or an error.  Locality: owner."""
    cdef MDB_val key = key_meta(b"clock")
    cdef MDB_val value
    cdef int rc = mdb_get(txn, store.env.meta, &key, &value)
    if rc == MDB_NOTFOUND:
        return 0
    if rc == 0 and not row_fits(&key, &value, CLOCK_ROW + ROW_CRC):
        rc = FAULT_ROW
    if rc == 0:
        storeclock_read(&store.clock, <const uint8_t*>value.mv_data)
    return rc


cdef void _store_tally(uint8_t* out, const Tally* tally) noexcept nogil:
    """Write a tally to a row.  Locality: any thread."""
    store_be64(out, tally.entries)
    store_be64(out + 8, tally.records)
    store_be64(out + 16, tally.bytes)


cdef void _load_tally(const uint8_t* p, Tally* tally) noexcept nogil:
    """Read a tally from a row.  Locality: any thread."""
    tally.entries = load_be64(p)
    tally.records = load_be64(p + 8)
    tally.bytes = load_be64(p + 16)


cdef int _load_logs(Store* store, MDB_txn* txn, int* error) noexcept nogil:
    """Load all log rows.  Locality: owner."""
    cdef MDB_cursor* cursor = NULL
    cdef MDB_cursor_op op = MDB_FIRST
    cdef MDB_val key
    cdef MDB_val value
    cdef LogStat* log = NULL
    cdef uint8_t* row
    cdef int status = ST_OK
    cdef int rc = mdb_cursor_open(txn, store.env.logs, &cursor)
    if rc:
        error[0] = rc
        return ST_STORE
    while rc == 0:
        rc = mdb_cursor_get(cursor, &key, &value, op)
        op = MDB_NEXT
        if rc:
            break
        row = <uint8_t*>value.mv_data
        if not row_fits(&key, &value, LOG_ROW) or key.mv_size < 4:
            rc = FAULT_ROW
            break
        status = catalog_restore_log(&store.catalog, slice_of(<uint8_t*>key.mv_data + 4, key.mv_size - 4),
                                     load_be32(key.mv_data), load_be32(row), &log)
        if status != ST_OK:
            rc = ENOMEM if status == ST_NO_MEMORY else FAULT_ROW
            break
        log.first = log.kept_first = load_be64(row + 4)
        log.next = log.kept_next = load_be64(row + 12)
        _load_tally(row + 20, &log.now)
        log.kept = log.now
        store.catalog.now.entries += log.now.entries
        store.catalog.now.records += log.now.records
        store.catalog.now.bytes += log.now.bytes
        store.catalog.kept = store.catalog.now
    mdb_cursor_close(cursor)
    error[0] = 0 if rc == MDB_NOTFOUND else rc
    return ST_OK if error[0] == 0 else ST_STORE


cdef int _load_streams(Store* store, MDB_txn* txn, int* error) noexcept nogil:
    """Load all stream rows.  Locality: owner."""
    cdef MDB_cursor* cursor = NULL
    cdef MDB_cursor_op op = MDB_FIRST
    cdef MDB_val key
    cdef MDB_val value
    cdef StreamStat* stream = NULL
    cdef uint32_t id
    cdef int status = ST_OK
    cdef int rc = mdb_cursor_open(txn, store.env.streams, &cursor)
    if rc:
        error[0] = rc
        return ST_STORE
    while rc == 0:
        rc = mdb_cursor_get(cursor, &key, &value, op)
        op = MDB_NEXT
        if rc:
            break
        id = load_be32(key.mv_data) if key.mv_size >= 4 else store.catalog.log_count
        if not row_fits(&key, &value, STREAM_ROW) or id >= store.catalog.log_count or store.catalog.logs[id] == NULL:
            rc = FAULT_ROW
            break
        status = catalog_restore_stream(&store.catalog, store.catalog.logs[id],
                                        slice_of(<uint8_t*>key.mv_data + 4, key.mv_size - 4),
                                        load_be32(value.mv_data), &stream)
        if status != ST_OK:
            rc = ENOMEM if status == ST_NO_MEMORY else FAULT_ROW
            break
        _load_tally(<uint8_t*>value.mv_data + 4, &stream.now)
        stream.kept = stream.now
    mdb_cursor_close(cursor)
    error[0] = 0 if rc == MDB_NOTFOUND else rc
    return ST_OK if error[0] == 0 else ST_STORE
