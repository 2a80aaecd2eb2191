"""Python's read access to a store."""

from libc.stdint cimport uint32_t, uint64_t

from dataproxy._core.server.store.reader cimport ReadBatch, ReaderOps
from dataproxy._core.server.store.shared cimport SharedEnv


cdef class StoreView:
    cdef const ReaderOps* _reader
    cdef void* _source              # argument of the reader's functions
    cdef SharedEnv _shared          # durable stores: keeps _source alive
    cdef readonly str path          # None in memory mode
    cdef dict _names                # (topic, partition) -> {stream number: name}
    cdef uint64_t _generation       # of these names
    cdef bint _closed
    cdef int _pid

    cdef int _ensure_open(self) except -1
    cdef int _check(self, int status, int error) except -1
    cdef str _stream_name(self, str topic, unsigned int partition, unsigned int number)
    cdef list _entries(self, str topic, uint32_t partition, ReadBatch* batch)
    cdef list _names_of(self, bint streams, str topic=*)
    cdef list _rows(self, ReadBatch* batch)
