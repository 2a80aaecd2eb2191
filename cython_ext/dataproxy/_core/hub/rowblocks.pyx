"""A ring of blocks in the order of their coming, with a hash table of chains over it."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dataproxy._core.base.buf cimport buf_free, buf_put
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.hub.entry cimport EntryId
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_store
from dataproxy._core.plat.bits cimport count_ones

cdef enum:
    FIRST_ROOM = 256


cdef void rowblocks_init(RowBlocks* b, int64_t keep_ms, uint64_t most) noexcept nogil:
    """Make an empty set of blocks.  Locality: owner.  Locks: none."""
    memset(b, 0, sizeof(RowBlocks))
    b.keep_ms = keep_ms
    b.most = most
    b.head = b.tail = b.kept_tail = 1


cdef void rowblocks_free(RowBlocks* b) noexcept nogil:
    """Release the memory.  Locality: owner.  Locks: none."""
    free(b.blocks)
    free(b.table)
    buf_free(&b.changes)
    memset(b, 0, sizeof(RowBlocks))


cdef int rowblocks_take(RowBlocks* b, const EntryId* id, int64_t now_ms, uint64_t* known) noexcept nogil:
    """Note rows of a block and tell which of them were known.  Locality: appending thread.  Locks: none."""
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
        change.position = b.tail
        block = rowblocks_add(b, id.high, id.low, now_ms)
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
    change.before_ms = block.at_ms
    if buf_put(&b.changes, &change, sizeof(BlockChange)) != ST_OK:
        return ST_NO_MEMORY
    block.at_ms = now_ms
    for k in range(BLOCK_WORDS):
        block.rows[k] |= change.rows[k]
    return ST_OK


cdef RowBlock* rowblocks_add(RowBlocks* b, uint64_t high, uint64_t low, int64_t at_ms) noexcept nogil:
    """Begin a block at the next position; NULL without memory.  Locality: appending thread.  Locks: none."""
    cdef RowBlock* block
    if b.tail - b.head == b.room and _grow(b) != ST_OK:
        return NULL
    block = rowblocks_at(b, b.tail)
    memset(block, 0, sizeof(RowBlock))
    block.high = high
    block.low = low
    block.at_ms = at_ms
    _link(b, b.tail)
    b.tail += 1
    return block


cdef uint64_t rowblocks_due(const RowBlocks* b, int64_t now_ms, uint64_t most) noexcept nogil:
    """Return the first position to keep when up to ``most`` blocks are dropped that are past the limits.

    Locality: appending thread.
    Locks: none.
    """
    cdef uint64_t position = b.head
    while position < b.kept_tail and position - b.head < most and _is_past(b, position, now_ms):
        position += 1
    return position


cdef int64_t rowblocks_early(const RowBlocks* b, uint64_t until, int64_t now_ms) noexcept nogil:
    """Return the time of the youngest block before a position that is kept for longer than that, else 0.

    Locality: appending thread.
    Locks: none.
    """
    cdef int64_t youngest = 0
    cdef int64_t at_ms
    cdef uint64_t position
    for position in range(b.head, until):
        at_ms = rowblocks_at(b, position).at_ms
        if now_ms - at_ms <= b.keep_ms and at_ms > youngest:
            youngest = at_ms
    return youngest


cdef int64_t rowblocks_reach(const RowBlocks* b, int64_t now_ms) noexcept nogil:
    """Return how long ago a row may have come to be known for certain.  Locality: appending thread.  Locks: none."""
    cdef uint64_t known = b.tail - b.most if b.tail - b.head > b.most else b.head       # those before it are not
    cdef int64_t gone_ms = max(b.gone_ms, rowblocks_early(b, known, now_ms))
    return min(b.keep_ms, max(now_ms - gone_ms - 1, 0)) if gone_ms else b.keep_ms


cdef void rowblocks_drop(RowBlocks* b, uint64_t until, int64_t now_ms) noexcept nogil:
    """Forget every block before a position.  Locality: appending thread.  Locks: none."""
    cdef RowBlock* block
    cdef int k
    relaxed_add(&b.expired, <int64_t>(until - b.head))
    b.gone_ms = max(b.gone_ms, rowblocks_early(b, until, now_ms))
    while b.head < until:
        block = rowblocks_at(b, b.head)
        if now_ms - block.at_ms <= b.keep_ms:
            for k in range(BLOCK_WORDS):
                relaxed_add(&b.forgotten, count_ones(block.rows[k]))
        _unlink_oldest(b)
        b.head += 1
    relaxed_store(&b.held, <int64_t>(b.tail - b.head))


cdef void rowblocks_keep(RowBlocks* b) noexcept nogil:
    """Make what was noted stay.  Locality: appending thread.  Locks: none."""
    b.kept_tail = b.tail
    b.changes.n = 0
    relaxed_store(&b.held, <int64_t>(b.tail - b.head))


cdef void rowblocks_undo(RowBlocks* b) noexcept nogil:
    """Take back what was noted since ``rowblocks_keep``.  Locality: appending thread.  Locks: none."""
    cdef const BlockChange* change
    cdef RowBlock* block
    cdef int k
    while b.changes.n:
        b.changes.n -= sizeof(BlockChange)
        change = <const BlockChange*>(b.changes.p + b.changes.n)
        block = rowblocks_at(b, change.position)
        block.at_ms = change.before_ms
        for k in range(BLOCK_WORDS):
            block.rows[k] &= ~change.rows[k]
    while b.tail > b.kept_tail:
        b.tail -= 1
        block = rowblocks_at(b, b.tail)
        b.table[block.low & (b.room - 1)] = block.older     # the youngest is the first of its chain


cdef uint64_t _find(const RowBlocks* b, uint64_t high, uint64_t low, int64_t now_ms) noexcept nogil:
    """Return the position of a block that is known, or 0.  Locality: appending thread.  Locks: none."""
    cdef const RowBlock* block
    cdef uint64_t position
    if b.room == 0:
        return 0
    position = b.table[low & (b.room - 1)]
    while position:
        block = rowblocks_at(b, position)
        if block.high == high and block.low == low and not _is_past(b, position, now_ms):
            return position
        position = block.older
    return 0


cdef bint _is_past(const RowBlocks* b, uint64_t position, int64_t now_ms) noexcept nogil:
    """Tell whether a position is past the limits.  Locality: appending thread.  Locks: none."""
    return b.tail - position > b.most or now_ms - rowblocks_at(b, position).at_ms > b.keep_ms


cdef void _link(RowBlocks* b, uint64_t position) noexcept nogil:
    """Put a position in front of its chain.  Locality: appending thread.  Locks: none."""
    cdef RowBlock* block = rowblocks_at(b, position)
    cdef uint64_t* slot = &b.table[block.low & (b.room - 1)]
    block.older = slot[0]
    slot[0] = position


cdef void _unlink_oldest(RowBlocks* b) noexcept nogil:
    """Take the oldest position out of its chain, of which it is the end.  Locality: appending thread.  Locks: none."""
    cdef uint64_t* at = &b.table[rowblocks_at(b, b.head).low & (b.room - 1)]
    while at[0] != b.head:
        at = &rowblocks_at(b, at[0]).older
    at[0] = 0


cdef int _grow(RowBlocks* b) noexcept nogil:
    """Double the ring and make the table anew.  Locality: appending thread.  Locks: none."""
    cdef RowBlocks wider = b[0]
    cdef uint64_t position
    wider.room = b.room * 2 if b.room else FIRST_ROOM
    wider.blocks = <RowBlock*>malloc(wider.room * sizeof(RowBlock))
    wider.table = <uint64_t*>calloc(wider.room, sizeof(uint64_t))
    if wider.blocks == NULL or wider.table == NULL:
        free(wider.blocks)
        free(wider.table)
        return ST_NO_MEMORY
    for position in range(b.head, b.tail):
        rowblocks_at(&wider, position)[0] = rowblocks_at(b, position)[0]
        _link(&wider, position)
    free(b.blocks)
    free(b.table)
    b.blocks = wider.blocks
    b.table = wider.table
    b.room = wider.room
    return ST_OK
