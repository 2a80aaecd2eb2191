"""Count the entries of a stream one by one, because the counts in its row may be wrong.

Locality: appending thread.  Locks: none.
"""

from libc.stdint cimport uint8_t, uint32_t

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.hub.header cimport QueueHeader, header_check, header_read
from dataproxy._core.hub.storecatalog cimport LogStat, StreamStat, Tally, catalog_counted_anew, catalog_sum
from dataproxy._core.hub.storeenv cimport KEY_ENTRY, KEY_INDEX, key_entry, key_index
from dataproxy._core.hub.storetxn cimport Store
from dataproxy._core.plat.endian cimport load_be32, load_be64
from dataproxy._core.plat.lmdb cimport (
    MDB_NEXT,
    MDB_NOTFOUND,
    MDB_SET_RANGE,
    MDB_cursor,
    MDB_cursor_op,
    MDB_txn,
    MDB_val,
    mdb_cursor_close,
    mdb_cursor_get,
    mdb_cursor_open,
    mdb_get,
)


cdef int store_recount(Store* store, MDB_txn* txn, LogStat* log, StreamStat* stream) noexcept nogil:
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
