"""Attributes of rows that are written out first: from columns of their own, or escaped."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.producer.ingest.columnar.bodies cimport BodyEncoder
from dataproxy._core.producer.ingest.columnar.columns cimport AttrColumn
from dataproxy._core.encode.nodes cimport NodeTree


cdef class AttrTexts:           # GIL
    cdef list keep              # key and value of each entry in turn
    cdef int32_t* offsets       # entries by rows
    cdef const uint8_t** pointers       # of keys, then of values
    cdef int64_t* lengths

    cdef int describe(self, list rows, AttrColumn* out) except -1
    cdef int describe_texts(self, list texts, AttrColumn* out) except -1


cdef list attrs_in_columns(BodyEncoder encoder, NodeTree* tree, list keys, int64_t start, int64_t n)
cdef list attrs_in_map(const AttrColumn* column, int64_t n)
