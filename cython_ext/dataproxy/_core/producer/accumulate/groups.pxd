"""Numbers of groups, by which packs find their cluster.

Locality: any thread.  Locks: the batcher's is held, except where a function says otherwise.
"""

from libc.stdint cimport uint64_t

from dataproxy._core.base.slice cimport Slice


ctypedef struct GroupName:
    uint64_t hash
    int number
    Slice text              # owned


ctypedef struct GroupTable:     # guarded by the batcher's lock
    GroupName* items
    int n
    int room


cdef int groups_find(const GroupTable* t, Slice group) noexcept nogil
cdef int groups_add(GroupTable* t, Slice group, int number) noexcept nogil
cdef void groups_close(GroupTable* t) noexcept nogil
