"""Stream handles: the sending calls of a producer, bound to one (group, stream, attributes)."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.base.pack cimport Verdict
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.client.delivery cimport BatchDelivery
from dataproxy._core.client.handle cimport CoreHandle
from dataproxy._core.client.rows cimport Rows
from dataproxy._core.client.streams cimport Stream as CStream


cdef class SendPolicy:              # constant settings of the sending calls
    cdef bint lines
    cdef bint skip_null
    cdef bint skip_empty
    cdef object item_text           # (attrs, dt) -> (data time in ms, attribute bytes)


cdef class Stream:
    cdef CoreHandle core
    cdef CStream* stream
    cdef SendPolicy policy
    cdef readonly str group_id
    cdef readonly str stream_id

    cdef int put(self, object body, object attrs, object dt, Verdict** verdict, uint32_t* index) except -1
    cdef int put_bytes(
        self, const uint8_t* p, size_t n, int64_t when, Slice attrs, Verdict** verdict, uint32_t* index) except -1
    cdef int put_rows(
        self, const Rows* rows, int64_t when, Slice attrs, BatchDelivery out, int64_t before) except -1


cdef int append_blocking(
    CoreHandle core, CStream* stream, const Rows* rows, int64_t* at, int64_t end, int64_t when, Slice attrs,
    BatchDelivery out, int64_t before) except -1
cdef int raise_full(CoreHandle core, int64_t accepted) except -1
