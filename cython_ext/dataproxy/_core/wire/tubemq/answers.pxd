"""Answers of a server as whole frames: a message, or an exception in its place."""

from libc.stdint cimport int32_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice


# Append a frame; ST_OK, ST_NO_MEMORY, or ST_LIMIT: the message is larger than any client reads.
cdef int add_answer(Buf* out, uint32_t serial, int32_t method, Slice message) noexcept nogil
cdef int add_exception(Buf* out, uint32_t serial, int status, Slice name, Slice trace) noexcept nogil
