"""Appending to the durable store: one transaction for each chain, on disk when the call returns.

Locks: none, except where a function says otherwise.
"""

from libc.errno cimport ENOMEM
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.status cimport ST_DISK_FULL, ST_LIMIT, ST_OK, ST_STORE
from dataproxy._core.server.store.window.dedupe cimport Rest, dedupe_entry, dedupe_ids
from dataproxy._core.server.entries cimport ENTRY_MESSAGES, Entry, StoreOps
from dataproxy._core.server.store.header cimport HEADER_FIXED, header_place, header_seal
from dataproxy._core.server.store.stages cimport STAGE_PUT, stage_passed
from dataproxy._core.server.store.catalog cimport (
    LogStat, StreamStat, catalog_added, catalog_log, catalog_stream, catalog_takes,
)
from dataproxy._core.server.store.clock cimport storeclock_now
from dataproxy._core.server.store.env cimport KEY_ENTRY, KEY_INDEX, key_entry, key_index
from dataproxy._core.server.store.offsets cimport offsets_put
from dataproxy._core.server.store.retain cimport names_make_room, store_retain
from dataproxy._core.server.store.txn cimport (
    ENTRY_OVERHEAD,
    Store,
    store_begin,
    store_finish,
    store_grow,
    store_has_room,
    store_is_full,
    store_refused,
    store_took,
)
from dataproxy._core.server.store.window.windowlog cimport windowlog_expire, windowlog_put
from dataproxy._core.plat.lmdb cimport MDB_MAP_FULL, MDB_RESERVE, MDB_txn, MDB_val, mdb_put

cdef StoreOps _ops
_ops.append = _append
_ops.retain = store_retain


cdef const StoreOps* store_ops() noexcept nogil:
    """Return the operations of the durable store.  Locality: any thread."""
    return &_ops


cdef void _append(void* self, Entry* chain) noexcept nogil:
    """Append a chain as one commit.

    Locality: appending thread.
    Locks: the library's writer lock.
    """
    cdef Store* store = <Store*>self
    cdef uint64_t wanted = _wanted(chain)
    cdef uint64_t before
    cdef int rc = MDB_MAP_FULL
    names_make_room(store, _count(chain))
    before = store.catalog.now.entries
    if wanted == 0 or store_has_room(store, wanted):
        rc = _commit(store, chain, True)
        while store_grow(store, rc):
            rc = _commit(store, chain, True)
    if rc:
        if wanted or not store_is_full(rc):
            store_refused(store, rc, wanted)
        _settle_chain(chain, _refusal(rc))
        if wanted and _has_offsets(chain):      # these need hardly any room
            _settle_offsets(chain, ST_OK if _commit(store, chain, False) == 0 else _refusal(rc))
    elif store.catalog.now.entries > before:    # else nothing was written: refused names, messages that came before
        store_took(store)


cdef int _commit(Store* store, Entry* chain, bint messages) noexcept nogil:
    """Put a chain, or (not ``messages``) its positions, in one transaction: 0 or an error, then nothing is stored.

    Locality: appending thread.
    Locks: the library's writer lock.
    """
    cdef MDB_txn* txn = NULL
    cdef int64_t now_ms = storeclock_now(&store.clock)
    cdef int rc = store_begin(store, &txn)
    if rc:
        return rc
    while chain != NULL and rc == 0:
        if chain.kind != ENTRY_MESSAGES:
            chain.status = ST_OK
            rc = offsets_put(store, txn, chain)
        elif messages:
            chain.status = ST_OK
            rc = _put_entry(store, txn, chain, now_ms)
        chain = chain.next
    stage_passed(STAGE_PUT)
    if rc == 0 and store.window != NULL:
        rc = windowlog_expire(store.window, txn, now_ms)
    return store_finish(store, txn, rc)


cdef int _put_entry(Store* store, MDB_txn* txn, Entry* entry, int64_t now_ms) noexcept nogil:
    """Put the new messages of one entry.

    If a name is over its limit, or there is no room for it, only this entry is refused.
    Returns 0 or an error that fails the commit.
    Locality: appending thread.
    """
    cdef LogStat* log = NULL
    cdef StreamStat* stream = NULL
    cdef Rest rest
    cdef uint64_t start
    cdef int rc
    cdef int status = ST_LIMIT
    rest.value = entry.value
    rest.records = entry.records
    if catalog_takes(entry.group, entry.stream) and entry.value.n >= HEADER_FIXED:
        status = catalog_log(&store.catalog, entry.group, entry.partition, &log)
    if status == ST_OK:
        status = catalog_stream(&store.catalog, log, entry.stream, &stream)
    if status == ST_LIMIT:
        entry.status = ST_LIMIT
        return 0
    if status != ST_OK:
        return ENOMEM
    if store.window != NULL and entry.ids.n:
        start = dedupe_ids(store.window.dedupe).tail
        if dedupe_entry(store.window.dedupe, entry, now_ms, &rest) != ST_OK:
            return ENOMEM
        rc = windowlog_put(store.window, txn, start, now_ms)
        if rc or (entry.duplicates and rest.records == 0):
            return rc
    entry.offset = log.next
    entry.log = log.id
    return _put_value(store, txn, stream, now_ms, &rest)


cdef int _put_value(Store* store, MDB_txn* txn, StreamStat* stream, int64_t now_ms, const Rest* rest) noexcept nogil:
    """Put a value with its checksums and its index row at the next offset of the log: 0 or an error.

    Locality: appending thread.
    """
    cdef uint8_t raw[KEY_ENTRY]
    cdef uint8_t index_raw[KEY_INDEX]
    cdef LogStat* log = stream.log
    cdef MDB_val key = key_entry(raw, log.id, log.next)
    cdef MDB_val value
    cdef int rc
    value.mv_size = rest.value.n
    value.mv_data = NULL
    rc = mdb_put(txn, store.env.entries, &key, &value, MDB_RESERVE)
    if rc:
        return rc
    memcpy(value.mv_data, rest.value.p, rest.value.n)
    header_place(<uint8_t*>value.mv_data, stream.id, now_ms)
    header_seal(<uint8_t*>value.mv_data, rest.value.n, raw, KEY_ENTRY)
    key = key_index(index_raw, log.id, stream.id, log.next)
    value.mv_size = 0
    value.mv_data = NULL
    rc = mdb_put(txn, store.env.index, &key, &value, 0)
    if rc == 0:
        catalog_added(&store.catalog, stream, rest.records, rest.value.n)
    return rc


cdef uint64_t _count(const Entry* chain) noexcept nogil:
    """Return the number of entries of a chain.  Locality: owner."""
    cdef uint64_t n = 0
    while chain != NULL:
        n += chain.kind == ENTRY_MESSAGES
        chain = chain.next
    return n


cdef uint64_t _wanted(const Entry* chain) noexcept nogil:
    """Return the bytes of a chain as the store's own limit counts them.  Locality: owner."""
    cdef uint64_t wanted = 0
    while chain != NULL:
        wanted += chain.value.n + ENTRY_OVERHEAD if chain.kind == ENTRY_MESSAGES else 0
        chain = chain.next
    return wanted


cdef int _refusal(int rc) noexcept nogil:
    """Return the status of entries whose commit failed with this error.  Locality: any thread."""
    if store_is_full(rc):
        return ST_DISK_FULL
    return ST_STORE


cdef void _settle_chain(Entry* chain, int status) noexcept nogil:
    """Give every entry of a chain the same status.  Locality: owner."""
    while chain != NULL:
        chain.status = status
        chain = chain.next


cdef bint _has_offsets(const Entry* chain) noexcept nogil:
    """Tell whether there are positions of consumer groups in a chain.  Locality: owner."""
    while chain != NULL and chain.kind == ENTRY_MESSAGES:
        chain = chain.next
    return chain != NULL


cdef void _settle_offsets(Entry* chain, int status) noexcept nogil:
    """Give every position of a chain the same status.  Locality: owner."""
    while chain != NULL:
        if chain.kind != ENTRY_MESSAGES:
            chain.status = status
        chain = chain.next
