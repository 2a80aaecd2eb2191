"""InLongMsg containers, the form in which requests are stored: writing."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.inlong.attrs cimport Attrs


ctypedef struct GroupPlace:     # where the lengths of an open group stand
    size_t attr_at
    size_t data_at


cdef int put_container_head(Buf* out, int version, int64_t create_ms, uint32_t count, uint32_t groups) noexcept nogil
cdef int put_container_magic(Buf* out, int version) noexcept nogil
cdef int open_group_text(Buf* out, GroupPlace* place) noexcept nogil
cdef int put_text(Buf* out, Slice utf8) noexcept nogil                  # as modified UTF-8
cdef int close_group_text(Buf* out, const GroupPlace* place) noexcept nogil
cdef int put_payload(Buf* out, Slice payload, bint packed) noexcept nogil
cdef int put_stored_attrs(
    Buf* out, const Buf* store, const Attrs* attrs, int64_t data_time_ms, bint keep_dt, int64_t cnt,
    int64_t receive_ms,
) noexcept nogil
