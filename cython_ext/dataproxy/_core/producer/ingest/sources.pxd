"""Python sequences and buffers as rows of bodies."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.producer.ingest.rows cimport RowOwners, Rows


cdef class BodyList:            # keeps what the rows point to; GIL
    cdef Rows rows
    cdef object keep
    cdef list views             # buffers of items that are not bytes
    cdef const uint8_t** pointers
    cdef int64_t* lengths
    cdef RowOwners owners       # of large bodies; `each` is NULL without any
    cdef Py_buffer view
    cdef bint has_view


cdef BodyList body_rows(object bodies, size_t hold_from)
