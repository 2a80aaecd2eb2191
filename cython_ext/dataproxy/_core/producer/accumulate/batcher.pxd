"""Batcher: bodies -> open packs -> sealed packs in the executors' inboxes."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.pack.pack cimport PackList, PackResult
from dataproxy._core.plat.atomic cimport relaxed_load
from dataproxy._core.producer.accumulate.state cimport Batcher, BatcherCounts, Extras
from dataproxy._core.producer.accumulate.streams cimport Stream
from dataproxy._core.producer.results.accounting cimport Accounting, AccountingCounts


cdef Stream* batcher_stream(Batcher* b, Slice group, Slice stream, Slice attrs) noexcept nogil
cdef int batcher_group(Batcher* b, Slice group, int number) noexcept nogil
cdef size_t batcher_room(Batcher* b, size_t text_n, size_t pairs) noexcept nogil
cdef void batcher_limit_frames(Batcher* b, size_t max_frame) noexcept nogil
cdef int batcher_append(
    Batcher* b, Stream* s, const uint8_t* body, size_t n, const Extras* extras, PackResult** pack_result,
    uint32_t* index,
) noexcept nogil
cdef int batcher_append_plain(Batcher* b, Stream* s, const uint8_t* body, size_t n) noexcept nogil
cdef bint batcher_fits(Batcher* b, int64_t charge, int64_t messages) noexcept nogil
cdef int64_t batcher_seal_all(Batcher* b) noexcept nogil
cdef void batcher_seal_of(Batcher* b, PackResult* v) noexcept nogil
cdef int64_t batcher_tick(Batcher* b, int64_t now_us) noexcept nogil
cdef void batcher_close(Batcher* b) noexcept nogil
cdef void batcher_abandon(Batcher* b, PackList* out) noexcept nogil
cdef void batcher_counts(Batcher* b, Accounting* k, BatcherCounts* out, AccountingCounts* sealed) noexcept nogil
cdef void batcher_left(Batcher* b, int64_t* bytes, int64_t* messages) noexcept nogil


cdef inline size_t batcher_max_frame(const Batcher* b) noexcept nogil:
    """Return the largest frame in bytes that a message may be in now.  Locality: any thread.  Locks: none."""
    return <size_t>relaxed_load(<const int64_t*>&b.max_frame)


cdef inline int64_t batcher_span_ms(const Batcher* b) noexcept nogil:
    """Return the span of time in ms that messages with a time share a pack in.  Locality: any thread.  Locks: none."""
    return b.span_ms


cdef inline const char* batcher_mark(const Batcher* b) noexcept nogil:
    """Return what stands between two attributes of a message.  Locality: any thread.  Locks: none."""
    return b"," if b.by_stream else b"&"


cdef inline Slice batcher_least(const Batcher* b) noexcept nogil:
    """Return the attribute text of messages that have none of their own.  Locality: any thread.  Locks: none."""
    return b.least
