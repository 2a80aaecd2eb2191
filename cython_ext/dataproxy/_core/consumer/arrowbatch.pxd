"""A pack as Arrow's C data interface hands it out."""

from libc.stdint cimport int64_t

from dataproxy._core.consumer.pack cimport Pack
from dataproxy._core.plat.arrow cimport ArrowArray


cdef enum:
    COLUMNS_MOST = 16


cdef class ArrowBatch:
    cdef Pack pack
    cdef int64_t rows
    cdef int64_t first              # offset of the first message, below 0: not known
    cdef int n                      # columns
    cdef int[COLUMNS_MOST] kinds

    cdef int fill(self, ArrowArray* out) except -1
