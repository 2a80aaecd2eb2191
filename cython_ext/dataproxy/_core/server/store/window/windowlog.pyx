"""Rows of the de-duplication window: one for each entry (or 4096 ids), in the order in which they were added.

Blocks of the Spark sink's rows have one row each, by their position; new rows change it.  Only the youngest blocks
change, so a commit touches few pages.

Functions return 0 or the error of the library, the system or the environment.

Locks: none, except where a function says otherwise.
"""

from libc.errno cimport ENOMEM
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint64_t, uint8_t

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.server.store.window.idring cimport (
    IdRing, idring_add, idring_begins_at, idring_due, idring_youngest,
)
from dataproxy._core.server.store.stages cimport STAGE_FORGOTTEN, stage_passed
from dataproxy._core.server.store.env cimport FAULT_ROW, ROW_CRC, key_meta, row_fits, row_seal
from dataproxy._core.server.store.window.dedupe cimport (
    Window, WindowPlace, dedupe_blocks, dedupe_gone, dedupe_ids, window_add, window_at, window_drop, window_keep,
    window_undo,
)
from dataproxy._core.plat.endian cimport load_be64, store_be64
from dataproxy._core.plat.lmdb cimport (
    MDB_APPEND, MDB_FIRST, MDB_KEYEXIST, MDB_NEXT, MDB_NOOVERWRITE, MDB_NOTFOUND, MDB_RESERVE, MDB_cursor,
    MDB_cursor_op, MDB_txn, MDB_val, mdb_cursor_close, mdb_cursor_del, mdb_cursor_get, mdb_cursor_open, mdb_del,
    mdb_get, mdb_put, mdb_txn_abort, mdb_txn_begin, mdb_txn_commit,
)
from dataproxy._core.server.store.window.rowblocks cimport (
    BLOCK_WORDS, BlockChange, RowBlock, RowBlocks, rowblocks_at, rowblocks_drop, rowblocks_keep, rowblocks_undo,
)

cdef enum:
    STEP_BLOCKS = 4096      # dropped in one commit, beside as many as it added
    DUE_BLOCKS = 512        # so many make a commit of their own worth while


cdef int windowlog_load(WindowLog* log, int64_t now_ms, uint64_t* last_txn) noexcept nogil:
    """Read all rows into the window; after a time without a window, the older rows are forgotten.

    A write transaction is used: it is always possible, while other processes may use all places for readers.
    Locality: owner, before the appending thread starts, at a time of the store's own clock.
    Locks: the library's writer lock.
    """
    cdef MDB_txn* txn = NULL
    cdef MDB_cursor* cursor = NULL
    cdef MDB_cursor_op op = MDB_FIRST
    cdef MDB_val key
    cdef MDB_val value
    cdef MDB_val unwatched = key_meta(b"unwatched")
    cdef int rc = mdb_txn_begin(log.env.env, NULL, 0, &txn)
    if rc:
        return rc
    rc = mdb_cursor_open(txn, log.env.ids, &cursor)
    while rc == 0:
        rc = mdb_cursor_get(cursor, &key, &value, op)
        op = MDB_NEXT
        if rc == 0:
            rc = _load_ids(&log.dedupe.window, &key, &value)
    if cursor != NULL:
        mdb_cursor_close(cursor)
    window_keep(&log.dedupe.window)
    if rc == MDB_NOTFOUND:
        rc = _load_blocks(log, txn)
    if rc == 0:
        rc = _load_gone(log, txn)
    if rc == 0 and mdb_get(txn, log.env.meta, &unwatched, &value) == 0:
        now_ms = max(now_ms, 1)     # a fresh store begins at 0, which says that nothing is gone
        dedupe_gone(log.dedupe, now_ms, now_ms)
        if _put_gone(log, txn, now_ms, now_ms) == 0 and mdb_del(txn, log.env.meta, &unwatched, NULL) == 0:
            if mdb_txn_commit(txn) == 0:    # where there is no room for it, the next opening finds the same
                last_txn[0] += 1
            return 0
    mdb_txn_abort(txn)
    return rc


cdef int windowlog_unwatched(StoreEnv* env, uint64_t* last_txn) noexcept nogil:
    """Note that entries may be stored from now on whose ids are not remembered.

    Locality: owner, before the appending thread starts.
    Locks: the library's writer lock.
    """
    cdef uint8_t row[ROW_CRC]
    cdef MDB_txn* txn = NULL
    cdef MDB_val key = key_meta(b"unwatched")
    cdef MDB_val value
    cdef int rc = mdb_txn_begin(env.env, NULL, 0, &txn)
    if rc:
        return rc
    value.mv_data = row
    value.mv_size = ROW_CRC
    row_seal(&key, row, ROW_CRC)
    rc = mdb_put(txn, env.meta, &key, &value, MDB_NOOVERWRITE)
    if rc == 0:
        rc = mdb_txn_commit(txn)
        last_txn[0] += 1 if rc == 0 else 0
        return rc
    mdb_txn_abort(txn)
    return 0 if rc == MDB_KEYEXIST else rc


cdef int windowlog_put(WindowLog* log, MDB_txn* txn, uint64_t start, int64_t at_ms) noexcept nogil:
    """Write the ids of an entry, those from position ``start`` on.  Locality: appending thread."""
    cdef Window* w = &log.dedupe.window
    cdef const WindowPlace* place
    cdef uint8_t raw[KEY_IDS]
    cdef uint8_t* row
    cdef MDB_val key
    cdef MDB_val value
    cdef uint64_t position
    cdef uint64_t n
    cdef size_t size
    cdef int rc
    key.mv_data = raw
    key.mv_size = KEY_IDS
    while start < w.ring.tail:
        n = min(w.ring.tail - start, <uint64_t>ROW_IDS)
        store_be64(raw, start)
        size = <size_t>(IDS_ROW + n * ID_ROW + ROW_CRC)
        value.mv_size = size
        value.mv_data = NULL
        rc = mdb_put(txn, log.env.ids, &key, &value, MDB_RESERVE | MDB_APPEND)
        if rc:
            return rc
        row = <uint8_t*>value.mv_data
        store_be64(row, <uint64_t>at_ms)
        row += IDS_ROW
        for position in range(start, start + n):
            place = window_at(w, position)
            store_be64(row, place.item.high)
            store_be64(row + 8, place.item.low)
            store_be64(row + 16, place.digest)
            row += ID_ROW
        row_seal(&key, <uint8_t*>value.mv_data, size)
        start += n
    return _put_blocks(log, txn)


cdef int windowlog_expire(WindowLog* log, MDB_txn* txn, int64_t now_ms) noexcept nogil:
    """Delete what is past the limits, a bounded number.  Locality: appending thread."""
    cdef const IdRing* ids = dedupe_ids(log.dedupe)
    cdef const IdRing* blocks = dedupe_blocks(log.dedupe)
    cdef int64_t ids_ms
    cdef int64_t rows_ms
    cdef int rc
    log.now_ms = now_ms
    rc = _expire_ids(log, txn, now_ms)
    if rc == 0:
        rc = _expire_blocks(log, txn, now_ms)
    if rc:
        return rc
    ids_ms = idring_youngest(ids, log.until)
    rows_ms = idring_youngest(blocks, log.blocks_until)
    if ids_ms <= ids.gone_ms and rows_ms <= blocks.gone_ms:
        return 0
    return _put_gone(log, txn, max(ids_ms, ids.gone_ms), max(rows_ms, blocks.gone_ms))


cdef int _expire_ids(WindowLog* log, MDB_txn* txn, int64_t now_ms) noexcept nogil:
    """Delete rows whose ids are all past the limits, a bounded number.  Locality: appending thread."""
    cdef const IdRing* r = dedupe_ids(log.dedupe)
    cdef uint64_t due = idring_due(r, now_ms, r.tail - r.kept_tail + STEP_IDS)
    cdef MDB_cursor* cursor = NULL
    cdef MDB_val key
    cdef MDB_val value
    cdef uint64_t behind
    cdef int rc
    log.until = r.head
    if due == r.head:
        return 0
    rc = mdb_cursor_open(txn, log.env.ids, &cursor)
    while rc == 0:
        rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
        if rc:
            break
        if key.mv_size != KEY_IDS or value.mv_size < IDS_ROW + ROW_CRC:
            rc = FAULT_ROW
            break
        behind = load_be64(key.mv_data) + (value.mv_size - IDS_ROW - ROW_CRC) // ID_ROW
        if behind > due:
            break
        rc = mdb_cursor_del(cursor, 0)
        log.until = behind
    if cursor != NULL:
        mdb_cursor_close(cursor)
    if log.until > r.head:
        stage_passed(STAGE_FORGOTTEN)
    return 0 if rc == MDB_NOTFOUND else rc


cdef bint windowlog_is_due(WindowLog* log, int64_t now_ms) noexcept nogil:
    """Tell whether there is enough to forget for a commit of its own.  Locality: appending thread."""
    cdef const IdRing* r = dedupe_ids(log.dedupe)
    cdef uint64_t due = idring_due(r, now_ms, STEP_IDS)
    return due - r.head >= DUE_IDS or (due > r.head and due == r.tail) or _is_due_blocks(log, now_ms)


cdef bint windowlog_writes(WindowLog* log) noexcept nogil:
    """Tell whether rows were put or deleted since the last ``windowlog_settle``.

    Locality: appending thread.
    """
    cdef const IdRing* r = dedupe_ids(log.dedupe)
    return r.tail != r.kept_tail or log.until > r.head or _writes_blocks(log)


cdef void windowlog_settle(WindowLog* log, bint committed) noexcept nogil:
    """Keep or undo the changes of the window after the transaction has ended.  Locality: appending thread."""
    cdef Window* w = &log.dedupe.window
    if committed:
        if log.until > w.ring.head:
            window_drop(w, log.until, log.now_ms)
        window_keep(w)
    else:
        window_undo(w)
    log.until = 0
    _settle_blocks(log, committed)


cdef int _put_gone(WindowLog* log, MDB_txn* txn, int64_t ids_ms, int64_t rows_ms) noexcept nogil:
    """Write the time up to which ids and rows were forgotten early.  Locality: appending thread."""
    cdef uint8_t row[GONE_ROW]
    cdef MDB_val key = key_meta(b"forgotten")
    cdef MDB_val value
    store_be64(row, <uint64_t>ids_ms)
    store_be64(row + 8, <uint64_t>rows_ms)
    row_seal(&key, row, GONE_ROW)
    value.mv_data = row
    value.mv_size = GONE_ROW
    return mdb_put(txn, log.env.meta, &key, &value, 0)


cdef int _load_gone(WindowLog* log, MDB_txn* txn) noexcept nogil:
    """Read the time up to which ids and rows were forgotten early.  Locality: owner."""
    cdef MDB_val key = key_meta(b"forgotten")
    cdef MDB_val value
    cdef int rc = mdb_get(txn, log.env.meta, &key, &value)
    if rc == MDB_NOTFOUND:
        return 0
    if rc == 0 and not row_fits(&key, &value, GONE_ROW):
        rc = FAULT_ROW
    if rc == 0:
        dedupe_gone(
            log.dedupe, <int64_t>load_be64(value.mv_data), <int64_t>load_be64(<uint8_t*>value.mv_data + 8))
    return rc


cdef int _load_ids(Window* w, const MDB_val* key, const MDB_val* value) noexcept nogil:
    """Add the ids of one row.  Locality: owner."""
    cdef const uint8_t* row = <const uint8_t*>value.mv_data
    cdef const uint8_t* end = row + value.mv_size - ROW_CRC
    cdef int64_t at_ms
    if (key.mv_size != KEY_IDS or value.mv_size < IDS_ROW + ROW_CRC
            or (value.mv_size - IDS_ROW - ROW_CRC) % ID_ROW != 0 or not row_fits(key, value, value.mv_size)):
        return FAULT_ROW
    if not idring_begins_at(&w.ring, load_be64(key.mv_data)):
        return FAULT_ROW
    at_ms = <int64_t>load_be64(row)
    row += IDS_ROW
    while row < end:
        if window_add(w, load_be64(row), load_be64(row + 8), load_be64(row + 16), at_ms) != ST_OK:
            return ENOMEM
        row += ID_ROW
    return 0


cdef int _load_blocks(WindowLog* log, MDB_txn* txn) noexcept nogil:
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
            rc = _load_block(&log.dedupe.blocks, &key, &value)
    if cursor != NULL:
        mdb_cursor_close(cursor)
    rowblocks_keep(&log.dedupe.blocks)
    return 0 if rc == MDB_NOTFOUND else rc


cdef int _put_blocks(WindowLog* log, MDB_txn* txn) noexcept nogil:
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


cdef int _expire_blocks(WindowLog* log, MDB_txn* txn, int64_t now_ms) noexcept nogil:
    """Delete blocks past the limits, a bounded number.  Locality: appending thread."""
    cdef const IdRing* r = dedupe_blocks(log.dedupe)
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


cdef bint _is_due_blocks(WindowLog* log, int64_t now_ms) noexcept nogil:
    """Tell whether there is enough to forget for a commit of its own.  Locality: appending thread."""
    cdef const IdRing* r = dedupe_blocks(log.dedupe)
    cdef uint64_t due = idring_due(r, now_ms, STEP_BLOCKS)
    return due - r.head >= DUE_BLOCKS or (due > r.head and due == r.tail)


cdef bint _writes_blocks(WindowLog* log) noexcept nogil:
    """Tell whether the current transaction has changed blocks.  Locality: appending thread."""
    return log.blocks_put > 0 or log.blocks_until > dedupe_blocks(log.dedupe).head


cdef void _settle_blocks(WindowLog* log, bint committed) noexcept nogil:
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


cdef int _load_block(RowBlocks* b, const MDB_val* key, const MDB_val* value) noexcept nogil:
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
