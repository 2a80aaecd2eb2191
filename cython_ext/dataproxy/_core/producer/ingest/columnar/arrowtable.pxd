"""A table with Arrow's C interface: the names of its columns, its chunks, and the columns that route its rows."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.producer.ingest.columnar.arrow cimport ArrowChunks
from dataproxy._core.producer.ingest.columnar.bodies cimport BodyEncoder
from dataproxy._core.producer.ingest.columnar.columns cimport Columns
from dataproxy._core.producer.ingest.rows cimport Rows
from dataproxy._core.encode.nodes cimport NodeTree
from dataproxy._core.plat.arrow cimport ArrowArray


cdef class ArrowTable:              # GIL
    cdef ArrowChunks chunks
    cdef readonly tuple names
    cdef readonly tuple formats     # of the values, also where a column is dictionary-encoded
    cdef readonly tuple encoded     # whether it is


cdef class RowPointers:             # texts of a dictionary-encoded column, row by row
    cdef const uint8_t** pointers
    cdef int64_t* lengths
    cdef uint8_t* validity

    cdef int fill(self, const Rows* indices_of, const Rows* values, int kind, const uint8_t* indices) except -1


cdef class TableChunk:              # owns one record batch while its rows are sent; GIL
    cdef ArrowChunks source
    cdef object own                 # keeps the memory of `array`
    cdef ArrowArray* array
    cdef Columns columns            # of all its rows, without bodies
    cdef NodeTree bodies
    cdef NodeTree shown             # opened when a row has to be shown
    cdef bint has_shown
    cdef NodeTree attrs             # of attributes in columns of their own
    cdef bint has_attrs
    cdef list kept

    cdef int read_text(self, int at, Rows* out) except -1
    cdef int open_shown(self, BodyEncoder encoder) except -1


cdef TableChunk next_table_chunk(ArrowTable table)
cdef void shift_rows(Rows* rows, int64_t start, int64_t n) noexcept nogil
