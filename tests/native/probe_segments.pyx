"""Python access to segments: what was taken is filled with a pattern, which is looked at when it is given back."""

from libc.stdint cimport uint8_t, uintptr_t
from libc.string cimport memset

from dataproxy._core.server.store.core cimport StoreCore
from dataproxy._core.server.store.memory cimport MemEntry
from dataproxy._core.server.store.segments cimport (
    SEGMENT_BYTES, SEGMENT_MOST, Segment, Segments, segments_free, segments_give, segments_take,
)

__all__ = ["MOST", "SIZE", "Taker", "held_by"]

MOST = <int>SEGMENT_MOST
SIZE = <int>SEGMENT_BYTES


cdef class Taker:
    """Segments and everything that is taken from them, by number."""

    cdef Segments segments
    cdef dict taken
    cdef int number

    def __cinit__(self):
        memset(&self.segments, 0, sizeof(Segments))
        self.taken = {}
        self.number = 0

    def __dealloc__(self):
        for number in list(self.taken):
            self.give(number)
        segments_free(&self.segments)

    def take(self, size_t n):
        """Take ``n`` bytes: (number to give them back by, whose they are)."""
        cdef Segment* whose = NULL
        cdef void* p = segments_take(&self.segments, n, &whose)
        if p == NULL:
            raise MemoryError
        assert <uintptr_t>p % 16 == 0
        assert <uint8_t*>p >= <uint8_t*>whose + sizeof(Segment)
        assert <uint8_t*>p + n <= <uint8_t*>whose + SEGMENT_BYTES
        self.number += 1
        memset(p, self.number & 255, n)
        self.taken[self.number] = (<uintptr_t>p, n, <uintptr_t>whose)
        return self.number, <uintptr_t>whose

    def give(self, int number):
        """Give back what was taken; its bytes are those that it was filled with."""
        p, n, whose = self.taken.pop(number)
        assert (<uint8_t*><uintptr_t>p)[:n] == bytes([number & 255]) * n
        segments_give(&self.segments, <Segment*><uintptr_t>whose)

    def kept(self):
        """Return whether there are an open segment and a spare one."""
        return self.segments.open != NULL, self.segments.spare != NULL


def held_by(StoreCore store not None):
    """Return the bytes of a store in memory that count, and those of the segments that its values keep.

    Locality: the committer does not run.
    """
    cdef MemEntry* entry = store._memory.head
    segments = set()
    while entry != NULL:
        if entry.segment != NULL:
            segments.add(<uintptr_t>entry.segment)
        entry = entry.next
    return store._memory.held_bytes, SEGMENT_BYTES * len(segments)
