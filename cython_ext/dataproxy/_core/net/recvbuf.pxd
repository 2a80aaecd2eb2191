"""Receive buffer of one connection: without memory before the first byte, and while it is empty between rounds."""

from libc.stdint cimport uint8_t

from dataproxy._core.base.slice cimport Slice


ctypedef struct RecvBuf:    # owned by one loop; may be moved (struct assignment) while nobody holds slices
    uint8_t* p              # NULL while nothing is allocated
    size_t start            # first unread byte
    size_t end              # behind the last byte
    size_t cap
    size_t limit            # most bytes it ever holds


cdef void recvbuf_init(RecvBuf* r, size_t limit) noexcept nogil
cdef void recvbuf_free(RecvBuf* r) noexcept nogil
# Make room for at least `want` bytes behind the data (compacts first, then grows by doubling).
# ST_OK with the free space; ST_LIMIT if data + want passes the limit; ST_NO_MEMORY.
cdef int recvbuf_room(RecvBuf* r, size_t want, uint8_t** p, size_t* n) noexcept nogil
cdef void recvbuf_filled(RecvBuf* r, size_t n) noexcept nogil
cdef Slice recvbuf_data(const RecvBuf* r) noexcept nogil        # valid until the next room, rest or free
cdef void recvbuf_consume(RecvBuf* r, size_t n) noexcept nogil
# End of a round: an allocation over `keep` bytes is freed if it is empty, else cut to the size of the data.
cdef void recvbuf_rest(RecvBuf* r, size_t keep) noexcept nogil
