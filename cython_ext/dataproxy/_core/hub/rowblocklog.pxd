"""Blocks of rows in the durable store, written in the transaction of their entries."""

from libc.stdint cimport int64_t

from dataproxy._core.hub.windowlog cimport WindowLog
from dataproxy._core.plat.lmdb cimport MDB_txn


cdef enum RowBlockLogConst:
    KEY_BLOCK = 8               # position u64
    BLOCK_ROW = 8 + 16 + 32 + 4     # the store's time i64 in ms, high u64, low u64, 256 bits as four u64, checksum u32


cdef int rowblocklog_load(WindowLog* log, MDB_txn* txn) noexcept nogil      # into the empty set
cdef int rowblocklog_put(WindowLog* log, MDB_txn* txn) noexcept nogil       # what has changed since the last call
cdef int rowblocklog_expire(WindowLog* log, MDB_txn* txn, int64_t now_ms) noexcept nogil
cdef bint rowblocklog_is_due(WindowLog* log, int64_t now_ms) noexcept nogil
cdef bint rowblocklog_writes(WindowLog* log) noexcept nogil
cdef void rowblocklog_settle(WindowLog* log, bint committed) noexcept nogil
