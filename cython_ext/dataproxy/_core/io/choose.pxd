"""Choice of a link for a frame: the next in turn or a random one, by waiting bytes and by the proxy's load."""

from libc.stdint cimport int64_t

from dataproxy._core.io.link cimport Link, LinkPool


cdef Link* choose_link(LinkPool* pool, int64_t now_us) noexcept nogil
cdef int64_t link_cost(const Link* link, bint with_load) noexcept nogil
