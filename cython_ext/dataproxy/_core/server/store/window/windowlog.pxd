"""The window in the durable store: rows of ids and of blocks, written in the transaction of their entries."""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.server.store.window.dedupe cimport Dedupe
from dataproxy._core.server.store.env cimport StoreEnv
from dataproxy._core.plat.lmdb cimport MDB_txn


cdef enum WindowLogConst:
    KEY_IDS = 8                 # position u64 of the first id
    IDS_ROW = 8                 # the store's time i64 in ms, then the ids, then the checksum
    ID_ROW = 24                 # high u64, low u64, digest u64
    ROW_IDS = 4096              # ids of one row at most
    GONE_ROW = 8 + 8 + 4        # times of the store in ms of the youngest id and row that went early i64, checksum u32
    STEP_IDS = 2 * 4096         # dropped in one commit, beside as many as it added
    DUE_IDS = 1024              # so many make a commit of their own worth while
    KEY_BLOCK = 8               # position u64 of a block
    BLOCK_ROW = 8 + 16 + 32 + 4     # the store's time i64 in ms, high u64, low u64, 256 bits as four u64, checksum u32


ctypedef struct WindowLog:
    Dedupe* dedupe
    StoreEnv* env
    int64_t now_ms              # when it was last looked for what to forget
    uint64_t until              # positions before it go when the transaction is committed
    uint64_t blocks_until       # the same of blocks of rows
    uint64_t blocks_put         # changes of blocks that the transaction has


# Into the empty window; a commit is counted in last_txn.
cdef int windowlog_load(WindowLog* log, int64_t now_ms, uint64_t* last_txn) noexcept nogil
cdef int windowlog_unwatched(StoreEnv* env, uint64_t* last_txn) noexcept nogil      # a store without a window is opened
cdef int windowlog_put(WindowLog* log, MDB_txn* txn, uint64_t start, int64_t at_ms) noexcept nogil  # from `start` on
cdef int windowlog_expire(WindowLog* log, MDB_txn* txn, int64_t now_ms) noexcept nogil
cdef bint windowlog_is_due(WindowLog* log, int64_t now_ms) noexcept nogil
cdef bint windowlog_writes(WindowLog* log) noexcept nogil                   # the transaction at hand has its rows in it
cdef void windowlog_settle(WindowLog* log, bint committed) noexcept nogil   # the transaction has ended
