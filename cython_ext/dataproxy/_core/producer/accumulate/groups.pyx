"""Numbers of groups, by which packs find their cluster.

The Python layer gives the numbers, in turn and before the first stream of a group is made; at most some thousands.
They are looked up when a stream is made, never when a message is sent.

Locality: any thread.  Locks: the batcher's is held, except where a function says otherwise.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.accumulate.streams cimport streams_hash


cdef uint64_t _hash(Slice group) noexcept nogil:
    return streams_hash(group, slice_of(NULL, 0), slice_of(NULL, 0))


cdef int groups_find(const GroupTable* t, Slice group) noexcept nogil:
    """Return the number of a group, -1 if it has none."""
    cdef uint64_t h = _hash(group)
    cdef int i
    for i in range(t.n):
        if t.items[i].hash == h and slice_equals(t.items[i].text, group):
            return t.items[i].number
    return -1


cdef int groups_add(GroupTable* t, Slice group, int number) noexcept nogil:
    """Give a group that has none a number; ST_OK or ST_NO_MEMORY."""
    cdef int room
    cdef GroupName* grown
    cdef uint8_t* text
    if groups_find(t, group) >= 0:
        return ST_OK
    if t.n == t.room:
        room = 2 * t.room if t.room else 8
        grown = <GroupName*>realloc(t.items, <size_t>room * sizeof(GroupName))
        if grown == NULL:
            return ST_NO_MEMORY
        t.items = grown
        t.room = room
    text = <uint8_t*>malloc(group.n + 1)
    if text == NULL:
        return ST_NO_MEMORY
    memcpy(text, group.p, group.n)
    t.items[t.n].hash = _hash(group)
    t.items[t.n].number = number
    t.items[t.n].text = slice_of(text, group.n)
    t.n += 1
    return ST_OK


cdef void groups_close(GroupTable* t) noexcept nogil:
    """Release all names.  Locality: the last user.  Locks: none."""
    cdef int i
    for i in range(t.n):
        free(<void*>t.items[i].text.p)
    free(t.items)
    memset(t, 0, sizeof(GroupTable))
