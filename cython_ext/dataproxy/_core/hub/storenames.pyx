"""Names of the durable store that are given up: a commit of its own, before that of the entries which want room.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.hub.storecatalog cimport (
    LogStat, StreamStat, catalog_give_up, catalog_is_crowded, catalog_mark, catalog_unmark,
)
from dataproxy._core.hub.storeclock cimport storeclock_now
from dataproxy._core.hub.storeenv cimport KEY_LOG, NAMES_ROW, key_meta, key_name, row_seal
from dataproxy._core.hub.storetxn cimport Store, store_begin, store_failed, store_settle
from dataproxy._core.plat.endian cimport store_be64
from dataproxy._core.plat.lmdb cimport MDB_NOTFOUND, MDB_txn, MDB_val, mdb_del, mdb_put

cdef enum:
    STEP_NAMES = 8192           # given up in one commit
    AGAIN_MS = 1000             # between two looks that found nothing


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
