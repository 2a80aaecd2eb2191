"""The durable store's state and its write transactions; ``append`` and ``retain`` work on top.

Locality: any thread.  Locks: none.
"""

from libc.errno cimport EDQUOT, EFBIG, ENOSPC
from libc.stdint cimport int64_t, uint8_t, uint64_t

from dataproxy._core.server.store.catalog cimport Catalog
from dataproxy._core.server.store.clock cimport StoreClock
from dataproxy._core.server.store.env cimport StoreEnv, StoreFiles
from dataproxy._core.server.store.window.windowlog cimport WindowLog
from dataproxy._core.plat.lmdb cimport MDB_MAP_FULL, MDB_txn


cdef enum StoreTxnConst:
    ENTRY_OVERHEAD = 64         # what an entry takes beside its value, as max_bytes counts it


ctypedef struct StoreLimits:
    uint64_t max_bytes          # appends over it are refused (ST_DISK_FULL); 0 = none
    uint64_t retention_bytes    # of one log; its oldest entries beyond it are dropped; 0 = keep
    int64_t retention_ms        # entries of this age or older are dropped, by the store's own clock; 0 = keep


ctypedef struct Store:
    StoreEnv* env               # shared with the readers of this process
    const char* path            # owned by the caller, for reopening
    size_t map_bytes            # size of the map now; it grows when the file needs it
    size_t map_limit            # and no further than this
    StoreLimits limits
    Catalog catalog             # appending thread only
    StoreClock clock
    StoreFiles files            # that must be there for a commit to count
    int64_t names_after_ms      # no look for names to give up before this time
    uint64_t last_txn           # number of the last commit; a transaction that does not follow it is another writer's
    bint moved                  # positions of consumer groups were put in this transaction; appending thread only
    WindowLog* window           # the de-duplication window, NULL without one; appending thread only
    # Statistics, relaxed atomics.
    int64_t commits
    int64_t failures
    int64_t dropped_entries
    int64_t dropped_records
    int64_t dropped_bytes
    int64_t damaged_entries     # dropped, and could not be read
    int64_t last_error          # code of the last failure, 0 when none has happened
    int64_t trouble             # code of what the last commit failed with, 0 once it is known to be over
    uint64_t wanted             # bytes that were refused for want of room and are not known to fit now; 0 = none
    uint64_t wanted_at          # bytes of all entries at that moment


cdef int store_init(Store* store, StoreEnv* env, const char* path, size_t map_bytes, size_t map_limit,
                    const StoreLimits* limits, const uint8_t* boot, int* error) noexcept nogil
cdef void store_free(Store* store) noexcept nogil
cdef int store_begin(Store* store, MDB_txn** txn) noexcept nogil
cdef int store_finish(Store* store, MDB_txn* txn, int rc) noexcept nogil
# Commit, or take everything back; `writes`: something was put or deleted.
cdef int store_settle(Store* store, MDB_txn* txn, int rc, bint writes) noexcept nogil
cdef int store_save_clock(Store* store) noexcept nogil
cdef bint store_grow(Store* store, int rc) noexcept nogil
cdef void store_failed(Store* store, int error) noexcept nogil
cdef void store_refused(Store* store, int error, uint64_t wanted) noexcept nogil
cdef void store_took(Store* store) noexcept nogil
cdef bint store_is_roomy(Store* store) noexcept nogil


cdef bint store_has_room(Store* store, uint64_t wanted) noexcept nogil


cdef inline bint store_is_full(int error) noexcept nogil:
    """Tell whether an error means that there is no room."""
    return error == ENOSPC or error == EDQUOT or error == EFBIG or error == MDB_MAP_FULL
