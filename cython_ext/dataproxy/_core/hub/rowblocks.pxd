"""Rows of the Spark sink that were stored lately, in blocks of 256.

The sink names a row by its block and its number there, and a block by a digest of all of its rows (client/rowids): a
known name is a known row, and what a block has to remember is a bit for each.

Blocks have positions, which count up, like the ids of ``hub/window``.  One is known while its last new row came at most
``keep_ms`` ago and fewer than ``most`` blocks have come after it.  What was noted since the last ``rowblocks_keep`` can
be taken back.
"""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.hub.entry cimport EntryId


cdef enum RowBlocksConst:
    BLOCK_BITS = 8          # of a row's number are its place in its block
    BLOCK_WORDS = 4


ctypedef struct RowBlock:
    uint64_t high           # hash of group, stream and the block's name
    uint64_t low
    int64_t at_ms           # when the last row was new
    uint64_t older          # position of the next one in its chain, 0 at the end
    uint64_t rows[BLOCK_WORDS]


ctypedef struct BlockChange:
    uint64_t position
    int64_t before_ms
    uint64_t rows[BLOCK_WORDS]      # that were new


ctypedef struct RowBlocks:          # the appending thread's own
    int64_t keep_ms
    uint64_t most
    RowBlock* blocks        # by position, modulo room
    uint64_t* table         # newest position of each chain, 0 without one
    uint64_t room           # a power of two, or 0
    uint64_t head           # oldest position that is held; the first ever is 1
    uint64_t tail           # behind the youngest
    uint64_t kept_tail
    Buf changes             # BlockChanges since rowblocks_keep
    int64_t gone_ms         # no block whose last new row is younger than this was forgotten before its time
    # Statistics, relaxed atomics.
    int64_t held
    int64_t expired
    int64_t forgotten       # rows whose time had not come


cdef void rowblocks_init(RowBlocks* b, int64_t keep_ms, uint64_t most) noexcept nogil
cdef void rowblocks_free(RowBlocks* b) noexcept nogil
# Note the rows of an id, and tell which of them were known: BLOCK_WORDS of bits.  ST_OK or ST_NO_MEMORY.
cdef int rowblocks_take(RowBlocks* b, const EntryId* id, int64_t now_ms, uint64_t* known) noexcept nogil
cdef RowBlock* rowblocks_add(RowBlocks* b, uint64_t high, uint64_t low, int64_t at_ms) noexcept nogil  # NULL: no memory
cdef uint64_t rowblocks_due(const RowBlocks* b, int64_t now_ms, uint64_t most) noexcept nogil   # first position to keep
cdef void rowblocks_drop(RowBlocks* b, uint64_t until, int64_t now_ms) noexcept nogil
# When the youngest of the blocks before a position came, of those whose time has not come; else 0.
cdef int64_t rowblocks_early(const RowBlocks* b, uint64_t until, int64_t now_ms) noexcept nogil
cdef int64_t rowblocks_reach(const RowBlocks* b, int64_t now_ms) noexcept nogil   # all that came so many ms ago
cdef void rowblocks_keep(RowBlocks* b) noexcept nogil
cdef void rowblocks_undo(RowBlocks* b) noexcept nogil


cdef inline RowBlock* rowblocks_at(const RowBlocks* b, uint64_t position) noexcept nogil:
    """Return the block at a position that is held.  Locality: appending thread.  Locks: none."""
    return &b.blocks[position & (b.room - 1)]
