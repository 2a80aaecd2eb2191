"""Capsules of a pack's columns, for pyarrow, pandas, Polars, DuckDB and whoever else reads Arrow's C interface.

Locality: GIL, any thread; released while columns are made.  Locks: none.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.consumer.packcolumns cimport columns_of, columns_schema
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowArrayStream, ArrowSchema

__all__ = ["ArrowBatch"]


cdef void _free_schema(object capsule) noexcept:
    cdef ArrowSchema* s = <ArrowSchema*>PyCapsule_GetPointer(capsule, "arrow_schema")
    if s.release != NULL:
        s.release(s)
    free(s)


cdef void _free_array(object capsule) noexcept:
    cdef ArrowArray* a = <ArrowArray*>PyCapsule_GetPointer(capsule, "arrow_array")
    if a.release != NULL:
        a.release(a)
    free(a)


cdef void _free_stream(object capsule) noexcept:
    cdef ArrowArrayStream* s = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if s.release != NULL:
        s.release(s)
    free(s)


cdef int _stream_schema(ArrowArrayStream* s, ArrowSchema* out) noexcept nogil:
    return 0 if columns_schema(out) == ST_OK else 12        # ENOMEM


cdef int _stream_next(ArrowArrayStream* s, ArrowArray* out) noexcept nogil:
    cdef ArrowArray* held = <ArrowArray*>s.private_data
    memcpy(out, held, sizeof(ArrowArray))                   # without `release` it is the end
    held.release = NULL
    return 0


cdef const char* _stream_error(ArrowArrayStream* s) noexcept nogil:
    return "no memory for a schema"


cdef void _stream_release(ArrowArrayStream* s) noexcept nogil:
    cdef ArrowArray* held = <ArrowArray*>s.private_data
    if held.release != NULL:
        held.release(held)
    free(held)
    s.release = NULL


@cython.final
cdef class ArrowBatch:
    """The messages of a pack as one record batch; each call makes its columns anew.  ``Pack.to_arrow`` makes it."""

    def __cinit__(self, Pack pack not None):
        self.pack = pack

    def __len__(self):
        return len(self.pack)

    cdef int fill(self, ArrowArray* out) except -1:
        """Make the columns.  Raises MemoryError."""
        cdef bytes topic = self.pack.topic.encode()
        cdef bytes partition = self.pack.partition.encode()
        cdef Slice t = slice_of(<const char*>topic, len(topic))
        cdef Slice p = slice_of(<const char*>partition, len(partition))
        cdef int status
        with nogil:
            status = columns_of(self.pack.pack, t, p, out)
        if status != ST_OK:
            raise MemoryError("no memory for the columns of a pack")
        return 0

    def __arrow_c_schema__(self):
        """Return the schema as a capsule.  Raises MemoryError."""
        cdef ArrowSchema* s = <ArrowSchema*>calloc(1, sizeof(ArrowSchema))
        if s == NULL or columns_schema(s) != ST_OK:
            free(s)
            raise MemoryError("no memory for a schema")
        return PyCapsule_New(s, "arrow_schema", _free_schema)

    def __arrow_c_array__(self, requested_schema=None):
        """Return schema and columns as capsules; another schema than the own one is not made.  Raises MemoryError."""
        cdef ArrowArray* a
        schema = self.__arrow_c_schema__()
        a = <ArrowArray*>calloc(1, sizeof(ArrowArray))
        if a == NULL:
            raise MemoryError("no memory for the columns of a pack")
        array = PyCapsule_New(a, "arrow_array", _free_array)
        self.fill(a)
        return schema, array

    def __arrow_c_stream__(self, requested_schema=None):
        """Return a stream of one batch as a capsule.  Raises MemoryError."""
        cdef ArrowArrayStream* s = <ArrowArrayStream*>calloc(1, sizeof(ArrowArrayStream))
        cdef ArrowArray* a = <ArrowArray*>calloc(1, sizeof(ArrowArray))
        if s == NULL or a == NULL:
            free(s)
            free(a)
            raise MemoryError("no memory for the columns of a pack")
        s.get_schema, s.get_next = _stream_schema, _stream_next
        s.get_last_error, s.release = _stream_error, _stream_release
        s.private_data = a
        stream = PyCapsule_New(s, "arrow_array_stream", _free_stream)
        self.fill(a)
        return stream
