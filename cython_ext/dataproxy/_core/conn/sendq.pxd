"""Send queue of a link: frames in order, partial writes, heartbeats at frame boundaries."""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.conn.connection cimport Link, LinkPool
from dataproxy._core.plat.socket cimport iovec


cdef void mark_dirty(LinkPool* pool, Link* link, int flag) noexcept nogil
cdef void sendq_put(LinkPool* pool, Link* link, Pack* p) noexcept nogil
cdef bint sendq_empty(const Link* link) noexcept nogil
cdef int sendq_gather(LinkPool* pool, Link* link, iovec* out, int most, size_t most_bytes) noexcept nogil
cdef void sendq_wrote(LinkPool* pool, Link* link, size_t n, int64_t now_us) noexcept nogil
