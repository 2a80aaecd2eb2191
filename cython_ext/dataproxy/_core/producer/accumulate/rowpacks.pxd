"""Rows in foreign memory -> open packs."""

from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.producer.accumulate.state cimport Batcher, Extras
from dataproxy._core.producer.ingest.columnar.columns cimport Run
from dataproxy._core.producer.ingest.columnar.rowids cimport RowIds
from dataproxy._core.producer.ingest.rows cimport Rows
from dataproxy._core.producer.results.segments cimport Segments
from dataproxy._core.producer.accumulate.streams cimport Stream


cdef int rowpacks_append(
    Batcher* b, Stream* s, const Rows* rows, int64_t* at, int64_t end, const Extras* extras, Segments* segments,
    bint may_pause,
) noexcept nogil
cdef int rowpacks_append_runs(
    Batcher* b, const Rows* rows, const Run* runs, int64_t n, const uint8_t* text, int64_t* run, int64_t* at,
    RowIds* made, int exempt, Segments* segments,
) noexcept nogil
