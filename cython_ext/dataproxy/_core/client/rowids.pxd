"""Ids of the rows of a record batch: a prefix, the row's number, and a hash of what the row says."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from dataproxy._core.client.columns cimport Columns
from dataproxy._core.client.ids cimport OWN_ID_KEY, OWN_ID_MAX
from dataproxy._core.client.rows cimport Rows

cdef enum:
    ROW_NUMBER_TEXT = 6     # 36 bits in base64url
    ROW_HASH_TEXT = 11      # 64 bits in base64url


ctypedef struct RowIds:     # one place of text, in which the id of one row after the other is written
    const Columns* columns  # borrowed
    int64_t first_row       # number of the batch's first row
    uint64_t sixty_four     # the text has the number of one of these rows
    size_t steady_n         # bytes of text that stay as they are for sixty-four rows
    uint8_t text[OWN_ID_KEY + OWN_ID_MAX + ROW_NUMBER_TEXT + ROW_HASH_TEXT]     # msgid=PREFIX, number, hash
    Rows rows               # all of the same width, and each at the same place


cdef void row_ids_begin(
    RowIds* ids, const Columns* columns, const uint8_t* prefix, size_t prefix_n, int64_t first_row,
) noexcept nogil
cdef void row_ids_make(RowIds* ids, int64_t i) noexcept nogil
cdef void row_ids_put(RowIds* ids, int64_t i, uint8_t* to) noexcept nogil
