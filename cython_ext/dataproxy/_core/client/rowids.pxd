"""Ids of the rows of a record batch: a prefix, the row's number, and a hash of what the row says."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.client.columns cimport Columns
from dataproxy._core.client.rows cimport Rows

cdef enum:
    ROW_NUMBER_TEXT = 6     # 36 bits in base64url
    ROW_HASH_TEXT = 11      # 64 bits in base64url


ctypedef struct RowIds:
    uint8_t* text           # n ids of the same width, one after the other
    Rows rows


cdef int row_ids_make(
    RowIds* ids, const Columns* columns, const uint8_t* prefix, size_t prefix_n, int64_t first_row,
) noexcept nogil
cdef void row_ids_free(RowIds* ids) noexcept nogil
