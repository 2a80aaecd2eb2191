"""Frames: a payload in slices, each behind its length."""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport Slice


ctypedef struct FrameScan:      # of the first frame of a stream; all zero before its first byte
    size_t at                   # bytes that were looked at; the frame's size once it is whole
    size_t payload              # bytes of slices that were found
    uint32_t serial
    uint32_t slices             # all
    uint32_t found              # of them


ctypedef struct SliceWriter:    # a frame whose payload is written from its first byte to its last
    uint8_t* to                 # the next byte
    size_t left                 # bytes that the open slice has room for
    size_t rest                 # bytes of the payload behind the open slice


cdef int scan_frame(FrameScan* s, const uint8_t* p, size_t n, size_t most) noexcept nogil
cdef Slice join_frame(uint8_t* p, const FrameScan* s) noexcept nogil
cdef Slice gather_frame(const uint8_t* p, const FrameScan* s, uint8_t* to) noexcept nogil
cdef size_t frame_heads(size_t payload) noexcept nogil
cdef void cut_frame(uint8_t* p, uint32_t serial, size_t payload) noexcept nogil
cdef void slices_begin(SliceWriter* w, uint8_t* frame, uint32_t serial, size_t payload) noexcept nogil
cdef void slices_cross(SliceWriter* w, const uint8_t* p, size_t n) noexcept nogil


cdef inline void slices_put(SliceWriter* w, const void* p, size_t n) noexcept nogil:
    """Write the next ``n`` bytes of the payload.  Locality: owner of the frame.  Locks: none."""
    if n < w.left:
        if n > 0:
            memcpy(w.to, p, n)
            w.to += n
            w.left -= n
        return
    slices_cross(w, <const uint8_t*>p, n)
