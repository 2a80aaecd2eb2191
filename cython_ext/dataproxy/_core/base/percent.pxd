"""Texts in which each byte beyond printable ASCII, and each ``%``, ``&`` and ``=``, is ``%`` and two digits."""

from libc.stddef cimport size_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice


cdef size_t coded_size(Slice text) noexcept nogil
cdef int put_coded(Buf* out, Slice text) noexcept nogil         # ST_OK or ST_NO_MEMORY
cdef int put_decoded(Buf* out, Slice text) noexcept nogil       # the same, or ST_PROTOCOL: it is no such text
