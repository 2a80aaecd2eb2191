"""Ids of the rows of a record batch: a prefix, the row's number, and the digest of the block that the row is in."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from dataproxy._core.producer.ingest.columnar.columns cimport Columns
from dataproxy._core.producer.ingest.ids cimport OWN_ID_KEY, OWN_ID_MAX
from dataproxy._core.producer.ingest.rows cimport Rows

cdef enum:
    ROW_NUMBER_TEXT = 6     # 36 bits in base64url
    ROW_HASH_TEXT = 11      # 64 bits in base64url
    ROW_BLOCK_BITS = 8      # a block has 256 rows, the last one of a partition may have fewer


ctypedef struct RowIds:     # one text buffer, into which the id of one row after the other is written
    const Columns* columns  # borrowed
    int64_t first_row       # number of the batch's first row
    uint64_t sixty_four     # the text has the number of one of these rows
    uint64_t block          # and the digest of this block
    size_t digit_at         # place of the number's last digit: only this changes within sixty-four rows
    size_t text_n
    uint8_t text[OWN_ID_KEY + OWN_ID_MAX + ROW_NUMBER_TEXT + ROW_HASH_TEXT]     # msgid=PREFIX, number, digest
    Rows rows               # all of the same width, and each at the same place


cdef void row_ids_begin(
    RowIds* ids, const Columns* columns, const uint8_t* prefix, size_t prefix_n, int64_t first_row,
) noexcept nogil
cdef void row_ids_make(RowIds* ids, int64_t i) noexcept nogil
cdef void row_ids_put(RowIds* ids, int64_t i, uint8_t* to) noexcept nogil
