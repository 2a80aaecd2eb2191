"""Rows of the database ``offsets``: one for each consumer group and log, under a hash of their names.

A row is a version u64, a position u64, the partition u32, the sizes of topic and group u16, both texts, and the
checksum.  A position is put only if its version is higher than the row's: entries of two server loops may come in the
wrong order, and a position that was set anew has to win over one that was confirmed before.  A group that is forgotten
leaves a row with the position -1, for the same reason.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.buf cimport (
    Buf, buf_free, buf_init, buf_put_be16, buf_put_be32, buf_put_be64, buf_put_slice,
)
from dataproxy._core.base.siphash cimport Hash128, HashKey, hash_bytes, hash_key
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.server.store.env cimport FAULT_ROW, ROW_CRC, read_begin, read_end, row_fits, row_seal
from dataproxy._core.plat.endian cimport load_be16, load_be32, load_be64, store_be64
from dataproxy._core.plat.lmdb cimport (
    MDB_FIRST, MDB_NEXT, MDB_NOTFOUND, MDB_cursor, MDB_cursor_op, MDB_val, mdb_cursor_close, mdb_cursor_get,
    mdb_cursor_open, mdb_get, mdb_put,
)
from libc.errno cimport ENOMEM

cdef enum:
    KEY_OFFSET = 16
    ROW_FIXED = 8 + 8 + 4 + 2 + 2


cdef int offsets_put(Store* store, MDB_txn* txn, const Entry* entry) noexcept nogil:
    """Put a position, unless a newer one is there: 0 or an error.  Locality: appending thread."""
    cdef uint8_t raw[KEY_OFFSET]
    cdef MDB_val key
    cdef MDB_val value
    cdef HashKey secret = hash_key(store.env.ids_key)
    cdef Hash128 named
    cdef Buf row
    cdef int rc
    buf_init(&row)
    rc = buf_put_be64(&row, entry.version)
    rc |= buf_put_be64(&row, entry.offset)
    rc |= buf_put_be32(&row, entry.partition)
    rc |= buf_put_be16(&row, <unsigned short>entry.group.n)
    rc |= buf_put_be16(&row, <unsigned short>entry.stream.n)
    rc |= buf_put_slice(&row, entry.group)
    rc |= buf_put_slice(&row, entry.stream)
    rc |= buf_put_be32(&row, 0)
    if rc == ST_OK:
        named = hash_bytes(&secret, row.p + 16, row.n - 16 - ROW_CRC)
        store_be64(raw, named.first)
        store_be64(raw + 8, named.second)
        key.mv_data = raw
        key.mv_size = KEY_OFFSET
        rc = mdb_get(txn, store.env.offsets, &key, &value)
        if rc == 0 and row_fits(&key, &value, row.n) and load_be64(value.mv_data) >= entry.version:
            buf_free(&row)
            return 0
        if rc == 0 or rc == MDB_NOTFOUND:
            row_seal(&key, row.p, row.n)
            value.mv_data = row.p
            value.mv_size = row.n
            rc = mdb_put(txn, store.env.offsets, &key, &value, 0)
            store.moved |= rc == 0
    else:
        rc = ENOMEM
    buf_free(&row)
    return rc


cdef bint _take(const MDB_val* key, const MDB_val* value, StoredOffset* out) noexcept nogil:
    """Take a row apart; false: it is damaged.  Locality: any thread."""
    cdef const uint8_t* p = <const uint8_t*>value.mv_data
    if value.mv_size < ROW_FIXED + ROW_CRC or not row_fits(key, value, value.mv_size):
        return False
    out.version = load_be64(p)
    out.position = <int64_t>load_be64(p + 8)
    out.partition = load_be32(p + 16)
    out.topic = slice_of(p + ROW_FIXED, load_be16(p + 20))
    out.group = slice_of(out.topic.p + out.topic.n, load_be16(p + 22))
    return value.mv_size == ROW_FIXED + out.topic.n + out.group.n + ROW_CRC


cdef int offsets_read(StoreEnv* e, OffsetTaker take, void* context) noexcept nogil:
    """Read all rows: 0 or an error.  Locality: any thread.  Locks: takes the environment's mutex."""
    cdef MDB_txn* txn = NULL
    cdef MDB_cursor* cursor = NULL
    cdef MDB_cursor_op op = MDB_FIRST
    cdef MDB_val key
    cdef MDB_val value
    cdef StoredOffset one
    cdef int rc = read_begin(e, &txn)
    if rc:
        return rc
    rc = mdb_cursor_open(txn, e.offsets, &cursor)
    while rc == 0:
        rc = mdb_cursor_get(cursor, &key, &value, op)
        op = MDB_NEXT
        if rc == 0 and not _take(&key, &value, &one):
            rc = FAULT_ROW
        if rc == 0 and not take(context, &one):
            rc = MDB_NOTFOUND
    if cursor != NULL:
        mdb_cursor_close(cursor)
    read_end(e, txn)
    return 0 if rc == MDB_NOTFOUND else rc
