"""Memory for many small values that go in the order in which they came: segments, each filled from front to back.

An allocation for each value costs the allocator's search and its joining of neighbours, twice for a frame at a full
store.  A segment costs an addition to take from and a subtraction to give back to, and is used again as a whole.  One
value that stays keeps its whole segment: who gives back in another order needs allocations of their own.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t


cdef enum:
    SEGMENT_BYTES = 262144
    SEGMENT_MOST = 4096         # bytes of what a segment has room for: at most a 64th of it is left at its end


ctypedef struct Segment:        # followed by what was taken from it
    int64_t live                # takes that were not given back
    size_t used


ctypedef struct Segments:
    Segment* open               # it is filled now; NULL: none
    Segment* spare              # nothing is left in it


# `n` bytes, aligned to 16, of at most SEGMENT_MOST, and where they belong; NULL: no memory.
cdef void* segments_take(Segments* s, size_t n, Segment** whose) noexcept nogil
cdef void segments_give(Segments* s, Segment* whose) noexcept nogil
cdef void segments_free(Segments* s) noexcept nogil     # all was given back
