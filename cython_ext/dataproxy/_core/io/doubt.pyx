"""Doubt about a proxy that was silent: whatever link has to do with it is avoided until it says something.

It belongs to the proxy, by its label, since links move from one proxy to another: what was learned over one connection
holds for all others to that proxy, for those that connect to it later too, and for no other proxy.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy, strcmp

from dataproxy._core.io.link cimport Doubt, Endpoint, LinkPool


cdef void proxy_doubt(LinkPool* pool, const char* label, int64_t now_us) noexcept nogil:
    """Begin or renew the doubt about a proxy; one that left the list has none.  Locality: executor.  Locks: none."""
    cdef int64_t until = now_us + pool.config.avoid_us
    cdef int i
    for i in range(pool.n_endpoints):
        if strcmp(pool.endpoints[i].label, label) == 0:
            pool.doubts[i].doubted = True
            if pool.doubts[i].until_us < until:
                pool.doubts[i].until_us = until


cdef void proxy_heard(LinkPool* pool, const char* label) noexcept nogil:
    """End the doubt about a proxy that said something.  Locality: executor.  Locks: none."""
    cdef int i
    for i in range(pool.n_endpoints):
        if strcmp(pool.endpoints[i].label, label) == 0:
            pool.doubts[i].doubted = False
            pool.doubts[i].until_us = 0


cdef Doubt* doubts_of(const LinkPool* pool, const Endpoint* list, int n) noexcept nogil:
    """Return the doubts about the proxies of a new list, NULL without memory.  Locality: executor.  Locks: none."""
    cdef Doubt* out = <Doubt*>calloc(<size_t>n, sizeof(Doubt))
    cdef int i, k
    if out == NULL:
        return NULL
    for i in range(n):
        for k in range(pool.n_endpoints):
            if strcmp(list[i].label, pool.endpoints[k].label) == 0:
                memcpy(&out[i], &pool.doubts[k], sizeof(Doubt))
                break
    return out
