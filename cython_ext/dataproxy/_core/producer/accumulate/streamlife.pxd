"""The end of streams that nothing refers to."""

from dataproxy._core.producer.accumulate.batcher cimport Batcher


cdef void streams_reap(Batcher* b) noexcept nogil
cdef void streams_tidy(Batcher* b) noexcept nogil
cdef void streams_walk(Batcher* b) noexcept nogil
cdef void streams_walked(Batcher* b) noexcept nogil
