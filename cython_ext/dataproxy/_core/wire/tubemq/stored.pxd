"""Messages of TubeMQ's producers as a hub stores them, and how consumers get them back."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.wire.tubemq.send cimport SendRequest


ctypedef struct StoredMessage:
    int32_t flag
    Slice head              # what the payload begins with: length and text of the attribute; may be empty
    Slice body              # the rest of the payload
    int32_t checksum        # of the payload, by its producer; CHECKSUM_NONE: none is kept


cdef int put_stored(Buf* out, const SendRequest* send, int64_t now_ms, Slice* body, size_t* body_at) noexcept nogil
cdef int read_stored(Slice value, Buf* scratch, StoredMessage* out) noexcept nogil
cdef int put_attribute_head(Buf* out, Slice stream, Slice time) noexcept nogil


cdef inline int64_t stored_id(uint32_t partition, uint64_t offset) noexcept nogil:
    """Return the id of a message: its place in its topic, so that it is the same whenever it is read."""
    return <int64_t>((<uint64_t>(partition & 0x7FFF) << 48) | (offset & ((<uint64_t>1 << 48) - 1)))
