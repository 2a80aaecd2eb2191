"""Sealed pack -> frame: the body is compressed if that makes it smaller, then gets a header and a trailer."""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport Pack, PackPool
from dataproxy._core.wire.api cimport WireOps


ctypedef struct FrameRules:
    int family              # FrameSpec.family
    int ack                 # AckLevel
    bint compress
    size_t compress_min     # smaller bodies stay plain
    size_t max_frame
    char origin[48]         # FrameSpec.origin
    size_t origin_n
    char sender[160]        # FrameSpec.sender
    size_t sender_n
    size_t proof_n          # FrameSpec.proof_n
    int64_t answer_ms       # FrameSpec.answer_ms
    int64_t wall_offset_ms  # wall clock minus the clock of Pack.opened_us


cdef int frame_pack(const WireOps* wire, const FrameRules* rules, PackPool* spares, Pack* p) noexcept nogil
