"""Decisions on a frame after an attempt without success."""

from libc.stdint cimport int64_t

from dataproxy._core.base.pack cimport Pack
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.io.link cimport Link, LinkConfig, LinkPool


cdef int retry_class(const LinkConfig* config, int code) noexcept nogil
cdef void route(LinkPool* pool, Pack* p, int64_t now_us) noexcept nogil
cdef void route_waiting(LinkPool* pool, int64_t now_us) noexcept nogil
cdef void retry_refused(LinkPool* pool, Link* link, Pack* p, int code, Slice text, int64_t now_us) noexcept nogil
cdef void retry_unanswered(LinkPool* pool, Pack* p, int code, int64_t now_us) noexcept nogil
cdef void retry_expired(LinkPool* pool, Pack* p) noexcept nogil
cdef void retry_due(LinkPool* pool, Pack* p, int64_t now_us) noexcept nogil
