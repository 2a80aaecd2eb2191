"""What a producer does with a message for which there is no room."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.pack.pack cimport PackResult, pack_memory
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.producer.accumulate.state cimport Batcher
from dataproxy._core.producer.accumulate.streams cimport Stream
from dataproxy._core.plat.atomic cimport atomic_load, relaxed_load


cdef inline bint has_room(const Batcher* b, size_t need) noexcept nogil:
    """Tell whether a message of ``need`` bytes is within the limits.  Locality: any thread.  Locks: batcher's held."""
    if b.charged + <int64_t>need - atomic_load(&b.accounting.released) > b.limit_bytes:
        return False
    return b.limit_messages == 0 or b.accepted - atomic_load(&b.accounting.released_messages) < b.limit_messages


cdef inline int64_t memory_left(const Batcher* b) noexcept nogil:
    """Return how many bytes of memory packs may still take; those given up count as gone.

    Locality: any thread.  Locks: none, but only under the batcher's nobody else takes them.
    """
    return b.spares.most - atomic_load(&b.spares.in_use) + atomic_load(&b.accounting.shed_bytes)


cdef inline bint memory_fits(const Batcher* b, int64_t bytes) noexcept nogil:
    """Tell whether packs may take ``bytes`` more of memory.  Locality: any thread.  Locks: batcher's held."""
    return memory_left(b) >= bytes


cdef inline bint results_fit(const Batcher* b) noexcept nogil:
    """Tell whether one more pack may be on its way to callbacks, all others counted as if their results waited.

    Locality: any thread.  Locks: batcher's held.
    """
    cdef int64_t promised = 0
    if b.report_all:
        promised = pack_memory(0) * (relaxed_load(&b.accounting.in_flight_packs) + b.open.n + 1)
    return atomic_load(&b.completions.bytes) + promised <= b.completions.most


cdef bint make_room(Batcher* b, size_t need, int64_t memory) noexcept nogil
cdef int refuse(
    Batcher* b, Stream* s, int64_t messages, int64_t body_bytes, Slice own_id, PackResult** pack_result,
    uint32_t* index,
) noexcept nogil
