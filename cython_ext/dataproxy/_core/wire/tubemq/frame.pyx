"""Frames are found step by step, joined to a whole payload where they lie, and cut into slices where they lie
or while they are written.

Locality: owner of the bytes.  Locks: none.
"""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy, memmove

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_LIMIT, ST_NEED_DATA, ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.wire.tubemq.const cimport (
    AT_SERIAL, AT_SLICES, AT_TOKEN, FRAME_HEAD, SLICE_HEAD, SLICE_READ, SLICE_WRITTEN, SLICES_READ, TOKEN,
)


cdef bint _begins_wrong(const uint8_t* p, size_t n) noexcept nogil:
    """Tell whether the first bytes, not all of which may be there, are no token."""
    cdef uint8_t token[4]
    cdef size_t i
    store_be32(token, TOKEN)
    for i in range(min(n, <size_t>4)):
        if p[i] != token[i]:
            return True
    return False


cdef int scan_frame(FrameScan* s, const uint8_t* p, size_t n, size_t most) noexcept nogil:
    """Go on looking for the end of the frame at ``p``, of which ``n`` bytes are there.

    ST_OK: the frame has ``s.at`` bytes.  ST_NEED_DATA: it is not whole; with more bytes at the same place, or moved,
    call again with the same ``s``.  ST_PROTOCOL: these bytes are no frame.  ST_LIMIT: it has more slices than any
    reader takes, or more than ``most`` bytes of payload.  Nothing beyond the first wrong length is looked at.
    """
    cdef uint32_t size
    if s.at == 0:
        if _begins_wrong(p, n):
            return ST_PROTOCOL
        if n < FRAME_HEAD:
            return ST_NEED_DATA
        s.serial = load_be32(p + AT_SERIAL)
        s.slices = load_be32(p + AT_SLICES)
        if s.slices == 0 or s.slices > 0x7FFFFFFF:
            return ST_PROTOCOL
        if s.slices > SLICES_READ:
            return ST_LIMIT
        s.at = FRAME_HEAD
    while s.found < s.slices:
        if n < s.at + SLICE_HEAD:
            return ST_NEED_DATA
        size = load_be32(p + s.at)
        if size == 0 or size > SLICE_READ:
            return ST_PROTOCOL
        if s.payload + size > most:
            return ST_LIMIT
        if n < s.at + SLICE_HEAD + size:
            return ST_NEED_DATA
        s.at += SLICE_HEAD + size
        s.payload += size
        s.found += 1
    return ST_OK


cdef Slice join_frame(uint8_t* p, const FrameScan* s) noexcept nogil:
    """Return the payload of the whole frame at ``p``; its slices are moved together, over their lengths."""
    cdef uint8_t* start = p + FRAME_HEAD + SLICE_HEAD
    cdef uint8_t* to = start
    cdef const uint8_t* at = p + FRAME_HEAD
    cdef uint32_t size
    while to < start + s.payload:
        size = load_be32(at)
        at += SLICE_HEAD
        if to != at:
            memmove(to, at, size)
        to += size
        at += size
    return slice_of(start, s.payload)


cdef Slice gather_frame(const uint8_t* p, const FrameScan* s, uint8_t* to) noexcept nogil:
    """Copy the payload of the whole frame at ``p`` to where there is room for ``s.payload`` bytes."""
    cdef const uint8_t* at = p + FRAME_HEAD
    cdef size_t done = 0, size
    while done < s.payload:
        size = load_be32(at)
        memcpy(to + done, at + SLICE_HEAD, size)
        at += SLICE_HEAD + size
        done += size
    return slice_of(to, s.payload)


cdef size_t frame_heads(size_t payload) noexcept nogil:
    """Return the bytes of a frame that are not its payload."""
    return FRAME_HEAD + SLICE_HEAD * ((payload + SLICE_WRITTEN - 1) // SLICE_WRITTEN)


cdef void cut_frame(uint8_t* p, uint32_t serial, size_t payload) noexcept nogil:
    """Make a frame at ``p`` of the ``payload`` bytes that lie at ``p + frame_heads(payload)``.

    ``payload`` is 1 to PAYLOAD_MOST; a client of C++ reads 8 MiB.
    """
    cdef const uint8_t* at = p + frame_heads(payload)
    cdef uint8_t* to = p + FRAME_HEAD
    cdef size_t size
    store_be32(p + AT_TOKEN, TOKEN)
    store_be32(p + AT_SERIAL, serial)
    store_be32(p + AT_SLICES, <uint32_t>((payload + SLICE_WRITTEN - 1) // SLICE_WRITTEN))
    while payload > 0:
        size = min(payload, <size_t>SLICE_WRITTEN)
        store_be32(to, <uint32_t>size)
        if to + SLICE_HEAD != at:
            memmove(to + SLICE_HEAD, at, size)
        to += SLICE_HEAD + size
        at += size
        payload -= size


cdef void _open_slice(SliceWriter* w) noexcept nogil:
    cdef size_t size = min(w.rest, <size_t>SLICE_WRITTEN)
    store_be32(w.to, <uint32_t>size)
    w.to += SLICE_HEAD
    w.left = size
    w.rest -= size


cdef void slices_begin(SliceWriter* w, uint8_t* frame, uint32_t serial, size_t payload) noexcept nogil:
    """Begin a frame with ``payload`` bytes, 1 to PAYLOAD_MOST; there is room for them and ``frame_heads`` of them."""
    store_be32(frame + AT_TOKEN, TOKEN)
    store_be32(frame + AT_SERIAL, serial)
    store_be32(frame + AT_SLICES, <uint32_t>((payload + SLICE_WRITTEN - 1) // SLICE_WRITTEN))
    w.to = frame + FRAME_HEAD
    w.rest = payload
    _open_slice(w)


cdef void slices_cross(SliceWriter* w, const uint8_t* p, size_t n) noexcept nogil:
    """Write bytes that fill the open slice; the next one begins with the byte behind them, or as soon as it is full."""
    cdef size_t size
    while n > 0:
        size = min(n, w.left)
        memcpy(w.to, p, size)
        w.to += size
        w.left -= size
        p += size
        n -= size
        if w.left == 0 and w.rest > 0:
            _open_slice(w)
