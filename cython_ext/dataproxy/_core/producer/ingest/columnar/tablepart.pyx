"""Some thousand rows of a table, from their bodies to the runs that are accepted.

Locality: GIL, one thread at a time; functions without the GIL on any thread.  Locks: none.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from dataproxy._core.producer.accumulate.state cimport NO_TIME
from dataproxy._core.producer.ingest.columnar.columns cimport Columns, RunTable, TimeColumn, runs_free
from dataproxy._core.producer.ingest.rows cimport Rows, rows_get
from dataproxy._core.producer.ingest.stream cimport SendPolicy
from dataproxy._core.encode.lines cimport Lines, LineStyle, lines_free, lines_make
from dataproxy._core.encode.nodes cimport NodeTree

from datetime import UTC, datetime

from dataproxy.errors import InvalidMessageError

cdef int64_t FIRST_SECOND = 946684800           # 2000-01-01; read as milliseconds these numbers are days of early 1970
cdef int64_t LAST_SECOND = 4294967296


cdef class TablePart:
    """Hold some rows of a chunk with all that was made for them."""

    def __cinit__(self):
        memset(&self.c, 0, sizeof(Columns))
        memset(&self.t, 0, sizeof(RunTable))
        memset(&self.lines, 0, sizeof(Lines))
        self.errors = {}

    def __dealloc__(self):
        runs_free(&self.t)
        lines_free(&self.lines)

    cdef int mark(self, int64_t i, object error) except -1:
        """Note that a row cannot be sent; if it was noted before, the earlier reason stays."""
        if self.marks is None:
            self.marks = bytearray(self.c.value.n)
            self.c.marked = <const uint8_t*>PyByteArray_AS_STRING(self.marks)
        self.marks[i] = 1
        self.errors.setdefault(i, error)
        return 0


cdef list checked_attrs(SendPolicy policy, list entries):
    """Return one row's attributes as they are sent.  Raises InvalidMessageError.  Locality: GIL."""
    if not entries:
        return entries
    text = policy.item_text(_as_texts(entries), None, ())[1]
    return [tuple(pair.split(b"=", 1)) for pair in text.split(b"&")]


cdef dict _as_texts(list entries):
    """Return one row's attributes.  Raises InvalidMessageError for a null, and for a name that comes twice."""
    cdef dict attrs = {}
    for key, value in entries:
        name = key.decode("utf-8", "surrogateescape")
        if value is None:
            raise InvalidMessageError(
                f"the attribute {key.decode('utf-8', 'replace')!r} is null", code="BAD_ATTRIBUTE",
                hint="leave it out, or give it a text")
        if name in attrs:
            raise InvalidMessageError(
                f"the attribute {key.decode('utf-8', 'replace')!r} comes twice", code="BAD_ATTRIBUTE",
                hint="keep one of them")
        attrs[name] = value.decode("utf-8", "surrogateescape")
    return attrs


cdef bytes attribute_text(SendPolicy policy, list entries, int64_t when_ms):
    """Return one row's attributes, and its data time, as the text that is sent.

    For a protocol whose messages are alone in their frames.  Raises InvalidMessageError.  Locality: GIL.
    """
    when = None if when_ms == NO_TIME else datetime.fromtimestamp(when_ms / 1000, UTC)
    return policy.item_text(_as_texts(entries), when, ())[1]


cdef int part_lines(
    Lines* lines, NodeTree* tree, const int* columns, int n_columns, const LineStyle* style, int64_t start, int64_t n,
    size_t usual,
) noexcept nogil:
    """Encode ``n`` rows from ``start`` on; ST_OK or ST_NO_MEMORY.  The caller calls `lines_free` in both cases.

    Locality: any thread.
    """
    cdef int status
    tree.root.offset += start
    status = lines_make(lines, tree, columns, n_columns, style, n, usual)
    tree.root.offset -= start
    return status


cdef int64_t next_in_seconds(const TimeColumn* column, int64_t i, int64_t n) noexcept nogil:
    """Return the first row from ``i`` on whose time seems to be in seconds, not milliseconds; -1 for none.

    Locality: any thread.
    """
    cdef int64_t at
    while i < n:
        at = column.offset + i
        if FIRST_SECOND <= column.values[at] < LAST_SECOND and (
                column.validity == NULL or (column.validity[at >> 3] >> (at & 7)) & 1):
            return i
        i += 1
    return -1


cdef int64_t messages_between(const Rows* rows, int64_t start, int64_t end) noexcept nogil:
    """Return how many rows from ``start`` to ``end`` are messages, not skipped.  Locality: any thread."""
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    cdef int64_t i, count = 0
    for i in range(start, end):
        if rows_get(rows, i, &p, &n) and n > 0:
            count += 1
    return count
