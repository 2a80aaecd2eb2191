"""A pack as Arrow's C data interface hands it out."""

from dataproxy._core.consumer.pack cimport Pack
from dataproxy._core.plat.arrow cimport ArrowArray


cdef class ArrowBatch:
    cdef Pack pack

    cdef int fill(self, ArrowArray* out) except -1
