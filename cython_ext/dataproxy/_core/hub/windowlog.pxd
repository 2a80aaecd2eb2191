"""The window in the durable store: rows of ids, written in the transaction of their entries."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.hub.dedupe cimport Dedupe
from dataproxy._core.hub.storeenv cimport StoreEnv
from dataproxy._core.plat.lmdb cimport MDB_dbi, MDB_txn


cdef enum WindowLogConst:
    KEY_IDS = 8                 # position u64 of the first id
    IDS_ROW = 8                 # time i64 in ms, then the ids
    ID_ROW = 24                 # high u64, low u64, digest u64
    ROW_IDS = 4096              # ids of one row at most
    STEP_IDS = 2 * 4096         # dropped in one commit, beside as many as it added
    DUE_IDS = 1024              # so many make a commit of their own worth while


ctypedef struct WindowLog:
    Dedupe* dedupe
    MDB_dbi ids
    uint64_t until              # positions before it go when the transaction is committed


# Open the rows, made when missing, with the key for hashing: the one in the store, else `fresh` is put there.
cdef int windowlog_open(WindowLog* log, StoreEnv* env, const uint8_t* fresh, HashKey* key) noexcept nogil
cdef int windowlog_attach(WindowLog* log, MDB_txn* txn) noexcept nogil      # after the environment was opened afresh
cdef int windowlog_load(WindowLog* log, StoreEnv* env) noexcept nogil       # into the empty window
cdef int windowlog_put(WindowLog* log, MDB_txn* txn, uint64_t start, int64_t at_ms) noexcept nogil  # from `start` on
cdef int windowlog_expire(WindowLog* log, MDB_txn* txn, int64_t now_ms) noexcept nogil
cdef bint windowlog_is_due(WindowLog* log, int64_t now_ms) noexcept nogil
cdef void windowlog_settle(WindowLog* log, bint committed) noexcept nogil   # the transaction has ended
