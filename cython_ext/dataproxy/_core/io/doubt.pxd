"""Proxies that were silent, and until when a link is avoided.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t

from dataproxy._core.io.link cimport Doubt, Endpoint, Link, LinkPool


cdef inline int64_t avoided_until(const LinkPool* pool, const Link* link) noexcept nogil:
    """Return until when (microseconds) a link is avoided: its server asked for that, or its proxy was silent."""
    cdef int64_t silent = pool.doubts[link.endpoint].until_us if link.endpoint >= 0 else 0
    return silent if silent > link.avoid_until_us else link.avoid_until_us


cdef inline bint proxy_doubted(const LinkPool* pool, const Link* link) noexcept nogil:
    """Tell whether a link's proxy was silent and has sent nothing since then."""
    return link.endpoint >= 0 and pool.doubts[link.endpoint].doubted


cdef void proxy_doubt(LinkPool* pool, const char* label, int64_t now_us) noexcept nogil
cdef void proxy_heard(LinkPool* pool, const char* label) noexcept nogil
cdef Doubt* doubts_of(const LinkPool* pool, const Endpoint* list, int n) noexcept nogil
