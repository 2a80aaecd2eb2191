"""Names that a hub knows: its topics (whole groups, or single streams of a group), and the names of numeric ids."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.api cimport NumberedNames


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


ctypedef struct Number:
    uint32_t key            # group number << 16 | stream number; stream number 0 is the group itself
    size_t at               # of its name in Numbers.names
    size_t n


ctypedef struct Numbers:    # built by one thread, then constant
    Number* list            # by rising key
    size_t count
    Buf names


ctypedef struct Names:      # the context of a ServerProfile
    Topics topics           # first: topics_known gets the same pointer
    Numbers numbers


cdef int numbers_init(Numbers* numbers, size_t count) noexcept nogil    # room for `count`; ST_OK or ST_NO_MEMORY
cdef void numbers_free(Numbers* numbers) noexcept nogil
cdef int numbers_add(Numbers* numbers, uint32_t key, Slice name) noexcept nogil     # by rising key
cdef void numbers_find(void* context, uint32_t group_num, uint32_t stream_num,
                       NumberedNames* out) noexcept nogil               # fits ServerProfile.numbered
