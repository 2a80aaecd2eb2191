"""Rows of a batch as messages: JSON objects, delimited text, key-value text."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.encode.nodes cimport NodeTree
from dataproxy._core.encode.texts cimport Marks
from dataproxy._core.encode.values cimport ValueStyle


cdef enum LineForm:
    LINE_JSON = 0
    LINE_CSV = 1
    LINE_KV = 2


ctypedef struct LineStyle:
    int form                # LineForm
    ValueStyle values
    Marks marks
    uint8_t separator       # between values, or between entries
    uint8_t joint           # between key and value
    Slice null_text
    bint tells_nulls        # refuse a value that reads like `null_text`, in a column with nulls


cdef enum LineRefusal:
    REFUSED_MARK = 1        # a character that the format cannot represent
    REFUSED_LIKE_NULL = 2   # a value that reads like a null


ctypedef struct Lines:      # one text for each row, all in one buffer
    Buf text
    int64_t* offsets        # n + 1 of them
    uint8_t* refused        # LineRefusal: the row cannot be written, its text is empty
    uint8_t* validity       # bitmap: 0 for rows whose values are all null; NULL: there are none
    int64_t n
    int64_t n_refused


cdef int lines_make(
    Lines* lines, const NodeTree* tree, const int* columns, int n_columns, const LineStyle* style, int64_t n,
    size_t usual,
) noexcept nogil
cdef void lines_free(Lines* lines) noexcept nogil
