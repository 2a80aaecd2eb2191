"""A pool of links: the connections of one executor, their states and timers, without descriptors."""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.conn.connection cimport Endpoint, EventSink, Link, LinkConfig, LinkPool
from dataproxy._core.wire.api cimport WireOps


cdef int links_open(
    LinkPool* pool, const WireOps* wire, const LinkConfig* config, EventSink event, void* context,
) noexcept nogil
cdef void links_free(LinkPool* pool) noexcept nogil
cdef int links_endpoints(
    LinkPool* pool, const Endpoint* list, int n, int links, int offset, int64_t now_us
) noexcept nogil
cdef void links_submit(LinkPool* pool, Pack* p, int64_t now_us) noexcept nogil
cdef void links_connected(LinkPool* pool, Link* link, int64_t now_us) noexcept nogil
cdef void links_lost(LinkPool* pool, Link* link, int event, int detail, int64_t now_us) noexcept nogil
cdef void links_looked(LinkPool* pool, Link* link, int64_t held, int64_t now_us) noexcept nogil
cdef void links_expire(LinkPool* pool, int64_t now_us) noexcept nogil
cdef void links_abort(LinkPool* pool, int code) noexcept nogil
cdef Link* links_take_dirty(LinkPool* pool) noexcept nogil
