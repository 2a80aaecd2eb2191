"""Rows of the store for blocks of the Spark sink's rows: one for each block, by its position; new rows change it.

Only the youngest blocks change, so a commit touches few pages.
Functions return 0 or the error of the library, the system or the environment.

Locks: none, except where a function says otherwise.
"""

from libc.errno cimport ENOMEM
from libc.stdint cimport int64_t, uint8_t, uint64_t

from dataproxy._core.hub.rowblocks cimport (
    BLOCK_WORDS,
    BlockChange,
    RowBlock,
    RowBlocks,
    rowblocks_at,
    rowblocks_drop,
    rowblocks_keep,
    rowblocks_undo,
)
from dataproxy._core.hub.idring cimport IdRing, idring_add, idring_begins_at, idring_due
from dataproxy._core.hub.stages cimport STAGE_FORGOTTEN, stage_passed
from dataproxy._core.hub.storeenv cimport FAULT_ROW, row_fits, row_seal
from dataproxy._core.plat.endian cimport load_be64, store_be64
from dataproxy._core.plat.lmdb cimport (
    MDB_FIRST,
    MDB_NEXT,
    MDB_NOTFOUND,
    MDB_cursor,
    MDB_cursor_op,
    MDB_txn,
    MDB_val,
    mdb_cursor_close,
    mdb_cursor_del,
    mdb_cursor_get,
    mdb_cursor_open,
    mdb_put,
)

cdef enum:
    STEP_BLOCKS = 4096      # dropped in one commit, beside as many as it added
    DUE_BLOCKS = 512        # so many make a commit of their own worth while


cdef int rowblocklog_load(WindowLog* log, MDB_txn* txn) noexcept nogil:
    """Read all blocks.  Locality: owner, before the appending thread starts.  Locks: the library's writer lock."""
    cdef MDB_cursor* cursor = NULL
    cdef MDB_cursor_op op = MDB_FIRST
    cdef MDB_val key
    cdef MDB_val value
    cdef int rc = mdb_cursor_open(txn, log.env.blocks, &cursor)
    while rc == 0:
        rc = mdb_cursor_get(cursor, &key, &value, op)
        op = MDB_NEXT
        if rc == 0:
            rc = _load_row(&log.dedupe.blocks, &key, &value)
    if cursor != NULL:
        mdb_cursor_close(cursor)
    rowblocks_keep(&log.dedupe.blocks)
    return 0 if rc == MDB_NOTFOUND else rc


cdef int rowblocklog_put(WindowLog* log, MDB_txn* txn) noexcept nogil:
    """Write the blocks in which rows are new.  Locality: appending thread."""
    cdef RowBlocks* b = &log.dedupe.blocks
    cdef const BlockChange* changes = <const BlockChange*>b.changes.p
    cdef uint64_t n = b.changes.n // sizeof(BlockChange)
    cdef const RowBlock* block
    cdef uint8_t raw[KEY_BLOCK]
    cdef uint8_t row[BLOCK_ROW]
    cdef MDB_val key
    cdef MDB_val value
    cdef int rc
    cdef int k
    key.mv_data = raw
    key.mv_size = KEY_BLOCK
    while log.blocks_put < n:
        block = rowblocks_at(b, changes[log.blocks_put].position)
        store_be64(raw, changes[log.blocks_put].position)
        store_be64(row, <uint64_t>block.item.at_ms)
        store_be64(row + 8, block.item.high)
        store_be64(row + 16, block.item.low)
        for k in range(BLOCK_WORDS):
            store_be64(row + 24 + 8 * k, block.rows[k])
        row_seal(&key, row, BLOCK_ROW)
        value.mv_data = row
        value.mv_size = BLOCK_ROW
        rc = mdb_put(txn, log.env.blocks, &key, &value, 0)
        if rc:
            return rc
        log.blocks_put += 1
    return 0


cdef int rowblocklog_expire(WindowLog* log, MDB_txn* txn, int64_t now_ms) noexcept nogil:
    """Delete blocks past the limits, a bounded number.  Locality: appending thread."""
    cdef const IdRing* r = &log.dedupe.blocks.ring
    cdef uint64_t due = idring_due(r, now_ms, r.tail - r.kept_tail + STEP_BLOCKS)
    cdef MDB_cursor* cursor = NULL
    cdef MDB_val key
    cdef MDB_val value
    cdef int rc
    log.blocks_until = r.head
    if due == r.head:
        return 0
    rc = mdb_cursor_open(txn, log.env.blocks, &cursor)
    while rc == 0:
        rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
        if rc == 0 and key.mv_size != KEY_BLOCK:
            rc = FAULT_ROW
        if rc or load_be64(key.mv_data) >= due:
            break
        rc = mdb_cursor_del(cursor, 0)
    if cursor != NULL:
        mdb_cursor_close(cursor)
    if rc and rc != MDB_NOTFOUND:
        return rc
    log.blocks_until = due
    stage_passed(STAGE_FORGOTTEN)
    return 0


cdef bint rowblocklog_is_due(WindowLog* log, int64_t now_ms) noexcept nogil:
    """Tell whether there is enough to forget for a commit of its own.  Locality: appending thread."""
    cdef const IdRing* r = &log.dedupe.blocks.ring
    cdef uint64_t due = idring_due(r, now_ms, STEP_BLOCKS)
    return due - r.head >= DUE_BLOCKS or (due > r.head and due == r.tail)


cdef bint rowblocklog_writes(WindowLog* log) noexcept nogil:
    """Tell whether the current transaction has changed blocks.  Locality: appending thread."""
    return log.blocks_put > 0 or log.blocks_until > log.dedupe.blocks.ring.head


cdef void rowblocklog_settle(WindowLog* log, bint committed) noexcept nogil:
    """Keep or undo the changes of blocks after the transaction has ended.  Locality: appending thread."""
    cdef RowBlocks* b = &log.dedupe.blocks
    if committed:
        if log.blocks_until > b.ring.head:
            rowblocks_drop(b, log.blocks_until, log.now_ms)
        rowblocks_keep(b)
    else:
        rowblocks_undo(b)
    log.blocks_until = 0
    log.blocks_put = 0


cdef int _load_row(RowBlocks* b, const MDB_val* key, const MDB_val* value) noexcept nogil:
    """Add one block.  Locality: owner."""
    cdef const uint8_t* row = <const uint8_t*>value.mv_data
    cdef RowBlock* block
    cdef int k
    if key.mv_size != KEY_BLOCK or not row_fits(key, value, BLOCK_ROW):
        return FAULT_ROW
    if not idring_begins_at(&b.ring, load_be64(key.mv_data)):
        return FAULT_ROW
    block = <RowBlock*>idring_add(&b.ring, load_be64(row + 8), load_be64(row + 16), <int64_t>load_be64(row))
    if block == NULL:
        return ENOMEM
    for k in range(BLOCK_WORDS):
        block.rows[k] = load_be64(row + 24 + 8 * k)
    return 0
