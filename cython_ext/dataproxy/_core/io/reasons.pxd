"""Reasons of refusals, kept for the results of the frames that they may concern."""

from dataproxy._core.base.pack cimport Pack
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.io.link cimport Link, LinkPool


cdef void reason_note(Pack* p, int code, Slice text) noexcept nogil
cdef void reason_note_link(Link* link, int code, Slice text) noexcept nogil
cdef void reason_inherit(LinkPool* pool, Pack* p) noexcept nogil
