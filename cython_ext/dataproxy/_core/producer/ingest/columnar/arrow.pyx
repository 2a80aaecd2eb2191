"""Arrow's C data interface: any object with ``__arrow_c_stream__`` or ``__arrow_c_array__``, without pyarrow.

Formats accepted as bodies: binary ``z``, utf8 ``u``, their large forms ``Z`` and ``U``, the view types ``vz``
and ``vu``, and fixed-size binary ``w:N``.

Locality: GIL.  Locks: none.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from dataproxy._core.producer.ingest.columnar.arrowshape cimport check_part, check_schema, field_name
from dataproxy._core.producer.ingest.rows cimport ROWS_FIXED, ROWS_OFFSETS32, ROWS_OFFSETS64, ROWS_VIEWS, Rows
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowArrayStream, ArrowSchema

from dataproxy.errors import InvalidMessageError

__all__ = ["ArrowChunks"]

_TAKEN = "binary, string, their large and view forms, and fixed-size binary"
_WIDTH_DIGITS = 9       # digits of N in w:N; a body is much smaller than 1 GB
_BODY_COLUMNS = ("value", "body")


cdef class ArrowChunk:
    """Own one chunk of a stream, as long as somebody reads it or a pack holds one of its bodies."""

    def __cinit__(self):
        memset(&self.array, 0, sizeof(ArrowArray))

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)


cdef class ArrowChunks:
    """Own the Arrow structs behind one Python object while its chunks are read."""

    def __cinit__(self):
        self.stream = NULL
        self.single = NULL
        memset(&self.own_schema, 0, sizeof(ArrowSchema))
        self.schema = &self.own_schema

    def __dealloc__(self):
        if self.own_schema.release != NULL:
            self.own_schema.release(&self.own_schema)

    cdef object owner(self):
        """Return what keeps the memory of the chunk which ``next_chunk`` gave last; None: it may end after the call.

        Who gives capsules keeps them, and may let another consumer move the array out and release it.
        """
        return self.chunk

    cdef ArrowArray* next_chunk(self) except? NULL:
        """Return the next chunk, valid until the next call, or NULL at the end.

        Raises KeyboardInterrupt or InvalidMessageError when the stream failed.
        """
        cdef const char* said
        if self.done:
            return NULL
        if self.stream == NULL:
            self.done = True
            return self.single
        self.chunk = ArrowChunk()           # the one before is released here, unless packs hold bodies of it
        if self.stream.get_next(self.stream, &self.chunk.array) != 0:
            said = self.stream.get_last_error(self.stream)
            why = said.decode("utf-8", "replace") if said != NULL else "it gave no reason"
            if why.rstrip().endswith("\nKeyboardInterrupt"):        # how pyarrow reports a Ctrl-C in a Python reader
                raise KeyboardInterrupt
            raise InvalidMessageError(f"the Arrow stream failed while it was read: {why}", code="BAD_COLUMN")
        if self.chunk.array.release == NULL:
            self.done = True
            return NULL
        return &self.chunk.array


cdef ArrowChunks open_arrow(object data):
    """Return the chunks of ``data``; raises InvalidMessageError for an object without Arrow's interface."""
    cdef ArrowChunks chunks = ArrowChunks()
    if isinstance(data, tuple) and len(data) == 2 and PyCapsule_IsValid(data[0], "arrow_schema") and (
            PyCapsule_IsValid(data[1], "arrow_array")):
        return _open_array(chunks, data)
    if hasattr(data, "__arrow_c_stream__"):
        chunks.keep = (data, data.__arrow_c_stream__())
        if not PyCapsule_IsValid(chunks.keep[1], "arrow_array_stream"):
            raise _no_capsules(data, "__arrow_c_stream__", "capsule 'arrow_array_stream'")
        chunks.stream = <ArrowArrayStream*>PyCapsule_GetPointer(chunks.keep[1], "arrow_array_stream")
        if chunks.stream.release == NULL:
            raise InvalidMessageError(
                "the Arrow stream was already consumed", hint="pass a new one", code="BAD_COLUMN")
        if chunks.stream.get_schema(chunks.stream, &chunks.own_schema) != 0:
            raise InvalidMessageError("the Arrow stream gave no schema", code="BAD_COLUMN")
        return chunks
    if hasattr(data, "__arrow_c_array__"):
        capsules = data.__arrow_c_array__()
        if not (isinstance(capsules, tuple) and len(capsules) == 2
                and PyCapsule_IsValid(capsules[0], "arrow_schema") and PyCapsule_IsValid(capsules[1], "arrow_array")):
            raise _no_capsules(data, "__arrow_c_array__", "pair of capsules 'arrow_schema' and 'arrow_array'")
        return _open_array(chunks, capsules, data)
    raise InvalidMessageError(
        f"{type(data).__name__!r} has neither __arrow_c_stream__ nor __arrow_c_array__",
        hint="pass a pyarrow, Polars, pandas (2.2+) or nanoarrow object, or use send_batch for a list",
        code="BAD_COLUMN")


cdef object _no_capsules(object data, str method, str wanted):
    """Return the error for an object whose method breaks Arrow's interface."""
    return InvalidMessageError(
        f"{method} of {type(data).__name__!r} returned no {wanted}",
        hint="pass a pyarrow, Polars, pandas (2.2+) or nanoarrow object", code="BAD_COLUMN")


cdef ArrowChunks _open_array(ArrowChunks chunks, tuple capsules, object owner=None):
    chunks.keep = (owner, capsules)
    chunks.schema = <ArrowSchema*>PyCapsule_GetPointer(capsules[0], "arrow_schema")
    chunks.single = <ArrowArray*>PyCapsule_GetPointer(capsules[1], "arrow_array")
    if chunks.schema.release == NULL or chunks.single.release == NULL:
        raise InvalidMessageError("the Arrow data was already consumed", hint="pass new data", code="BAD_COLUMN")
    if owner is not None:               # its capsules were made for this call: the array is moved, as the format says
        chunks.chunk = ArrowChunk()
        chunks.chunk.array = chunks.single[0]
        chunks.single.release = NULL
        chunks.single = &chunks.chunk.array
    return chunks


cdef int column_index(ArrowSchema* schema, object column, object id_column) except -2:
    """Return which child holds the bodies: -1 for the array itself.

    ``column`` is a name, or None for the only column beside ``id_column``, ``value`` or ``body``.  Raises
    InvalidMessageError.
    """
    cdef int64_t i
    names = []
    check_schema(schema)
    if schema.format != b"+s":
        if column is not None:
            raise InvalidMessageError(
                f"column {column!r} was asked for, but the data is a single array", hint="leave `column` out",
                code="BAD_COLUMN")
        return -1
    for i in range(schema.n_children):
        names.append(field_name(schema.children[i]))
    if column is not None:
        if column not in names:
            raise InvalidMessageError(
                f"there is no column {column!r}", hint=f"the columns are {names!r}", code="BAD_COLUMN")
        return _only(names, column)
    others = [name for name in names if name != id_column]
    if len(others) == 1:
        return names.index(others[0])
    found = [name for name in _BODY_COLUMNS if name in names]
    if len(found) != 1:
        raise InvalidMessageError(
            f"it is not clear which of the columns {names!r} holds the bodies", hint="name it with `column=`",
            code="BAD_COLUMN")
    return _only(names, found[0])


cdef int _only(list names, object name) except -2:
    """Return the place of the one column that has this name.  Raises InvalidMessageError."""
    n = names.count(name)
    if n > 1:
        raise InvalidMessageError(
            f"{n} columns are called {name!r}", hint="rename one of them, or select the right one", code="BAD_COLUMN")
    return names.index(name)


cdef int column_rows(ArrowSchema* schema, ArrowArray* array, int column, Rows* rows) except -1:
    """Describe one column of a chunk as rows of bodies.  Raises InvalidMessageError."""
    cdef ArrowSchema* field = schema
    cdef ArrowArray* values = array
    cdef bytes form
    memset(rows, 0, sizeof(Rows))
    check_part(schema, array, column)
    rows.n = array.length
    if column >= 0:
        if array.null_count != 0 and array.n_buffers > 0 and array.buffers[0] != NULL:
            raise InvalidMessageError(
                "rows that are null as a whole cannot be sent", hint="filter them out", code="BAD_COLUMN")
        field = schema.children[column]
        values = array.children[column]
        rows.offset = array.offset
    rows.offset += values.offset
    form = field.format
    name = field_name(field)
    if field.dictionary != NULL:
        raise InvalidMessageError(
            f"column {name!r} is dictionary-encoded", hint="cast it to binary or string", code="BAD_COLUMN")
    if form in (b"z", b"u"):
        rows.kind = ROWS_OFFSETS32
        rows.offsets32 = <const int32_t*>values.buffers[1]
        rows.base = <const uint8_t*>values.buffers[2]
    elif form in (b"Z", b"U"):
        rows.kind = ROWS_OFFSETS64
        rows.offsets64 = <const int64_t*>values.buffers[1]
        rows.base = <const uint8_t*>values.buffers[2]
    elif form in (b"vz", b"vu"):
        rows.kind = ROWS_VIEWS
        rows.views = <const uint8_t*>values.buffers[1]
        rows.buffers = <const uint8_t**>&values.buffers[2]
    elif form.startswith(b"w:") and form[2:].isdigit() and len(form) <= _WIDTH_DIGITS + 2:
        rows.kind = ROWS_FIXED
        rows.width = int(form[2:])
        rows.stride = rows.width
        rows.base = <const uint8_t*>values.buffers[1]
    else:
        raise InvalidMessageError(
            f"column {name!r} has the Arrow type {form.decode('utf-8', 'replace')!r}, which cannot hold bodies",
            hint=f"cast it to one of: {_TAKEN}", code="BAD_COLUMN")
    if values.null_count != 0:
        rows.validity = <const uint8_t*>values.buffers[0]
    return 0
