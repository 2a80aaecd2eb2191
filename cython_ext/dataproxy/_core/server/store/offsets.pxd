"""Positions of consumer groups in the durable store."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.entries cimport Entry
from dataproxy._core.server.store.env cimport StoreEnv
from dataproxy._core.server.store.txn cimport Store
from dataproxy._core.plat.lmdb cimport MDB_txn


ctypedef struct StoredOffset:
    Slice topic             # of the log
    uint32_t partition
    Slice group             # of consumers
    int64_t position        # -1: it was forgotten
    uint64_t version


# Called for each row; false ends the reading.
ctypedef bint (*OffsetTaker)(void* context, const StoredOffset* one) noexcept nogil


cdef int offsets_put(Store* store, MDB_txn* txn, const Entry* entry) noexcept nogil     # 0 or an error
cdef int offsets_read(StoreEnv* e, OffsetTaker take, void* context) noexcept nogil      # 0 or an error
