"""Ids of rows by the values of columns that identify them, wherever a row stands."""

from libc.stdint cimport uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.siphash cimport Hash128, HashKey
from dataproxy._core.producer.ingest.columnar.columns cimport Columns
from dataproxy._core.producer.ingest.rows cimport Rows
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema


cdef class RowKeys:
    cdef bytes prefix
    cdef tuple columns
    cdef HashKey key
    cdef Hash128 last           # of the values of the row before
    cdef bint begun
    cdef uint64_t equals        # rows just before that have the same values
    cdef Buf values             # of one row
    cdef Buf ids                # of all rows of a batch, each as long as the others
    cdef Rows rows              # the same, as a column

    cdef const Rows* make(self, ArrowSchema* schema, ArrowArray* array, const Columns* c) except NULL
