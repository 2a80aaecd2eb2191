"""Deliveries: lazy futures of one message or of one batch."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.producer.results.segments cimport Segments
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.ingest.rows cimport Rows


cdef class Delivery:
    cdef CoreHandle core
    cdef PackResult* pack_result  # holds a reference
    cdef uint32_t index
    cdef uint32_t generation    # of the process that accepted the message
    cdef object own_id          # the caller's message_id, else None


cdef class BatchDelivery:
    cdef CoreHandle core
    cdef Segments segments
    cdef uint32_t generation    # of the process that accepted the messages
    cdef readonly int64_t skipped       # rows left out by policy (null or empty)
    cdef Buf own_ids                    # length byte and id of each message, if the caller gave ids
    cdef readonly int64_t refused       # rows left out since they cannot be sent
    cdef readonly tuple refusals        # the first of them

    cdef str own_id(self, size_t* at)


cdef Delivery new_delivery(CoreHandle core, PackResult* pack_result, uint32_t index, object own_id)
cdef int keep_ids(const Rows* rows, int64_t start, int64_t end, Buf* out) noexcept nogil
