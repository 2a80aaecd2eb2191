"""Choice of a link for a frame: round-robin against random, by what waits and by load."""

from libc.stdint cimport int64_t

from dataproxy._core.io.link cimport Link, LinkPool


cdef Link* choose_link(LinkPool* pool, int64_t now_us) noexcept nogil
cdef int64_t link_cost(const Link* link, bint with_load) noexcept nogil
