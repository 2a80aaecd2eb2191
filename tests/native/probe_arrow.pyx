"""Test access to one column of Arrow data as rows of bodies."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.producer.ingest.columnar.arrow cimport ArrowChunks, column_index, column_rows, open_arrow
from dataproxy._core.producer.ingest.rows cimport Rows, rows_get
from dataproxy._core.plat.arrow cimport ArrowArray

__all__ = ["bodies"]


def bodies(data, limit: int, column=None) -> list:
    """Return the bodies of a column, None for nulls and for those of more than ``limit`` bytes."""
    cdef ArrowChunks chunks = open_arrow(data)
    cdef ArrowArray* chunk = chunks.next_chunk()
    cdef Rows rows
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    cdef int64_t i
    found = []
    while chunk != NULL:
        column_rows(chunks.schema, chunk, column_index(chunks.schema, column, None), &rows)
        for i in range(rows.n):
            if not rows_get(&rows, i, &p, &n) or n > <size_t>limit:
                found.append(None)
            else:
                found.append((<const char*>p)[:n] if n else b"")
        chunk = chunks.next_chunk()
    return found
