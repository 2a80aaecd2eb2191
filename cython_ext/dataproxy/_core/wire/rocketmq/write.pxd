"""Frames written into a buffer, with a header of either form."""

from libc.stdint cimport int64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.rocketmq.header cimport Command


ctypedef struct CommandWriter:
    Buf* out
    const Command* command
    size_t start                # of the frame in `out`
    size_t fields_at            # where they begin
    int status                  # ST_OK as long as there is memory and all fits


cdef void write_begin(CommandWriter* w, Buf* out, const Command* command) noexcept nogil
cdef void write_text(CommandWriter* w, const char* name, Slice value) noexcept nogil
cdef void write_field(CommandWriter* w, Slice name, Slice value) noexcept nogil
cdef void write_number(CommandWriter* w, const char* name, int64_t value) noexcept nogil
cdef void write_bool(CommandWriter* w, const char* name, bint value) noexcept nogil
cdef void write_header(CommandWriter* w) noexcept nogil
cdef int write_end(CommandWriter* w) noexcept nogil
