"""Items that carry their own names, so that they can be sent in any frame."""

from libc.stdint cimport uint8_t, uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice


cdef int name_items(
    const uint8_t* p, size_t n, int items, uint32_t count, Slice id, uint32_t* ends, Buf* out,
) noexcept nogil
