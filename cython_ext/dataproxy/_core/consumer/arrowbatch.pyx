"""Capsules of a pack's columns, for pyarrow, pandas, Polars, DuckDB and whoever else reads Arrow's C interface.

Locality: GIL, any thread; released while columns are made.  Locks: none.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.consumer.packcolumns cimport (
    CO_ATTRIBUTES, CO_BODY, CO_ID, CO_INDEX, CO_OFFSET, CO_PACK_OFFSET, CO_PARTITION, CO_TIME, CO_TOPIC, CO_UTC,
    Columns, columns_of, columns_schema,
)
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowArrayStream, ArrowSchema

__all__ = ["ArrowBatch"]

_KINDS = {
    "topic": CO_TOPIC, "partition": CO_PARTITION, "pack_offset": CO_PACK_OFFSET, "index": CO_INDEX, "id": CO_ID,
    "attributes": CO_ATTRIBUTES, "body": CO_BODY, "offset": CO_OFFSET, "time": CO_TIME, "time_utc": CO_UTC,
}
cdef tuple USUAL = ("topic", "partition", "pack_offset", "index", "id", "attributes", "body")


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


ctypedef struct Held:           # a stream's one batch, and the kinds of its columns
    ArrowArray batch
    int n
    int kinds[COLUMNS_MOST]


cdef int _stream_schema(ArrowArrayStream* s, ArrowSchema* out) noexcept nogil:
    cdef Held* held = <Held*>s.private_data
    return 0 if columns_schema(held.kinds, held.n, out) == ST_OK else 12        # ENOMEM


cdef int _stream_next(ArrowArrayStream* s, ArrowArray* out) noexcept nogil:
    cdef Held* held = <Held*>s.private_data
    memcpy(out, &held.batch, sizeof(ArrowArray))            # without `release` it is the end
    held.batch.release = NULL
    return 0


cdef const char* _stream_error(ArrowArrayStream* s) noexcept nogil:
    return "no memory for a schema"


cdef void _stream_release(ArrowArrayStream* s) noexcept nogil:
    cdef Held* held = <Held*>s.private_data
    if held.batch.release != NULL:
        held.batch.release(&held.batch)
    free(held)
    s.release = NULL


@cython.final
cdef class ArrowBatch:
    """The messages of a pack as one record batch; each call makes its columns anew.  ``Pack.to_arrow`` makes it.

    ``names``: of the columns that are wanted, in their order.  ``rows``: how many messages, from the first one on.
    ``first``: the offset of the first message, for the column ``offset``.  Raises KeyError, ValueError.
    """

    def __cinit__(self, Pack pack not None, tuple names=USUAL, rows=None, first=None):
        cdef int i
        if len(names) > COLUMNS_MOST:
            raise ValueError(f"{len(names)} columns are too many: {COLUMNS_MOST} at the most")
        self.rows = pack.pack.n if rows is None else rows
        if not 0 <= self.rows <= pack.pack.n:
            raise ValueError(f"the pack has {pack.pack.n} messages, and not {rows}")
        pack.check_bodies()
        self.pack, self.first, self.n = pack, -1 if first is None else first, len(names)
        for i in range(self.n):
            self.kinds[i] = _KINDS[names[i]]

    def __len__(self):
        return self.rows

    cdef int fill(self, ArrowArray* out) except -1:
        """Make the columns.  Raises MemoryError."""
        cdef bytes topic = self.pack.topic.encode()
        cdef bytes partition = self.pack.partition.encode()
        cdef Columns wanted
        cdef int status
        wanted.kinds, wanted.n, wanted.rows, wanted.first = self.kinds, self.n, self.rows, self.first
        wanted.topic = slice_of(<const char*>topic, len(topic))
        wanted.partition = slice_of(<const char*>partition, len(partition))
        with nogil:
            status = columns_of(self.pack.pack, &wanted, out)
        if status != ST_OK:
            raise MemoryError("no memory for the columns of a pack")
        return 0

    def __arrow_c_schema__(self):
        """Return the schema as a capsule.  Raises MemoryError."""
        cdef ArrowSchema* s = <ArrowSchema*>calloc(1, sizeof(ArrowSchema))
        if s == NULL or columns_schema(self.kinds, self.n, s) != ST_OK:
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
        cdef Held* held = <Held*>calloc(1, sizeof(Held))
        if s == NULL or held == NULL:
            free(s)
            free(held)
            raise MemoryError("no memory for the columns of a pack")
        held.n = self.n
        memcpy(held.kinds, self.kinds, sizeof(self.kinds))
        s.get_schema, s.get_next = _stream_schema, _stream_next
        s.get_last_error, s.release = _stream_error, _stream_release
        s.private_data = held
        stream = PyCapsule_New(s, "arrow_array_stream", _free_stream)
        self.fill(&held.batch)
        return stream
