"""Properties of a message: names and values in one text."""

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice


cdef bint property_next(Slice* rest, Slice* name, Slice* value) noexcept nogil
cdef bint property_value(Slice text, Slice name, Slice* value) noexcept nogil
cdef int put_property(Buf* out, size_t start, Slice name, Slice value) noexcept nogil
