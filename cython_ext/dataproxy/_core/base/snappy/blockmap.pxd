"""Walk of the tags of a snappy block, without writing its content: checks the block and finds the place of each byte.

A place is one 64-bit number: an offset in the block in its lower half, an offset in the content in its upper half.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf


cdef enum BlockMapConst:
    MAP_STRIDE = 8              # most tags between two marks
    MAP_MAX_BLOCK = 16777215    # larger blocks are not walked


ctypedef struct BlockMap:       # everything is borrowed from the block and from the Buf
    const uint8_t* p
    size_t n
    size_t size                 # of the content
    const uint64_t* marks       # places of tags in ascending order, the first that of the first tag
    size_t count


# Walk the block p[0:n] of at most `limit` bytes of content; the marks are appended to `room`.
# ST_OK: libsnappy would unpack it.  ST_PROTOCOL: it would not, or it is not known (forms that libsnappy's compressor
# does not write); ST_NO_MEMORY.
cdef int block_map(const uint8_t* p, size_t n, size_t limit, Buf* room, BlockMap* out) noexcept nogil
# The place behind the tag at `place`, below n; `place` itself if the tag is bad.  `need` is raised to 256 times the
# bytes by which the tag's copy reaches back beyond the content that the place counts.
cdef uint64_t tag_behind(const uint8_t* p, size_t n, uint64_t place, int64_t* need) noexcept nogil
