"""Bodies that are made here from the columns of a record batch."""

from dataproxy._core.encode.lines cimport Lines, LineStyle
from dataproxy._core.encode.nodes cimport NodeTree
from dataproxy._core.encode.times cimport Zone
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema


cdef class BodyEncoder:
    cdef LineStyle style
    cdef int* columns
    cdef int n_columns
    cdef Zone* zones
    cdef const char** zone_names
    cdef int n_zones
    cdef size_t usual           # bytes of the last batch's bodies
    cdef list keep              # what the pointers above lead to
    cdef object zone_table

    cdef int make(self, ArrowSchema* schema, ArrowArray* array, Lines* lines) except -1
    cdef int _open(self, NodeTree* tree, ArrowSchema* schema, ArrowArray* array) except -1
    cdef bint _knows(self, bytes name)
    cdef int _learn_zone(self, bytes name) except -1
