"""The fields of a result as Python values, from which dataproxy.outcomes makes results and errors."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.pack.pack cimport OUT_DELIVERED, OUT_SENT, Pack, PackResult
from dataproxy._core.pack.parts cimport parts_find


cdef inline bint ended_well(const PackResult* v, uint32_t place) noexcept:
    """Tell whether the message at ``place`` of a settled pack was delivered, or sent where no answer was asked for.

    Locality: any thread.  Locks: none.
    """
    if v.outcome == OUT_DELIVERED or v.outcome == OUT_SENT:
        return True
    return v.parts != NULL and parts_find(v.parts, place).outcome == OUT_DELIVERED


cdef uint32_t same_result(const PackResult* v, uint32_t place, uint32_t most) noexcept
cdef tuple pack_result_fields(PackResult* v)
cdef tuple fields_at(PackResult* v, uint32_t place)
cdef list fields_of(PackResult* v, object watch)
cdef list reports_of(Pack* p, object group, object stream, object own_ids)
cdef list with_size(list found, int64_t size)
