"""Names for the numeric group and stream ids of binary requests, together with the hub's known topics."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.hub.topics cimport Topics
from dataproxy._core.wire.api cimport NumberedNames


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
