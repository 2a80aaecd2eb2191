"""Visits of the durable store: one read transaction each, in which the pages stay as they are.

Entries of several streams are merged from the index, so that those of other streams are not touched.

Locality: any thread, with a Visit of its own.  Locks: none, except where a function says otherwise.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put, buf_put_slice, buf_reserve
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK, ST_STORE
from dataproxy._core.server.store.env cimport (
    FAULT_CHECKSUM, FAULT_ROW, KEY_ENTRY, KEY_INDEX, KEY_STREAM, STREAM_ROW, StoreEnv, env_names, key_entry, key_index,
    key_name, read_begin, read_end, row_fits,
)
from dataproxy._core.server.store.header cimport HEADER_AT_STREAM, header_check
from dataproxy._core.server.store.reader cimport LogKeys, find_log, find_stream, is_index
from dataproxy._core.plat.endian cimport load_be32, load_be64
from dataproxy._core.plat.lmdb cimport (
    MDB_NEXT, MDB_NOTFOUND, MDB_SET_RANGE, MDB_cursor, MDB_cursor_op, MDB_txn, MDB_val, mdb_cursor_close,
    mdb_cursor_get, mdb_cursor_open, mdb_get,
)

cdef enum:
    TEXTS_MOST = 8388608        # bytes of names that are kept from visit to visit
    SLOTS = 256                 # of a new table


ctypedef struct NameSlot:
    uint64_t key                # log << 32 | number, and 1 more; 0: free
    uint64_t start
    uint64_t size


ctypedef struct Head:           # a stream that is merged
    uint32_t number
    uint64_t offset             # of its next entry; NOWHERE: there is none


cdef uint64_t NOWHERE = <uint64_t>-1


cdef void visit_init(Visit* v) noexcept nogil:
    """Make a visit that wants nothing."""
    memset(v, 0, sizeof(Visit))
    buf_init(&v.seen)
    buf_init(&v.heads)
    buf_init(&v.names.rows)
    buf_init(&v.names.texts)


cdef void visit_free(Visit* v) noexcept nogil:
    """Release the memory of a visit."""
    buf_free(&v.seen)
    buf_free(&v.heads)
    buf_free(&v.names.rows)
    buf_free(&v.names.texts)


cdef int visit_add(Visit* v, uint64_t offset, Slice value, Slice stream, uint32_t number) noexcept nogil:
    """Add an entry that was seen, if there is not enough."""
    cdef Seen one
    cdef size_t n = v.seen.n // sizeof(Seen)
    cdef size_t counted = value.n - min(value.n, v.around)
    if n > 0 and (n >= v.most_entries or v.counted >= v.enough_bytes or v.counted + counted > v.most_bytes):
        return ST_LIMIT
    v.counted += counted
    one.offset = offset
    one.value = value
    one.stream = stream
    one.number = number
    v.seen_bytes += value.n
    return buf_put(&v.seen, &one, sizeof(Seen))


cdef int visit_durable(void* store, Visit* v) noexcept nogil:
    """Look at entries of a log.  Locks: takes the environment's mutex; ``place`` and ``take`` are called without it."""
    cdef StoreEnv* e = <StoreEnv*>store
    cdef MDB_txn* txn = NULL
    cdef uint64_t floor = 0, generation = 0
    cdef LogKeys log
    cdef int status
    cdef int rc = read_begin(e, &txn)
    v.seen.n = v.seen_bytes = v.counted = 0
    v.error = 0
    if rc:
        return _failed(v, rc)
    memset(&log, 0, sizeof(log))
    rc = env_names(e, txn, &floor, &generation)
    if rc == 0:
        log.first = log.next = floor
        rc = find_log(e, txn, v.topic, v.partition, &log)
    if rc == 0 or rc == MDB_NOTFOUND:
        v.first, v.next, v.tally = log.first, log.next, log.tally
        if rc == 0:
            v.log = log.id
        v.stop = v.next
        status = v.place(v.context)
        if status == ST_OK and rc == 0:
            status = _gather(e, txn, &log, v)
        if status == ST_OK:
            status = _check(v, &log)
        if status == ST_OK:
            status = _name(e, txn, &log, generation, v)
        if status == ST_OK:
            status = v.take(v.context)
    else:
        status = _failed(v, rc)
    read_end(e, txn)
    return status


cdef int _failed(Visit* v, int rc) noexcept nogil:
    v.error = rc
    return ST_STORE


cdef int _damaged(Visit* v, uint64_t offset) noexcept nogil:
    """Return the status of a visit that met a damaged entry: what is before it is given first."""
    if v.seen.n > 0:
        v.stop = offset
        return ST_OK
    v.damaged = offset
    return _failed(v, FAULT_CHECKSUM)


cdef int _gather(StoreEnv* e, MDB_txn* txn, const LogKeys* log, Visit* v) noexcept nogil:
    """Add entries from ``v.offset`` on."""
    cdef MDB_cursor* cursor = NULL
    cdef int status
    cdef int rc
    if v.offset >= log.next:
        return ST_OK
    rc = mdb_cursor_open(txn, e.index if v.n_streams else e.entries, &cursor)
    if rc:
        return _failed(v, rc)
    status = _gather_some(e, txn, cursor, log, v) if v.n_streams else _gather_all(cursor, log, v)
    mdb_cursor_close(cursor)
    return status


cdef int _gather_all(MDB_cursor* cursor, const LogKeys* log, Visit* v) noexcept nogil:
    """Add entries of all streams; a missing offset is damage."""
    cdef uint8_t raw[KEY_ENTRY]
    cdef uint64_t at = v.offset
    cdef MDB_val key = key_entry(raw, log.id, at)
    cdef MDB_val value
    cdef MDB_cursor_op op = MDB_SET_RANGE
    cdef int status
    cdef int rc
    while at < log.next:
        rc = mdb_cursor_get(cursor, &key, &value, op)
        if rc != 0 and rc != MDB_NOTFOUND:
            return _failed(v, rc)
        if (rc or key.mv_size != KEY_ENTRY or load_be32(key.mv_data) != log.id
                or load_be64(<uint8_t*>key.mv_data + 4) != at):
            return _damaged(v, at)
        status = _add(v, &value, at)
        if status != ST_OK or v.stop == at:
            return status
        at += 1
        op = MDB_NEXT
    return ST_OK


cdef int _add(Visit* v, const MDB_val* value, uint64_t at) noexcept nogil:
    """Add an entry, whose bytes are not looked at yet.  Where it is one too many, ``v.stop`` becomes its offset."""
    cdef int status = visit_add(v, at, slice_of(<const uint8_t*>value.mv_data, value.mv_size), slice_of(NULL, 0), 0)
    if status == ST_LIMIT:
        v.stop = at
        return ST_OK
    return status


cdef int _check(Visit* v, const LogKeys* log) noexcept nogil:
    """Compare checksums, and take the numbers of streams; what is behind a damaged entry is not seen."""
    cdef Seen* seen = <Seen*>v.seen.p
    cdef uint8_t raw[KEY_ENTRY]
    cdef MDB_val key
    cdef size_t i, n = v.seen.n // sizeof(Seen)
    cdef size_t bytes = 0
    for i in range(n):
        seen_ahead(seen, n, i)
        key = key_entry(raw, log.id, seen[i].offset)
        if header_check(seen[i].value.p, seen[i].value.n, key.mv_data, KEY_ENTRY, True) != ST_OK:
            v.seen.n, v.seen_bytes = i * sizeof(Seen), bytes
            return _damaged(v, seen[i].offset)
        seen[i].number = load_be32(seen[i].value.p + HEADER_AT_STREAM)
        bytes += seen[i].value.n
    return ST_OK


cdef int _next_of(MDB_cursor* cursor, uint32_t log, Head* head, uint64_t least, MDB_cursor_op op) noexcept nogil:
    """Move a stream to its first entry from an offset on: 0 or an error."""
    cdef uint8_t raw[KEY_INDEX]
    cdef MDB_val key = key_index(raw, log, head.number, least)
    cdef MDB_val value
    cdef int rc = mdb_cursor_get(cursor, &key, &value, op)
    head.offset = NOWHERE
    if rc == 0 and is_index(&key, log, head.number):
        head.offset = load_be64(<uint8_t*>key.mv_data + 8)
    return 0 if rc == MDB_NOTFOUND else rc


cdef int _open_heads(StoreEnv* e, MDB_txn* txn, MDB_cursor* cursor, const LogKeys* log, Visit* v) noexcept nogil:
    """Find where each stream goes on; one without entries there is left out."""
    cdef Head head
    cdef size_t i
    cdef int rc
    v.heads.n = 0
    for i in range(v.n_streams):
        rc = find_stream(e, txn, log.id, v.streams[i], &head.number)
        if rc == 0:
            rc = _next_of(cursor, log.id, &head, v.offset, MDB_SET_RANGE)
            if rc == 0 and head.offset != NOWHERE and buf_put(&v.heads, &head, sizeof(Head)) != ST_OK:
                return ST_NO_MEMORY
        if rc != 0 and rc != MDB_NOTFOUND:
            return _failed(v, rc)
    return ST_OK


cdef int _gather_some(StoreEnv* e, MDB_txn* txn, MDB_cursor* cursor, const LogKeys* log, Visit* v) noexcept nogil:
    """Add entries of some streams, by their offsets."""
    cdef uint8_t raw[KEY_ENTRY]
    cdef Head* heads
    cdef Head* least
    cdef MDB_val key
    cdef MDB_val value
    cdef uint64_t at
    cdef size_t i, n
    cdef int rc
    cdef int status = _open_heads(e, txn, cursor, log, v)
    heads = <Head*>v.heads.p
    n = v.heads.n // sizeof(Head)
    while status == ST_OK:
        least = NULL
        for i in range(n):
            if heads[i].offset != NOWHERE and (least == NULL or heads[i].offset < least.offset):
                least = &heads[i]
        if least == NULL:
            return ST_OK
        at = least.offset
        key = key_entry(raw, log.id, at)
        rc = mdb_get(txn, e.entries, &key, &value)
        if rc == MDB_NOTFOUND or (rc == 0 and value.mv_size < HEADER_AT_STREAM + 4) or (
                rc == 0 and load_be32(<const uint8_t*>value.mv_data + HEADER_AT_STREAM) != least.number):
            return _damaged(v, at)
        if rc:
            return _failed(v, rc)
        status = _add(v, &value, at)
        if status != ST_OK or v.stop == at:
            return status
        # Asked for one stream, the cursor stands at the entry that was just added.
        rc = _next_of(cursor, log.id, least, at + 1, MDB_NEXT if v.n_streams == 1 else MDB_SET_RANGE)
        if rc:
            return _failed(v, rc)
    return status


cdef inline void _forget_names(StreamNames* names, uint64_t generation) noexcept nogil:
    names.rows.n = names.texts.n = names.count = 0
    names.generation = generation


cdef int _name(StoreEnv* e, MDB_txn* txn, const LogKeys* log, uint64_t generation, Visit* v) noexcept nogil:
    """Set the names of the streams of what was seen."""
    cdef Seen* seen = <Seen*>v.seen.p
    cdef size_t i, n = v.seen.n // sizeof(Seen)
    cdef const NameSlot* slot
    cdef int status
    if v.names.generation != generation:
        _forget_names(&v.names, generation)
    for i in range(n):
        if _slot(&v.names, log.id, seen[i].number) == NULL:
            if v.names.texts.n > TEXTS_MOST:
                _forget_names(&v.names, generation)
            status = _learn(e, txn, log, v)
            if status != ST_OK:
                return status
            break
    for i in range(n):
        slot = _slot(&v.names, log.id, seen[i].number)
        if slot == NULL:
            return _failed(v, FAULT_ROW)
        seen[i].stream = slice_of(v.names.texts.p + slot.start, slot.size)
    return ST_OK


cdef int _learn(StoreEnv* e, MDB_txn* txn, const LogKeys* log, Visit* v) noexcept nogil:
    """Take the names of all streams of a log that are not known."""
    cdef uint8_t raw[KEY_STREAM]
    cdef MDB_cursor* cursor = NULL
    cdef MDB_cursor_op op = MDB_SET_RANGE
    cdef MDB_val key = key_name(raw, log.id, slice_of(NULL, 0))
    cdef MDB_val value
    cdef int status = ST_OK
    cdef int rc = mdb_cursor_open(txn, e.streams, &cursor)
    if rc:
        return _failed(v, rc)
    while status == ST_OK:
        rc = mdb_cursor_get(cursor, &key, &value, op)
        op = MDB_NEXT
        if rc or key.mv_size < 4 or load_be32(key.mv_data) != log.id:
            break
        if not row_fits(&key, &value, STREAM_ROW):
            rc = FAULT_ROW
            break
        status = _keep(&v.names, log.id, load_be32(value.mv_data),
                       slice_of(<const uint8_t*>key.mv_data + 4, key.mv_size - 4))
    mdb_cursor_close(cursor)
    return status if rc == 0 or rc == MDB_NOTFOUND else _failed(v, rc)


cdef inline uint64_t _mixed(uint64_t key) noexcept nogil:
    return (key * <uint64_t>0x9E3779B97F4A7C15) >> 20


cdef NameSlot* _place(const StreamNames* names, uint64_t key) noexcept nogil:
    """Return the slot of a key, or the free one where it belongs.  The hub makes these numbers, so no peer can aim."""
    cdef NameSlot* slots = <NameSlot*>names.rows.p
    cdef size_t mask = names.rows.n // sizeof(NameSlot) - 1
    cdef size_t i = _mixed(key) & mask
    while slots[i].key != 0 and slots[i].key != key:
        i = (i + 1) & mask
    return &slots[i]


cdef const NameSlot* _slot(const StreamNames* names, uint32_t log, uint32_t number) noexcept nogil:
    """Return where a name is, or NULL."""
    cdef const NameSlot* slot
    if names.rows.n == 0:
        return NULL
    slot = _place(names, (<uint64_t>log << 32 | number) + 1)
    return slot if slot.key != 0 else NULL


cdef int _keep(StreamNames* names, uint32_t log, uint32_t number, Slice name) noexcept nogil:
    """Keep a name; ST_OK or ST_NO_MEMORY."""
    cdef NameSlot* slot
    if 2 * (names.count + 1) * sizeof(NameSlot) > names.rows.n and _widen(names) != ST_OK:
        return ST_NO_MEMORY
    slot = _place(names, (<uint64_t>log << 32 | number) + 1)
    if slot.key != 0:
        return ST_OK
    slot.start = names.texts.n
    slot.size = name.n
    if buf_put_slice(&names.texts, name) != ST_OK:
        return ST_NO_MEMORY
    slot.key = (<uint64_t>log << 32 | number) + 1
    names.count += 1
    return ST_OK


cdef int _widen(StreamNames* names) noexcept nogil:
    """Double the table; ST_OK or ST_NO_MEMORY."""
    cdef Buf before = names.rows
    cdef const NameSlot* slots = <const NameSlot*>before.p
    cdef size_t i, size = 2 * before.n if before.n else SLOTS * sizeof(NameSlot)
    buf_init(&names.rows)
    if buf_reserve(&names.rows, size) != ST_OK:
        names.rows = before
        return ST_NO_MEMORY
    memset(names.rows.p, 0, size)
    names.rows.n = size
    for i in range(before.n // sizeof(NameSlot)):
        if slots[i].key != 0:
            _place(names, slots[i].key)[0] = slots[i]
    buf_free(&before)
    return ST_OK
