"""Items of a body that was received as one snappy block: counted and checked without unpacking the block.

Locks: none.
"""

from dataproxy._core.base.blockmap cimport BlockMap, block_map
from dataproxy._core.base.blockread cimport BlockReader, block_reader, block_word
from dataproxy._core.base.status cimport ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport load_be32


cdef int walk_packed(const uint8_t* p, size_t n, size_t limit, Buf* scratch, uint32_t* count) noexcept nogil:
    """Walk the items of a block.  Locality: owner of ``scratch``."""
    cdef size_t kept = scratch.n
    cdef BlockMap map
    cdef int status = block_map(p, n, limit, scratch, &map)
    if status == ST_OK:
        status = _walk(&map, count)
    scratch.n = kept
    return status


cdef int _walk(const BlockMap* map, uint32_t* count) noexcept nogil:
    """Read one length after the other.  Locality: any thread."""
    cdef BlockReader reader
    cdef uint32_t word = 0
    cdef size_t at = 0
    cdef size_t size
    count[0] = 0
    block_reader(&reader, map)
    while map.size - at >= 4:
        if not block_word(&reader, at, &word):
            return ST_PROTOCOL
        size = load_be32(&word)
        if size == 0 or size > map.size - at - 4:
            return ST_PROTOCOL
        at += 4 + size
        count[0] += 1
    return ST_OK if at == map.size and count[0] > 0 else ST_PROTOCOL
