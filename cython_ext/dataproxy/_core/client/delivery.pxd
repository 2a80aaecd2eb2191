"""Deliveries: lazy futures of one message or of one batch."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.base.pack cimport Verdict
from dataproxy._core.client.batcher cimport Segments
from dataproxy._core.client.handle cimport CoreHandle


cdef class Delivery:
    cdef CoreHandle core
    cdef Verdict* verdict       # holds a reference
    cdef uint32_t index
    cdef object own_id          # the caller's message_id, else None


cdef class BatchDelivery:
    cdef CoreHandle core
    cdef Segments segments
    cdef readonly int64_t skipped       # rows left out by policy (null or empty)


cdef Delivery new_delivery(CoreHandle core, Verdict* verdict, uint32_t index, object own_id)
cdef tuple verdict_facts(Verdict* v)
