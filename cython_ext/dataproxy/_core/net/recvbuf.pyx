"""Receive buffer: grows by doubling up to its limit, compacts, gives memory back.

Locality: the loop that owns the buffer.  Locks: none.
"""

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK


cdef void recvbuf_init(RecvBuf* r, size_t limit) noexcept nogil:
    """Make ``r`` empty without memory."""
    r.p = NULL
    r.start = 0
    r.end = 0
    r.cap = 0
    r.limit = limit


cdef void recvbuf_free(RecvBuf* r) noexcept nogil:
    """Release the memory; ``r`` is empty again."""
    free(r.p)
    recvbuf_init(r, r.limit)


cdef int recvbuf_room(RecvBuf* r, size_t want, uint8_t** p, size_t* n) noexcept nogil:
    """Make room for ``want`` more bytes and return all the free space; ST_OK, ST_LIMIT or ST_NO_MEMORY."""
    cdef size_t used = r.end - r.start
    cdef size_t cap
    cdef uint8_t* grown
    if want > r.limit or used > r.limit - want:
        return ST_LIMIT
    if r.cap - r.end < want:
        if r.start > 0:
            memmove(r.p, r.p + r.start, used)
            r.start = 0
            r.end = used
        if r.cap - used < want:
            cap = r.cap if r.cap > 0 else 4096
            while cap < used + want:
                cap *= 2
            if cap > r.limit:
                cap = r.limit
            grown = <uint8_t*>realloc(r.p, cap)
            if grown == NULL:
                return ST_NO_MEMORY
            r.p = grown
            r.cap = cap
    p[0] = r.p + r.end
    n[0] = r.cap - r.end
    return ST_OK


cdef void recvbuf_filled(RecvBuf* r, size_t n) noexcept nogil:
    """Count ``n`` bytes that were written into the room."""
    r.end += n


cdef Slice recvbuf_data(const RecvBuf* r) noexcept nogil:
    """Return the unread bytes."""
    return slice_of(r.p + r.start, r.end - r.start)


cdef void recvbuf_consume(RecvBuf* r, size_t n) noexcept nogil:
    """Drop ``n`` bytes from the front."""
    r.start += n
    if r.start >= r.end:
        r.start = 0
        r.end = 0


cdef void recvbuf_rest(RecvBuf* r, size_t keep) noexcept nogil:
    """Give back memory that the data does not need."""
    cdef size_t used = r.end - r.start
    cdef uint8_t* exact
    if r.cap <= keep or r.cap <= 2 * used:
        return
    if used == 0:
        recvbuf_free(r)
        return
    exact = <uint8_t*>malloc(used)
    if exact == NULL:
        return  # the larger block can stay in use
    memcpy(exact, r.p + r.start, used)
    free(r.p)
    r.p = exact
    r.start = 0
    r.end = used
    r.cap = used
