"""Rows of the Spark sink that were stored lately, in blocks of 256.

The sink names a row by its block and its number in the block, and a block by a digest of all of its rows
(producer/ingest/columnar/rowids).  So a known name means a known row, and a block needs only one bit for each row.

Blocks are items of a ring (idring); the time of a block is that of its last new row.  Rows noted since the last
``rowblocks_keep`` can be removed again.

Locality: appending thread.  Locks: none.
"""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.server.entries cimport EntryId
from dataproxy._core.server.store.window.idring cimport IdRing, IdRingItem, idring_at


cdef enum RowBlocksConst:
    BLOCK_BITS = 8          # of a row's number are its place in its block
    BLOCK_WORDS = 4


ctypedef struct RowBlock:
    IdRingItem item           # hash of group, stream and the block's name; when the last row was new
    uint64_t rows[BLOCK_WORDS]


ctypedef struct BlockChange:
    uint64_t position
    int64_t before_ms
    uint64_t rows[BLOCK_WORDS]      # that were new


ctypedef struct RowBlocks:
    IdRing ring               # counts the rows that it forgot before their time
    Buf changes             # BlockChanges since rowblocks_keep; the appending thread's own


cdef void rowblocks_init(RowBlocks* b, int64_t keep_ms, uint64_t most) noexcept nogil
cdef void rowblocks_free(RowBlocks* b) noexcept nogil
# Note the rows of an id, and tell which of them were known: BLOCK_WORDS of bits.  ST_OK or ST_NO_MEMORY.
cdef int rowblocks_take(RowBlocks* b, const EntryId* id, int64_t now_ms, uint64_t* known) noexcept nogil
cdef void rowblocks_drop(RowBlocks* b, uint64_t until, int64_t now_ms) noexcept nogil
cdef void rowblocks_keep(RowBlocks* b) noexcept nogil
cdef void rowblocks_undo(RowBlocks* b) noexcept nogil


cdef inline RowBlock* rowblocks_at(const RowBlocks* b, uint64_t position) noexcept nogil:
    """Return the block at a position that is held."""
    return <RowBlock*>idring_at(&b.ring, position)
