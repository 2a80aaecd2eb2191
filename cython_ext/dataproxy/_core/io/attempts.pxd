"""Attempts of a frame that have no answer yet."""

from dataproxy._core.base.pack cimport Pack
from dataproxy._core.io.link cimport Link, LinkPool


cdef void attempt_made(const LinkPool* pool, Pack* p, const Link* link) noexcept nogil
cdef bint attempt_open(const Pack* p, const Link* link) noexcept nogil
cdef bint attempt_refused(Pack* p, const Link* link) noexcept nogil
cdef void attempts_end(Pack* p) noexcept nogil
