"""Packs that are sent again in parts because a proxy refused them for a fault of one message.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.conn.connection cimport ConnectionPool


cdef inline int split_attempts(const Pack* p) noexcept nogil:
    """Return how often the frame on its way was written: that of ``p``, or of a part of it."""
    return p.attempts - p.parts.before if p.parts != NULL else p.attempts


cdef inline int split_tries(const Pack* p) noexcept nogil:
    """Return the attempts without those that were refused because the stream was unknown."""
    return split_attempts(p) - p.unknown_n


cdef inline bint split_waits(const Pack* p) noexcept nogil:
    """Tell whether ``p`` waits for memory to be split."""
    return p.parts != NULL and not p.parts.ready


cdef bint split_can(const ConnectionPool* pool, const Pack* p) noexcept nogil
cdef int split_begin(ConnectionPool* pool, Pack* p) noexcept nogil
cdef bint split_halve(ConnectionPool* pool, Pack* p) noexcept nogil
cdef bint split_next(ConnectionPool* pool, Pack* p, int outcome, int code) noexcept nogil
cdef void split_rest(ConnectionPool* pool, Pack* p, int outcome, int code) noexcept nogil
cdef void split_end(ConnectionPool* pool, Pack* p) noexcept nogil
