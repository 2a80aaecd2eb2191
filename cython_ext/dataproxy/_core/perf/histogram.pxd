"""High dynamic range histogram as an object of Python's."""

from dataproxy._core.base.hdr cimport Hdr


cdef class Histogram:
    cdef Hdr hdr                # GIL
