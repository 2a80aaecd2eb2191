"""Decisions on a frame after an attempt without success, and the reasons that its result will tell."""

from libc.stdint cimport int64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.conn.connection cimport Link, LinkConfig, LinkPool
from dataproxy._core.pack.pack cimport Pack


cdef int retry_class(const LinkConfig* config, int code) noexcept nogil
cdef void route(LinkPool* pool, Pack* p, int64_t now_us) noexcept nogil
cdef void route_waiting(LinkPool* pool, int64_t now_us) noexcept nogil
cdef void retry_refused(LinkPool* pool, Link* link, Pack* p, int code, Slice text, int64_t now_us) noexcept nogil
cdef void retry_unanswered(LinkPool* pool, Pack* p, int code, int64_t now_us) noexcept nogil
cdef void retry_expired(LinkPool* pool, Pack* p) noexcept nogil
cdef void retry_due(LinkPool* pool, Pack* p, int64_t now_us) noexcept nogil
cdef void reason_note(Pack* p, int code, Slice text) noexcept nogil
cdef void reason_note_link(Link* link, int code, Slice text) noexcept nogil
cdef void reason_inherit(LinkPool* pool, Pack* p) noexcept nogil
