"""New counts, from the index, for streams that have lost an unreadable entry."""

from dataproxy._core.hub.storecatalog cimport LogStat, StreamStat
from dataproxy._core.hub.storetxn cimport Store
from dataproxy._core.plat.lmdb cimport MDB_txn


# Walk the index of a stream, or (stream NULL) of all streams of a log, and correct their counts: 0 or an error.
cdef int store_recount(Store* store, MDB_txn* txn, LogStat* log, StreamStat* stream) noexcept nogil
