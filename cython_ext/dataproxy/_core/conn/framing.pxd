"""Sealed pack -> frame: the body is compressed if that makes it smaller, then gets a header and a trailer."""

from dataproxy._core.pack.pack cimport Pack, PackPool
from dataproxy._core.wire.api cimport WireOps


ctypedef struct FrameRules:
    int family              # FrameSpec.family
    bint compress
    size_t compress_min     # smaller bodies stay plain
    size_t max_frame


cdef int frame_pack(const WireOps* wire, const FrameRules* rules, PackPool* spares, Pack* p) noexcept nogil
