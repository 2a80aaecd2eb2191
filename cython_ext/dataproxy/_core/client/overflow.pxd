"""What a producer does with a message for which there is no room."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.base.pack cimport Verdict
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.client.batcher cimport Batcher
from dataproxy._core.client.streams cimport Stream
from dataproxy._core.plat.atomic cimport atomic_load


cdef inline bint has_room(const Batcher* b, size_t need) noexcept nogil:
    """Tell whether a message of ``need`` bytes is within the limits.  Locality: any thread.  Locks: batcher's held."""
    if b.charged + <int64_t>need - atomic_load(&b.books.released) > b.limit_bytes:
        return False
    return b.limit_messages == 0 or b.accepted - atomic_load(&b.books.released_messages) < b.limit_messages


cdef bint make_room(Batcher* b, size_t need) noexcept nogil
cdef int refuse(
    Batcher* b, Stream* s, int64_t messages, int64_t body_bytes, Slice own_id, Verdict** verdict, uint32_t* index,
) noexcept nogil
