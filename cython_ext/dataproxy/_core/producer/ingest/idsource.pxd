"""Ids that callers give, as bytes."""

from libc.stdint cimport int64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.producer.ingest.rows cimport Rows
from dataproxy._core.producer.ingest.sources cimport BodyList


cdef object exact_text(object value)
cdef int own_id_of(object value, Slice* out) except -1
cdef BodyList id_rows(object ids, int64_t n)
cdef object bad_id(const Rows* rows, int64_t i, int64_t item, int64_t accepted)
