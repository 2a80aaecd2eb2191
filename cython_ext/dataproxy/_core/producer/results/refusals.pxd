"""Messages that were dropped on arrival, until ``on_delivery`` reports them."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.pack.pack cimport Pack, PackResult
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.producer.results.completions cimport Completions
from dataproxy._core.producer.ingest.ids cimport PackIds
from dataproxy._core.producer.accumulate.streams cimport Stream


cdef PackResult* refusal(const char* pack_id) noexcept nogil
cdef int refusals_add(
    Completions* c, PackIds* ids, Stream* s, int64_t messages, Slice own_id, int64_t now, PackResult** pack_result,
    uint32_t* index,
) noexcept nogil
cdef void refusals_detach(Completions* c, Pack* p) noexcept nogil
