"""When an idle link sends a heartbeat, and when silence closes it."""

from libc.stdint cimport int64_t

from dataproxy._core.conn.connection cimport Link, LinkPool


cdef void heartbeat_due(LinkPool* pool, Link* link, int64_t now_us) noexcept nogil
cdef void link_silent(LinkPool* pool, Link* link, int event) noexcept nogil
