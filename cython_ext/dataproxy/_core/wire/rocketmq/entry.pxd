"""Messages as the hub stores them: InLongMsg containers with one message each, and back."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.rocketmq.stored cimport StoredMessage


# Append the container of a message without its body, which belongs at `body_at` of what was appended.  Topic, flags,
# times, retries and the host it was born at count, and the properties, of which WAIT is left out.
cdef int put_entry(Buf* out, const StoredMessage* m, Slice stream, int64_t now_ms, size_t* body_at) noexcept nogil
cdef int read_entry(Slice container, Buf* scratch, StoredMessage* out) noexcept nogil
cdef Slice stream_of(Slice properties) noexcept nogil
cdef bint is_stream(Slice tag) noexcept nogil
