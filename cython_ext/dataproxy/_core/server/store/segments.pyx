"""Take from segments, and give back.

Locality: one thread at a time.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc

from dataproxy._core.plat.assertion cimport dp_assert


cdef enum:
    ALIGNMENT = 16


cdef void* segments_take(Segments* s, size_t n, Segment** whose) noexcept nogil:
    """Return memory of the open segment, or of a new one; NULL without memory."""
    cdef Segment* segment = s.open
    cdef void* found
    dp_assert(n <= SEGMENT_MOST, "a segment has room for it: n=%zu", n)
    n = (n + ALIGNMENT - 1) & ~<size_t>(ALIGNMENT - 1)
    if segment == NULL or segment.used + n > SEGMENT_BYTES:
        segment = _open(s)
        if segment == NULL:
            return NULL
    found = <uint8_t*>segment + segment.used
    segment.used += n
    segment.live += 1
    whose[0] = segment
    return found


cdef Segment* _open(Segments* s) noexcept nogil:
    """Open the spare segment, or a new one; NULL without memory."""
    cdef Segment* segment = s.spare
    if segment == NULL:
        segment = <Segment*>malloc(SEGMENT_BYTES)
        if segment == NULL:
            return NULL
    s.spare = NULL
    segment.live = 0
    segment.used = sizeof(Segment)
    s.open = segment
    return segment


cdef void segments_give(Segments* s, Segment* whose) noexcept nogil:
    """Give back one take.  The open segment begins again when all of it is back, another one becomes the spare."""
    dp_assert(whose.live > 0, "what is given back was taken: live=%ld", whose.live)
    whose.live -= 1
    if whose.live > 0:
        return
    if whose == s.open:
        whose.used = sizeof(Segment)
    elif s.spare == NULL:
        s.spare = whose
    else:
        free(whose)


cdef void segments_free(Segments* s) noexcept nogil:
    """Release what is kept; everything was given back."""
    dp_assert(s.open == NULL or s.open.live == 0, "nothing of the open segment is in use: live=%ld", s.open.live)
    free(s.open)
    free(s.spare)
    s.open = s.spare = NULL
