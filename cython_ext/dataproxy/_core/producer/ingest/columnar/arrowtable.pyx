"""A table with Arrow's C interface, chunk by chunk.

A chunk is checked once, as a whole, and is then sent in parts.  The columns that route the rows of a part are the
chunk's columns, moved on to the part's first row.

Locality: GIL, one thread a table; ``shift_rows`` any thread.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from dataproxy._core.producer.ingest.columnar.arrow cimport ArrowChunks, column_rows, open_arrow
from dataproxy._core.producer.ingest.columnar.arrowshape cimport check_part, check_schema, field_name, index_kind
from dataproxy._core.producer.ingest.rows cimport ROWS_POINTERS, rows_get
from dataproxy._core.encode.nodes cimport integer_at, tree_close
from dataproxy._core.plat.arrow cimport ArrowArray, ArrowSchema

from dataproxy.errors import InvalidMessageError

__all__ = ["ArrowTable"]


cdef class ArrowTable:
    """Hold a table that can be read once.  ``data`` has ``__arrow_c_stream__`` or ``__arrow_c_array__``.

    Raises InvalidMessageError for an object that is no table, and the errors that the object itself raises.
    """

    def __cinit__(self, data):
        cdef ArrowSchema* schema
        cdef ArrowSchema* child
        cdef int64_t i
        self.chunks = open_arrow(data)
        schema = self.chunks.schema
        check_schema(schema)
        if schema.format != b"+s":
            raise InvalidMessageError(
                f"{type(data).__name__!r} is a single column, not a table", code="BAD_COLUMN",
                hint="make a table of it, or send it as bodies with send_arrow")
        names, formats, encoded = [], [], []
        for i in range(schema.n_children):
            child = schema.children[i]
            check_schema(child)
            names.append(field_name(child))
            encoded.append(child.dictionary != NULL)
            if child.dictionary != NULL:
                child = child.dictionary
                check_schema(child)
            formats.append(child.format.decode("utf-8", "replace"))
        self.names, self.formats, self.encoded = tuple(names), tuple(formats), tuple(encoded)


cdef class RowPointers:
    """Point to the text of each row of a dictionary-encoded column: the dictionary's texts, repeated."""

    def __dealloc__(self):
        free(self.pointers)
        free(self.lengths)
        free(self.validity)

    cdef int fill(self, const Rows* indices_of, const Rows* values, int kind, const uint8_t* indices) except -1:
        """Look up all rows.  ``indices_of`` has the number of rows and their nulls.  Raises MemoryError."""
        cdef int64_t n = indices_of.n, i, at
        cdef size_t size = 0
        cdef bint there
        self.pointers = <const uint8_t**>calloc(<size_t>n + 1, sizeof(uint8_t*))
        self.lengths = <int64_t*>calloc(<size_t>n + 1, sizeof(int64_t))
        self.validity = <uint8_t*>malloc(<size_t>(n >> 3) + 1)
        if self.pointers == NULL or self.lengths == NULL or self.validity == NULL:
            raise MemoryError(f"no memory for a column of {n} texts")
        with nogil:
            memset(self.validity, 255, <size_t>(n >> 3) + 1)
            for i in range(n):
                at = indices_of.offset + i
                there = indices_of.validity == NULL or (indices_of.validity[at >> 3] >> (at & 7)) & 1
                if there:
                    there = rows_get(values, integer_at(kind, indices, at), &self.pointers[i], &size)
                    self.lengths[i] = <int64_t>size
                if not there:
                    self.validity[i >> 3] &= <uint8_t>~(1 << (i & 7))
        return 0


cdef class TableChunk:
    """Own one record batch of a table."""

    def __cinit__(self):
        self.array = NULL
        memset(&self.columns, 0, sizeof(self.columns))
        memset(&self.bodies, 0, sizeof(self.bodies))
        memset(&self.shown, 0, sizeof(self.shown))
        memset(&self.attrs, 0, sizeof(self.attrs))
        self.kept = []

    def __dealloc__(self):
        tree_close(&self.bodies)
        tree_close(&self.shown)
        tree_close(&self.attrs)

    cdef int read_text(self, int at, Rows* out) except -1:
        """Describe a column of text or binary, dictionary-encoded or not.  Raises InvalidMessageError."""
        cdef ArrowSchema* field = self.source.schema.children[at]
        cdef ArrowArray* values
        cdef RowPointers pointers
        cdef Rows indices, texts
        if field.dictionary == NULL:
            return column_rows(self.source.schema, self.array, at, out)
        check_part(self.source.schema, self.array, at)
        values = self.array.children[at]
        memset(&indices, 0, sizeof(Rows))
        indices.n = self.array.length
        indices.offset = self.array.offset + values.offset
        indices.validity = <const uint8_t*>values.buffers[0] if values.null_count != 0 else NULL
        column_rows(field.dictionary, values.dictionary, -1, &texts)
        pointers = RowPointers()
        pointers.fill(&indices, &texts, index_kind(field.format), <const uint8_t*>values.buffers[1])
        self.kept.append(pointers)
        memset(out, 0, sizeof(Rows))
        out.kind = ROWS_POINTERS
        out.pointers = pointers.pointers
        out.lengths = pointers.lengths
        out.validity = pointers.validity
        out.n = self.array.length
        return 0

    cdef int open_shown(self, BodyEncoder encoder) except -1:
        """Open the columns from which rows are shown, unless this was done.  Raises InvalidMessageError."""
        if not self.has_shown:
            encoder._open(&self.shown, self.source.schema, self.array)
            self.has_shown = True
        return 0


cdef TableChunk next_table_chunk(ArrowTable table):
    """Return the next chunk, None after the last one.  Raises InvalidMessageError."""
    cdef TableChunk out = TableChunk()
    cdef ArrowChunks chunks = table.chunks
    out.source = chunks
    out.array = chunks.next_chunk()
    if out.array == NULL:
        return None
    out.own = chunks.owner()
    if out.array.null_count != 0 and out.array.n_buffers > 0 and out.array.buffers[0] != NULL:
        raise InvalidMessageError("rows that are null as a whole cannot be sent", hint="filter them out",
                                  code="BAD_COLUMN")
    return out


cdef void shift_rows(Rows* rows, int64_t start, int64_t n) noexcept nogil:
    """Keep only ``n`` rows, from ``start`` on.  Locality: any thread."""
    rows.offset += start
    if rows.kind == ROWS_POINTERS:
        rows.pointers += start
        rows.lengths += start
    rows.n = n
