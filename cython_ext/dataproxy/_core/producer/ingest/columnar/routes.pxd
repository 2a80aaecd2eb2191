"""Columns that route rows, and their values."""

from libc.stdint cimport int64_t

from dataproxy._core.producer.ingest.columnar.columns cimport AttrColumn, TimeColumn
from dataproxy._core.producer.ingest.rows cimport Rows
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema


cdef int time_column(ArrowSchema* schema, ArrowArray* array, int at, TimeColumn* out) except -1
cdef int attr_column(ArrowSchema* schema, ArrowArray* array, int at, AttrColumn* out) except -1
cdef str text_at(const Rows* column, int64_t i)
cdef bytes bytes_at(const Rows* column, int64_t i)
cdef dict attrs_at(const AttrColumn* column, int64_t i)
