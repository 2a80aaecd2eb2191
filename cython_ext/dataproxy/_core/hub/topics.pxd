"""The set of topics that a hub takes: whole groups, or single streams of a group."""

from libc.stdint cimport uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice


ctypedef struct Topic:
    bint used
    bint whole              # every stream of the group
    uint64_t hash
    size_t group_at         # offsets into Topics.names
    size_t group_n
    size_t stream_at
    size_t stream_n


ctypedef struct Topics:     # built by one thread, then constant
    Topic* table
    size_t size             # a power of two
    Buf names


cdef int topics_init(Topics* t, size_t count) noexcept nogil                            # room for `count` topics
cdef void topics_free(Topics* t) noexcept nogil
cdef int topics_add(Topics* t, Slice group, Slice stream, bint whole) noexcept nogil    # ST_OK or ST_NO_MEMORY
cdef bint topics_known(void* topics, Slice group, Slice stream) noexcept nogil          # fits ServerProfile.known
