"""Progress of a connection: bytes that the peer's host acknowledges, and answers that come."""

from libc.stdint cimport int64_t

from dataproxy._core.conn.connection cimport Link, LinkConfig, LinkPool


cdef int64_t look_every_us(const LinkConfig* config) noexcept nogil
cdef void progress_begin(LinkPool* pool, Link* link, int64_t now_us) noexcept nogil
cdef void progress_wrote(LinkPool* pool, Link* link, int64_t now_us) noexcept nogil
cdef void progress_look(LinkPool* pool, Link* link, int64_t held, int64_t now_us) noexcept nogil
cdef bint progress_stalled(const LinkPool* pool, const Link* link, int64_t now_us) noexcept nogil
