"""Messages that were dropped on arrival, until ``on_delivery`` reports them."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.base.pack cimport Pack, Verdict
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.client.completions cimport Completions
from dataproxy._core.client.ids cimport PackIds
from dataproxy._core.client.streams cimport Stream


cdef Verdict* refusal(const char* pack_id) noexcept nogil
cdef int refusals_add(
    Completions* c, PackIds* ids, Stream* s, int64_t messages, Slice own_id, int64_t now, Verdict** verdict,
    uint32_t* index,
) noexcept nogil
cdef void refusals_detach(Completions* c, Pack* p) noexcept nogil
