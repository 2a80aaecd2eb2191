"""COMMIT: a pack was consumed, or not."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.slice cimport Slice


ctypedef struct CommitRequest:
    Slice client
    Slice topic
    int32_t partition
    Slice group
    bint consumed               # also if the field is not there


ctypedef struct Committed:      # an answer
    bint success
    int32_t code
    Slice text
    int64_t offset              # where the next pack begins; UNKNOWN: not given
    int64_t max_offset          # UNKNOWN: not given


cdef int read_commit(Slice request, CommitRequest* out) noexcept nogil
cdef size_t commit_size(const CommitRequest* c) noexcept nogil
cdef uint8_t* put_commit(uint8_t* to, const CommitRequest* c) noexcept nogil
cdef int read_committed(Slice data, Committed* out) noexcept nogil
cdef size_t committed_size(const Committed* c) noexcept nogil
cdef uint8_t* put_committed(uint8_t* to, const Committed* c) noexcept nogil
