"""Single bytes of a snappy block's content, found through its map without unpacking it."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t

from dataproxy._core.base.snappy.blockmap cimport BlockMap


cdef enum BlockReadConst:
    READ_KEPT = 1024            # words that later copies may repeat, by hash


ctypedef struct Word:
    uint32_t at                 # in the content, plus one; 0: none
    uint32_t value              # 4 bytes as they lie in memory


ctypedef struct BlockReader:    # reads words at ascending places; borrows the map
    const BlockMap* map
    size_t mark                 # the last one not behind the last byte of the word read last
    size_t effort               # tags that may still be looked for
    Word kept[READ_KEPT]


cdef void block_reader(BlockReader* r, const BlockMap* map) noexcept nogil
# Read the 4 bytes at `at`, which lie in the content and behind the word read last.  False: this takes so long that
# unpacking the whole block is faster.
cdef bint block_word(BlockReader* r, size_t at, uint32_t* word) noexcept nogil
