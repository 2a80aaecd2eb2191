"""Doubt about a proxy that was silent: every link to it is avoided until the proxy sends something.

A doubt belongs to the proxy (found by its label) and not to the link, because links move from one proxy to another.
A doubt that began over one connection holds for all connections to that proxy, later ones too, and for no other proxy.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy, strcmp

from dataproxy._core.io.link cimport Doubt, Endpoint, LinkPool


cdef void proxy_doubt(LinkPool* pool, const char* label, int64_t now_us) noexcept nogil:
    """Begin or renew the doubt about a proxy; does nothing if the proxy has left the list."""
    cdef int64_t until = now_us + pool.config.avoid_us
    cdef int i
    for i in range(pool.n_endpoints):
        if strcmp(pool.endpoints[i].label, label) == 0:
            pool.doubts[i].doubted = True
            if pool.doubts[i].until_us < until:
                pool.doubts[i].until_us = until


cdef void proxy_heard(LinkPool* pool, const char* label) noexcept nogil:
    """End the doubt about a proxy that has sent something."""
    cdef int i
    for i in range(pool.n_endpoints):
        if strcmp(pool.endpoints[i].label, label) == 0:
            pool.doubts[i].doubted = False
            pool.doubts[i].until_us = 0


cdef Doubt* doubts_of(const LinkPool* pool, const Endpoint* list, int n) noexcept nogil:
    """Return the doubts about the proxies of a new list, or NULL if there is no memory."""
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
