"""The end of streams that nothing refers to."""

from dataproxy._core.producer.accumulate.state cimport Batcher
from dataproxy._core.producer.accumulate.streams cimport Stream, stream_release


cdef void streams_reap(Batcher* b) noexcept nogil
cdef void streams_tidy(Batcher* b) noexcept nogil
cdef void streams_walk(Batcher* b) noexcept nogil
cdef void streams_walked(Batcher* b) noexcept nogil


cdef inline void streams_leave(Batcher* b, Stream* s) noexcept nogil:
    """Give back a reference to a stream; call ``streams_tidy`` afterwards.  Locality: any thread.  Locks: none."""
    stream_release(&b.streams, s)
