"""Packs that are sent again in parts, since a proxy refused them for the fault of some message."""

from libc.stdint cimport int64_t

from dataproxy._core.base.pack cimport Pack
from dataproxy._core.io.link cimport LinkPool


cdef inline int split_attempts(const Pack* p) noexcept nogil:
    """Return how often what is on its way was written: ``p``, or a part of it.  Locality: executor.  Locks: none."""
    return p.attempts - p.parts.before if p.parts != NULL else p.attempts


cdef inline bint split_waits(const Pack* p) noexcept nogil:
    """Tell whether ``p`` waits for room to be split in.  Locality: executor.  Locks: none."""
    return p.parts != NULL and not p.parts.ready


cdef bint split_can(const LinkPool* pool, const Pack* p) noexcept nogil
cdef int split_begin(LinkPool* pool, Pack* p) noexcept nogil
cdef bint split_halve(LinkPool* pool, Pack* p) noexcept nogil
cdef bint split_next(LinkPool* pool, Pack* p, int outcome, int code) noexcept nogil
cdef void split_rest(LinkPool* pool, Pack* p, int outcome, int code) noexcept nogil
cdef void split_end(LinkPool* pool, Pack* p) noexcept nogil
