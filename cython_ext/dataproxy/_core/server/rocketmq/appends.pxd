"""Messages that the hub's own thread stores: half and delayed ones, copies for another try."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.server.calls cimport Call, CallQueue
from dataproxy._core.server.committer cimport Committer
from dataproxy._core.server.entries cimport Entry
from dataproxy._core.wire.rocketmq.stored cimport StoredMessage


ctypedef struct Appended:       # what came of one message
    int status                  # Status of the store
    uint64_t offset
    uint32_t log


ctypedef struct Appending:      # one block; its Appendeds are in `news.answer`
    Call news                   # first: the block itself becomes the news that all are stored
    CallQueue* queue            # outlives the committer
    uint32_t left
    Entry* first
    Entry* last


cdef Appending* appending_new(CallQueue* queue, uint64_t token) noexcept nogil      # NULL: no memory
cdef void appending_free(Appending* a) noexcept nogil           # one that was not submitted
# Add a message for a queue; ST_OK, ST_LIMIT (its properties are too long) or ST_NO_MEMORY.
cdef int appending_add(
    Appending* a, const Committer* c, const StoredMessage* m, int64_t now_ms, Buf* scratch
) noexcept nogil
cdef void appending_submit(Appending* a, Committer* c) noexcept nogil
