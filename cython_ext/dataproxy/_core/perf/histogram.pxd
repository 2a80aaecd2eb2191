"""High dynamic range histogram as a Python object."""

from dataproxy._core.base.hdr cimport Hdr


cdef class Histogram:
    cdef Hdr hdr                # GIL
