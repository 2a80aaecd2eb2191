"""Python access to the walk over snappy blocks, beside unpacking them and walking what comes out."""

from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from dataproxy._core.base.snappy.blockmap cimport BlockMap, block_map
from dataproxy._core.base.snappy.blockread cimport BlockReader, block_reader, block_word
from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.snappy.compress cimport unpack_block
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.wire.inlong.items cimport Walk, walk_items, walk_packed


__all__ = ["Block"]


cdef class Block:
    """A block in memory of exactly its size, and the room that its walks use."""

    cdef uint8_t* p
    cdef size_t n
    cdef Buf room

    def __cinit__(self, bytes data):
        buf_init(&self.room)
        self.n = <size_t>len(data)
        self.p = <uint8_t*>malloc(self.n if self.n else 1)
        if self.p == NULL:
            raise MemoryError
        memcpy(self.p, <const char*>data, self.n)

    def __dealloc__(self):
        free(self.p)
        buf_free(&self.room)

    cdef bint _mapped(self, size_t limit, BlockMap* map) except -1:
        cdef int status
        self.room.n = 0
        status = block_map(self.p, self.n, limit, &self.room, map)
        if status == ST_NO_MEMORY:
            raise MemoryError
        return status == ST_OK

    def marks(self, size_t limit):
        """Return the marks as (place in the block, place in the content), None when the walk cannot tell."""
        cdef BlockMap map
        if not self._mapped(limit, &map):
            return None
        return [(map.marks[i] & 0xFFFFFFFF, map.marks[i] >> 32) for i in range(map.count)]

    def words(self, size_t limit, places):
        """Return the four bytes at each of the ascending places, None for those that take too long.

        Raises ValueError for a place that is not in the content: the walk never asks for one.
        """
        cdef BlockMap map
        cdef BlockReader reader
        cdef uint32_t word = 0
        if not self._mapped(limit, &map):
            return None
        beyond = [place for place in places if place + 4 > map.size]
        if beyond:
            raise ValueError(f"places {beyond} are not in {map.size} bytes")
        block_reader(&reader, &map)
        return [(<uint8_t*>&word)[:4] if block_word(&reader, place, &word) else None for place in places]

    def items(self, size_t limit):
        """Return the number of items in the block found by the walk, None when only unpacking can tell."""
        cdef uint32_t count = 0
        cdef int status
        with nogil:
            status = walk_packed(self.p, self.n, limit, &self.room, &count)
        if status == ST_NO_MEMORY:
            raise MemoryError
        return count if status == ST_OK else None

    def unpacked_items(self, size_t limit):
        """Return the number of items in the unpacked content, None when it is no block or they are malformed."""
        cdef Walk walk
        cdef int status
        self.room.n = 0
        with nogil:
            status = unpack_block(self.p, self.n, limit, &self.room)
            if status == ST_OK:
                status = walk_items(self.room.p, self.room.n, &walk)
            self.room.n = 0
        if status == ST_NO_MEMORY:
            raise MemoryError
        return walk.count if status == ST_OK else None
