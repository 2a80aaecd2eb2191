"""Floating point numbers as the shortest text that reads back as the same number."""

from dataproxy._core.base.buf cimport Buf


cdef int put_double(Buf* out, double v) noexcept nogil
cdef int put_float(Buf* out, float v) noexcept nogil
