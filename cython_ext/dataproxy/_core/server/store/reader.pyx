"""Read batches, and the reader of the durable store (one short read transaction for each call).

Locks: none, except where a function says otherwise.
"""

from libc.stddef cimport size_t
from libc.stdint cimport SIZE_MAX, UINT32_MAX, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport buf_free, buf_init, buf_put, buf_put_slice
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_STORE
from dataproxy._core.server.store.header cimport HEADER_AT_STREAM, header_check
from dataproxy._core.server.store.catalog cimport CATALOG_NAME_MAX
from dataproxy._core.server.store.env cimport (
    FAULT_CHECKSUM,
    FAULT_ROW,
    KEY_ENTRY,
    KEY_INDEX,
    KEY_LOG,
    KEY_STREAM,
    LOG_ROW,
    STREAM_ROW,
    StoreEnv,
    env_names,
    key_entry,
    key_index,
    key_name,
    read_begin,
    read_end,
    row_fits,
)
from dataproxy._core.plat.endian cimport load_be32, load_be64
from dataproxy._core.plat.lmdb cimport (
    MDB_FIRST,
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

cdef ReaderOps _durable
_durable.read = _read
_durable.offsets = _offsets
_durable.logs = _logs
_durable.streams = _streams


cdef const ReaderOps* durable_reader() noexcept nogil:
    """Return the reader of durable stores.  Locality: any thread."""
    return &_durable


cdef void batch_init(ReadBatch* batch) noexcept nogil:
    """Make an empty batch.  Locality: owner."""
    buf_init(&batch.rows)
    buf_init(&batch.data)
    batch.error = 0


cdef void batch_free(ReadBatch* batch) noexcept nogil:
    """Release the memory of a batch.  Locality: owner."""
    buf_free(&batch.rows)
    buf_free(&batch.data)


cdef void batch_clear(ReadBatch* batch) noexcept nogil:
    """Empty a batch and keep its memory.  Locality: owner."""
    batch.rows.n = 0
    batch.data.n = 0
    batch.error = 0


cdef int batch_add(ReadBatch* batch, uint64_t offset, const void* p, size_t n) noexcept nogil:
    """Append one entry.  Locality: owner."""
    cdef ReadRow row
    row.offset = offset
    row.start = batch.data.n
    row.size = n
    if buf_put(&batch.data, p, n) != ST_OK:
        return ST_NO_MEMORY
    return buf_put(&batch.rows, &row, sizeof(row))


cdef int batch_add_name(ReadBatch* batch, NameRow* row, Slice topic, Slice name) noexcept nogil:
    """Append one log or stream row with its names.  Locality: owner."""
    row.start = batch.data.n
    row.topic_size = <uint32_t>topic.n
    row.name_size = <uint32_t>name.n
    if buf_put_slice(&batch.data, topic) != ST_OK or buf_put_slice(&batch.data, name) != ST_OK:
        return ST_NO_MEMORY
    return buf_put(&batch.rows, row, sizeof(NameRow))


cdef int _settle(ReadBatch* out, int rc) noexcept nogil:
    """Turn a library result into a status.  Locality: any thread."""
    if rc == 0 or rc == MDB_NOTFOUND:
        return ST_OK
    out.error = rc
    return ST_STORE


cdef int _read(void* store, Slice topic, uint32_t partition, const Slice* stream, uint64_t offset,
               size_t max_entries, size_t max_bytes, ReadBatch* out) noexcept nogil:
    """Read entries.  Locality: any thread.  Locks: takes the environment's mutex."""
    cdef StoreEnv* e = <StoreEnv*>store
    cdef MDB_txn* txn = NULL
    cdef LogKeys log
    cdef uint64_t floor
    cdef int status
    cdef int rc
    batch_clear(out)
    rc = read_begin(e, &txn)
    if rc:
        return _settle(out, rc)
    rc = env_names(e, txn, &floor, &out.generation)
    if rc == 0:
        rc = find_log(e, txn, topic, partition, &log)
    if rc:
        status = _settle(out, rc)
    elif stream == NULL:
        status = _read_log(e, txn, &log, offset, max_entries, max_bytes, out)
    else:
        status = _read_stream(e, txn, &log, stream[0], offset, max_entries, max_bytes, out)
    read_end(e, txn)
    return status


cdef int _read_log(StoreEnv* e, MDB_txn* txn, LogKeys* log, uint64_t offset, size_t max_entries, size_t max_bytes,
                   ReadBatch* out) noexcept nogil:
    """Copy entries of all streams in one transaction; a missing offset at or after the log's first is damage.

    Locality: any thread.
    """
    cdef uint8_t key_raw[KEY_ENTRY]
    cdef uint64_t place = offset if offset > log.first else log.first
    cdef MDB_cursor* cursor = NULL
    cdef MDB_val key = key_entry(key_raw, log.id, place)
    cdef MDB_val value
    cdef MDB_cursor_op op = MDB_SET_RANGE
    cdef size_t n = 0
    cdef int status = ST_OK
    cdef int rc = mdb_cursor_open(txn, e.entries, &cursor)
    if rc:
        return _settle(out, rc)
    while n < max_entries and status == ST_OK and (n == 0 or out.data.n < max_bytes):
        rc = mdb_cursor_get(cursor, &key, &value, op)
        if rc == MDB_NOTFOUND or rc == 0 and (key.mv_size != KEY_ENTRY or load_be32(key.mv_data) != log.id):
            rc = _damaged(out, place) if place < log.next else 0
            break
        if rc:
            break
        if (load_be64(<uint8_t*>key.mv_data + 4) != place
                or header_check(<const uint8_t*>value.mv_data, value.mv_size, key.mv_data, KEY_ENTRY, True) != ST_OK):
            rc = _damaged(out, place)
            break
        status = batch_add(out, place, value.mv_data, value.mv_size)
        place += 1
        op = MDB_NEXT
        n += 1
    mdb_cursor_close(cursor)
    return status if status != ST_OK else _settle(out, rc)


cdef int _read_stream(StoreEnv* e, MDB_txn* txn, LogKeys* log, Slice stream, uint64_t offset, size_t max_entries,
                      size_t max_bytes, ReadBatch* out) noexcept nogil:
    """Copy entries of one stream out of one transaction.  Locality: any thread."""
    cdef uint8_t key_raw[KEY_INDEX]
    cdef uint8_t entry_raw[KEY_ENTRY]
    cdef MDB_cursor* cursor = NULL
    cdef MDB_val key
    cdef MDB_val entry
    cdef MDB_val value
    cdef MDB_cursor_op op = MDB_SET_RANGE
    cdef uint32_t number = 0
    cdef uint64_t at
    cdef size_t n = 0
    cdef int status = ST_OK
    cdef int rc = find_stream(e, txn, log.id, stream, &number)
    if rc == 0:
        rc = mdb_cursor_open(txn, e.index, &cursor)
    if rc:
        return _settle(out, rc)
    key = key_index(key_raw, log.id, number, offset)
    while n < max_entries and status == ST_OK and (n == 0 or out.data.n < max_bytes):
        rc = mdb_cursor_get(cursor, &key, &value, op)
        if rc or not is_index(&key, log.id, number):
            break
        at = load_be64(<uint8_t*>key.mv_data + 8)
        entry = key_entry(entry_raw, log.id, at)
        rc = mdb_get(txn, e.entries, &entry, &value)
        if rc:
            rc = _damaged(out, at) if rc == MDB_NOTFOUND else rc
            break
        if (header_check(<const uint8_t*>value.mv_data, value.mv_size, entry.mv_data, KEY_ENTRY, True) != ST_OK
                or load_be32(<const uint8_t*>value.mv_data + HEADER_AT_STREAM) != number):
            rc = _damaged(out, at)          # also one of another stream, which the index has no reason to name
            break
        status = batch_add(out, at, value.mv_data, value.mv_size)
        op = MDB_NEXT
        n += 1
    mdb_cursor_close(cursor)
    return status if status != ST_OK else _settle(out, rc)


cdef int _damaged(ReadBatch* out, uint64_t offset) noexcept nogil:
    """Return the result of a read that met a damaged entry: the entries before it are given first.

    Locality: any thread.
    """
    if out.rows.n:
        return 0
    out.damaged = offset
    return FAULT_CHECKSUM


cdef int _offsets(void* store, Slice topic, uint32_t partition, Slice stream, uint64_t start, size_t n,
                  ReadBatch* out) noexcept nogil:
    """Read offsets of one stream from the index.  Locality: any thread.  Locks: takes the environment's mutex."""
    cdef StoreEnv* e = <StoreEnv*>store
    cdef uint8_t key_raw[KEY_INDEX]
    cdef MDB_txn* txn = NULL
    cdef MDB_cursor* cursor = NULL
    cdef MDB_cursor_op op = MDB_SET_RANGE
    cdef MDB_val key
    cdef MDB_val value
    cdef LogKeys log
    cdef uint32_t number = 0
    cdef int status = ST_OK
    cdef int rc
    batch_clear(out)
    rc = read_begin(e, &txn)
    if rc:
        return _settle(out, rc)
    rc = find_log(e, txn, topic, partition, &log)
    if rc == 0:
        rc = find_stream(e, txn, log.id, stream, &number)
    if rc == 0:
        rc = mdb_cursor_open(txn, e.index, &cursor)
    if rc == 0:
        key = key_index(key_raw, log.id, number, start)
    while rc == 0 and status == ST_OK and n > 0:
        rc = mdb_cursor_get(cursor, &key, &value, op)
        if rc or not is_index(&key, log.id, number):
            break
        status = batch_add(out, load_be64(<uint8_t*>key.mv_data + 8), NULL, 0)
        op = MDB_NEXT
        n -= 1
    if cursor != NULL:
        mdb_cursor_close(cursor)
    read_end(e, txn)
    return status if status != ST_OK else _settle(out, rc)


cdef int _logs(void* store, const Slice* topic, ReadBatch* out) noexcept nogil:
    """Read all log rows, or those of a topic.  Locality: any thread.  Locks: takes the environment's mutex."""
    if topic != NULL:
        return _topic_logs(<StoreEnv*>store, topic[0], out)
    return _names(<StoreEnv*>store, False, NULL, SIZE_MAX, out)


cdef int _topic_logs(StoreEnv* e, Slice topic, ReadBatch* out) noexcept nogil:
    """Read the log rows of a topic: one row is looked up in each partition that some topic has.

    Locality: any thread.
    Locks: takes the environment's mutex.
    """
    cdef uint8_t raw[KEY_LOG]
    cdef MDB_txn* txn = NULL
    cdef MDB_cursor* cursor = NULL
    cdef MDB_val key
    cdef NameRow row
    cdef uint64_t floor
    cdef uint64_t partition = 0
    cdef int status = ST_OK
    cdef int rc
    batch_clear(out)
    if topic.n == 0 or topic.n > CATALOG_NAME_MAX:
        return ST_OK
    rc = read_begin(e, &txn)
    if rc:
        return _settle(out, rc)
    rc = env_names(e, txn, &floor, &out.generation)
    if rc == 0:
        rc = mdb_cursor_open(txn, e.logs, &cursor)
    while rc == 0 and status == ST_OK and partition <= UINT32_MAX:
        key = key_name(raw, <uint32_t>partition, topic)
        rc = _log_row(cursor, MDB_SET_RANGE, &key, &row)
        if rc:
            break
        if row.partition != partition:      # no topic has those between
            partition = row.partition
            continue
        partition += 1
        if slice_equals(_topic_of(&key), topic):
            status = batch_add_name(out, &row, topic, slice_of(NULL, 0))
    if cursor != NULL:
        mdb_cursor_close(cursor)
    read_end(e, txn)
    return status if status != ST_OK else _settle(out, rc)


cdef int _streams(void* store, const NamePlace* after, size_t most, ReadBatch* out) noexcept nogil:
    """Read stream rows.  Locality: any thread.  Locks: takes the environment's mutex."""
    return _names(<StoreEnv*>store, True, after, most, out)


cdef int _names(StoreEnv* e, bint streams, const NamePlace* after, size_t most, ReadBatch* out) noexcept nogil:
    """Read the log rows, with ``streams`` up to ``most`` stream rows behind ``after``, by log and by name.

    Locality: any thread.
    Locks: takes the environment's mutex.
    """
    cdef uint8_t key_raw[KEY_LOG]
    cdef MDB_txn* txn = NULL
    cdef MDB_cursor* cursor = NULL
    cdef MDB_cursor_op op = MDB_FIRST
    cdef MDB_val key
    cdef NameRow row
    cdef uint64_t floor
    cdef int status = ST_OK
    cdef int rc
    batch_clear(out)
    rc = read_begin(e, &txn)
    if rc:
        return _settle(out, rc)
    rc = env_names(e, txn, &floor, &out.generation)
    if rc == 0:
        rc = mdb_cursor_open(txn, e.logs, &cursor)
    if rc:
        read_end(e, txn)
        return _settle(out, rc)
    if after != NULL:
        key = key_name(key_raw, after.partition, after.topic)
        op = MDB_SET_RANGE
    while status == ST_OK and out.rows.n // sizeof(NameRow) < most:
        rc = _log_row(cursor, op, &key, &row)
        op = MDB_NEXT
        if rc:
            break
        if streams:
            status = _log_streams(e, txn, &row, _topic_of(&key), after, most, out)
        else:
            status = batch_add_name(out, &row, _topic_of(&key), slice_of(NULL, 0))
    mdb_cursor_close(cursor)
    read_end(e, txn)
    return status if status != ST_OK else _settle(out, rc)


cdef inline Slice _topic_of(const MDB_val* key) noexcept nogil:
    """Return the topic in a log row's key.  Locality: any thread."""
    return slice_of(<const uint8_t*>key.mv_data + 4, key.mv_size - 4)


cdef int _log_row(MDB_cursor* cursor, MDB_cursor_op op, MDB_val* key, NameRow* row) noexcept nogil:
    """Move to a log row and take it apart: 0, MDB_NOTFOUND or an error.  Locality: any thread."""
    cdef MDB_val value
    cdef const uint8_t* p
    cdef int rc = mdb_cursor_get(cursor, key, &value, op)
    if rc:
        return rc
    if not row_fits(key, &value, LOG_ROW) or key.mv_size < 4:
        return FAULT_ROW
    p = <const uint8_t*>value.mv_data
    row.partition = load_be32(<const uint8_t*>key.mv_data)
    row.log = load_be32(p)
    row.stream = 0
    row.first = load_be64(p + 4)
    row.next = load_be64(p + 12)
    row.tally.entries = load_be64(p + 20)
    row.tally.records = load_be64(p + 28)
    row.tally.bytes = load_be64(p + 36)
    return 0


cdef int _log_streams(StoreEnv* e, MDB_txn* txn, NameRow* row, Slice topic, const NamePlace* after, size_t most,
                      ReadBatch* out) noexcept nogil:
    """Read the stream rows of one log, those behind ``after`` if that is in this log.

    Locality: any thread.
    """
    cdef uint8_t key_raw[KEY_STREAM]
    cdef MDB_cursor* cursor = NULL
    cdef MDB_cursor_op op = MDB_SET_RANGE
    cdef bint within = after != NULL and after.partition == row.partition and slice_equals(after.topic, topic)
    cdef Slice name = after.name if within else slice_of(NULL, 0)
    cdef MDB_val key = key_name(key_raw, row.log, name)
    cdef MDB_val value
    cdef int status = ST_OK
    cdef int rc = mdb_cursor_open(txn, e.streams, &cursor)
    if rc:
        return _settle(out, rc)
    while status == ST_OK and out.rows.n // sizeof(NameRow) < most:
        rc = mdb_cursor_get(cursor, &key, &value, op)
        op = MDB_NEXT
        if rc or key.mv_size < 4 or load_be32(key.mv_data) != row.log:
            break
        if within and slice_equals(slice_of(<uint8_t*>key.mv_data + 4, key.mv_size - 4), name):
            continue
        if not row_fits(&key, &value, STREAM_ROW):
            rc = FAULT_ROW
            break
        row.stream = load_be32(value.mv_data)
        row.tally.entries = load_be64(<uint8_t*>value.mv_data + 4)
        row.tally.records = load_be64(<uint8_t*>value.mv_data + 12)
        row.tally.bytes = load_be64(<uint8_t*>value.mv_data + 20)
        status = batch_add_name(out, row, topic, slice_of(<uint8_t*>key.mv_data + 4, key.mv_size - 4))
    mdb_cursor_close(cursor)
    return status if status != ST_OK else _settle(out, rc)


cdef bint is_index(const MDB_val* key, uint32_t log, uint32_t stream) noexcept nogil:
    """Tell whether the key is an index row of this stream.  Locality: any thread."""
    return (key.mv_size == KEY_INDEX and load_be32(key.mv_data) == log
            and load_be32(<uint8_t*>key.mv_data + 4) == stream)


cdef int find_log(StoreEnv* e, MDB_txn* txn, Slice topic, uint32_t partition, LogKeys* out) noexcept nogil:
    """Find a log: 0, MDB_NOTFOUND or an error.  Locality: any thread."""
    cdef uint8_t raw[KEY_LOG]
    cdef MDB_val key
    cdef MDB_val value
    cdef int rc
    if topic.n == 0 or topic.n > CATALOG_NAME_MAX:
        return MDB_NOTFOUND
    key = key_name(raw, partition, topic)
    rc = mdb_get(txn, e.logs, &key, &value)
    if rc:
        return rc
    if not row_fits(&key, &value, LOG_ROW):
        return FAULT_ROW
    out.id = load_be32(value.mv_data)
    out.first = load_be64(<uint8_t*>value.mv_data + 4)
    out.next = load_be64(<uint8_t*>value.mv_data + 12)
    out.tally.entries = load_be64(<uint8_t*>value.mv_data + 20)
    out.tally.records = load_be64(<uint8_t*>value.mv_data + 28)
    out.tally.bytes = load_be64(<uint8_t*>value.mv_data + 36)
    return 0


cdef int find_stream(StoreEnv* e, MDB_txn* txn, uint32_t log, Slice name, uint32_t* number) noexcept nogil:
    """Find the number of a stream by its name: 0, MDB_NOTFOUND or an error.

    Locality: any thread.
    """
    cdef uint8_t raw[KEY_STREAM]
    cdef MDB_val key
    cdef MDB_val value
    cdef int rc
    if name.n > CATALOG_NAME_MAX:
        return MDB_NOTFOUND
    key = key_name(raw, log, name)
    rc = mdb_get(txn, e.streams, &key, &value)
    if rc:
        return rc
    if not row_fits(&key, &value, STREAM_ROW):
        return FAULT_ROW
    number[0] = load_be32(value.mv_data)
    return 0
