"""InLongMsg containers: reading, one group and one record at a time."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice


cdef enum:
    MAX_UNPACKED = 67108864     # of one payload, unless the caller says otherwise


ctypedef struct Container:      # a reader's place; everything is borrowed from the bytes and from scratch
    int version
    int64_t create_ms           # -1 where the version has none
    uint32_t count              # as written; 0 where the version has none
    bint packed                 # some payload came as a snappy block
    uint16_t ext                # version 4
    uint16_t group_num
    uint16_t stream_num
    Slice attrs                 # text of the open group: modified UTF-8, in version 4 plain
    const char* reason          # of a refusal
    # The reader's own.
    const uint8_t* p
    size_t at
    size_t end                  # where the closing magic stands
    size_t limit
    Buf* scratch
    uint32_t groups_left
    bint whole                  # the payload is one record that nobody can look into
    Slice payload
    size_t item_at
    size_t run_end              # version 3: end of the record whose pairs are read


cdef int container_open(Container* c, const uint8_t* p, size_t n, size_t limit, Buf* scratch) noexcept nogil
cdef int container_group(Container* c) noexcept nogil           # ST_OK, ST_EOF or ST_PROTOCOL
cdef int container_record(Container* c, Slice* body, Slice* attrs) noexcept nogil  # the same; attrs may be NULL
