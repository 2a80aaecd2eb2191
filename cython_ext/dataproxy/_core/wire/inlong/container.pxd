"""InLongMsg containers, the form in which requests are stored: writing, and reading record by record."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.inlong.attrs cimport Attrs


ctypedef struct GroupPlace:     # where the lengths of an open group stand
    size_t attr_at
    size_t data_at


cdef int put_container_head(Buf* out, int version, int64_t create_ms, uint32_t count, uint32_t groups) noexcept nogil
cdef int put_container_magic(Buf* out, int version) noexcept nogil
cdef int open_group_text(Buf* out, GroupPlace* place) noexcept nogil
cdef int end_text(Buf* out, size_t at, Slice group, Slice stream, int64_t now_ms) noexcept nogil
cdef int put_text(Buf* out, Slice utf8) noexcept nogil                  # as modified UTF-8
cdef int close_group_text(Buf* out, const GroupPlace* place) noexcept nogil
cdef int put_payload(Buf* out, Slice payload, bint packed) noexcept nogil
cdef int put_stored_attrs(
    Buf* out, const Buf* store, const Attrs* attrs, int64_t data_time_ms, bint keep_dt, int64_t cnt,
    int64_t receive_ms,
) noexcept nogil


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
