"""Arrow columns as rows of bodies, through the C data interface."""

from libc.stdint cimport int64_t

from dataproxy._core.producer.ingest.rows cimport Rows
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowArrayStream, ArrowSchema


cdef class ArrowChunk:              # owns one chunk of a stream; GIL
    cdef ArrowArray array


cdef class ArrowChunks:             # iterates over the chunks of one object; GIL
    cdef object keep                # capsules, and the objects that own them
    cdef ArrowArrayStream* stream   # NULL for a single array
    cdef ArrowSchema own_schema
    cdef ArrowSchema* schema
    cdef ArrowChunk chunk           # None before the first, and for an array whose capsule the caller keeps
    cdef ArrowArray* single
    cdef bint done

    cdef ArrowArray* next_chunk(self) except? NULL
    cdef object owner(self)


cdef ArrowChunks open_arrow(object data)
cdef int column_index(ArrowSchema* schema, object column, object id_column) except -2
cdef int column_rows(ArrowSchema* schema, ArrowArray* array, int column, Rows* rows) except -1
