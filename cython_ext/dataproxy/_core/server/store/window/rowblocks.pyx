"""Blocks with a bit for each of their rows, in a ring.

Locks: none.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from dataproxy._core.base.buf cimport buf_free, buf_put
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.server.entries cimport EntryId
from dataproxy._core.server.store.window.idring cimport (
    idring_add,
    idring_drop,
    idring_first,
    idring_free,
    idring_init,
    idring_is_past,
    idring_keep,
    idring_undo,
)
from dataproxy._core.plat.atomic cimport relaxed_add
from dataproxy._core.plat.bits cimport count_ones


cdef void rowblocks_init(RowBlocks* b, int64_t keep_ms, uint64_t most) noexcept nogil:
    """Make an empty set of blocks.  Locality: owner."""
    memset(b, 0, sizeof(RowBlocks))
    idring_init(&b.ring, sizeof(RowBlock), keep_ms, most)


cdef void rowblocks_free(RowBlocks* b) noexcept nogil:
    """Release the memory.  Locality: owner."""
    idring_free(&b.ring)
    buf_free(&b.changes)


cdef int rowblocks_take(RowBlocks* b, const EntryId* id, int64_t now_ms, uint64_t* known) noexcept nogil:
    """Note rows of a block and tell which of them were known.  Locality: appending thread."""
    cdef BlockChange change
    cdef RowBlock* block
    cdef uint64_t wanted[BLOCK_WORDS]
    cdef uint64_t fresh = 0
    cdef uint32_t row
    cdef int k
    change.position = _find(b, id.high, id.low, now_ms)
    if change.position:
        block = rowblocks_at(b, change.position)
    else:
        change.position = b.ring.tail
        block = <RowBlock*>idring_add(&b.ring, id.high, id.low, now_ms)
        if block == NULL:
            return ST_NO_MEMORY
    memset(wanted, 0, sizeof(wanted))
    for row in range(id.row, id.row + id.messages):
        wanted[row >> 6] |= <uint64_t>1 << (row & 63)
    for k in range(BLOCK_WORDS):
        known[k] = wanted[k] & block.rows[k]
        change.rows[k] = wanted[k] & ~block.rows[k]
        fresh |= change.rows[k]
    if fresh == 0:
        return ST_OK
    change.before_ms = block.item.at_ms
    if buf_put(&b.changes, &change, sizeof(BlockChange)) != ST_OK:
        return ST_NO_MEMORY
    block.item.at_ms = now_ms
    for k in range(BLOCK_WORDS):
        block.rows[k] |= change.rows[k]
    return ST_OK


cdef void rowblocks_drop(RowBlocks* b, uint64_t until, int64_t now_ms) noexcept nogil:
    """Forget every block before a position.  Locality: appending thread."""
    cdef const RowBlock* block
    cdef uint64_t position
    cdef int k
    for position in range(b.ring.head, until):
        block = rowblocks_at(b, position)
        if now_ms - block.item.at_ms <= b.ring.keep_ms:
            for k in range(BLOCK_WORDS):
                relaxed_add(&b.ring.forgotten, count_ones(block.rows[k]))
    idring_drop(&b.ring, until)


cdef void rowblocks_keep(RowBlocks* b) noexcept nogil:
    """Keep the rows noted so far.  Locality: appending thread."""
    idring_keep(&b.ring)
    b.changes.n = 0


cdef void rowblocks_undo(RowBlocks* b) noexcept nogil:
    """Remove the rows noted since ``rowblocks_keep``.  Locality: appending thread."""
    cdef const BlockChange* change
    cdef RowBlock* block
    cdef int k
    while b.changes.n:
        b.changes.n -= sizeof(BlockChange)
        change = <const BlockChange*>(b.changes.p + b.changes.n)
        block = rowblocks_at(b, change.position)
        block.item.at_ms = change.before_ms
        for k in range(BLOCK_WORDS):
            block.rows[k] &= ~change.rows[k]
    idring_undo(&b.ring)


cdef uint64_t _find(const RowBlocks* b, uint64_t high, uint64_t low, int64_t now_ms) noexcept nogil:
    """Return the position of a block that is known, or 0.  Locality: appending thread."""
    cdef uint64_t position = idring_first(&b.ring, low)
    cdef const RowBlock* block
    while position:
        block = rowblocks_at(b, position)
        if block.item.high == high and block.item.low == low and not idring_is_past(&b.ring, position, now_ms):
            return position
        position = block.item.older
    return 0
