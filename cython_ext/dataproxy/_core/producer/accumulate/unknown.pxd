"""Streams that servers do not know: marked, unmarked, and made to give way."""

from dataproxy._core.producer.accumulate.state cimport Batcher
from dataproxy._core.producer.accumulate.streams cimport Stream


cdef void unknown_yield(Batcher* b, const Stream* s) noexcept nogil
cdef void unknown_look(Batcher* b, Stream* s) noexcept nogil
cdef bint unknown_full(Batcher* b) noexcept nogil
