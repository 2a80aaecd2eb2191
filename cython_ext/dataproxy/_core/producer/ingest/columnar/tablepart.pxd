"""Some rows of a table: their bodies, where they go, and which of them cannot be sent."""

from libc.stdint cimport int64_t

from dataproxy._core.producer.ingest.columnar.arrowtable cimport TableChunk
from dataproxy._core.producer.ingest.columnar.columns cimport Columns, RunTable, TimeColumn
from dataproxy._core.producer.ingest.rows cimport Rows
from dataproxy._core.producer.ingest.stream cimport SendPolicy
from dataproxy._core.producer.ingest.columnar.tableattrs cimport AttrTexts
from dataproxy._core.encode.lines cimport Lines, LineStyle
from dataproxy._core.encode.nodes cimport NodeTree


cdef class TablePart:           # GIL, one thread
    cdef TableChunk chunk
    cdef int64_t first          # number of its first row in the table
    cdef int64_t start          # in the chunk
    cdef Columns c
    cdef RunTable t
    cdef Lines lines
    cdef AttrTexts attrs
    cdef dict errors            # row of the part -> why it cannot be sent
    cdef bytearray marks

    cdef int mark(self, int64_t i, object error) except -1


cdef list checked_attrs(SendPolicy policy, list entries)
cdef bytes attribute_text(SendPolicy policy, list entries, int64_t when_ms)
cdef int part_lines(
    Lines* lines, NodeTree* tree, const int* columns, int n_columns, const LineStyle* style, int64_t start, int64_t n,
    size_t usual,
) noexcept nogil
cdef int64_t next_in_seconds(const TimeColumn* column, int64_t i, int64_t n) noexcept nogil
cdef int64_t messages_between(const Rows* rows, int64_t start, int64_t end) noexcept nogil
