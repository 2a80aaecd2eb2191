"""Frames are found by their length, and taken apart where they lie.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport uint8_t, uint32_t

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_LIMIT, ST_NEED_DATA, ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport load_be32
from dataproxy._core.wire.rocketmq.const cimport AT_LENGTH, AT_MARK, FORM_BINARY, FRAME_HEAD, LENGTH_MOST


cdef int delimit_frame(const uint8_t* p, size_t n, size_t most, size_t* size) noexcept nogil:
    """Find the end of the frame at ``p``, of which ``n`` bytes are there.

    ST_OK: it has ``size`` bytes.  ST_NEED_DATA: it is not whole; ``size`` is 0 as long as it is unknown.  ST_PROTOCOL:
    these bytes are no frame.  ST_LIMIT: its length says more than ``most`` (0: LENGTH_MOST).  A wrong length is refused
    before what it speaks of has come: the first byte of TLS, 0x16, is one.
    """
    cdef uint32_t length
    cdef size_t limit = most if 0 < most < LENGTH_MOST else LENGTH_MOST
    size[0] = 0
    if n == 0:
        return ST_NEED_DATA
    if p[0] >= 0x80 or p[0] > LENGTH_MOST >> 24:
        return ST_PROTOCOL
    if n < AT_MARK:
        return ST_NEED_DATA
    length = load_be32(p + AT_LENGTH)
    if length < FRAME_HEAD - AT_MARK:
        return ST_PROTOCOL
    if length > limit:
        return ST_LIMIT
    if n > AT_MARK and p[AT_MARK] > FORM_BINARY:
        return ST_PROTOCOL
    size[0] = AT_MARK + <size_t>length
    if n < FRAME_HEAD:
        return ST_NEED_DATA
    if load_be32(p + AT_MARK) & 0xFFFFFF > length - (FRAME_HEAD - AT_MARK):
        return ST_PROTOCOL
    return ST_OK if n >= size[0] else ST_NEED_DATA


cdef Frame split_frame(const uint8_t* p, size_t n) noexcept nogil:
    """Take a frame apart that `delimit_frame` found whole."""
    cdef Frame frame
    cdef size_t header = load_be32(p + AT_MARK) & 0xFFFFFF
    frame.form = p[AT_MARK]
    frame.header = slice_of(p + FRAME_HEAD, header)
    frame.body = slice_of(p + FRAME_HEAD + header, n - FRAME_HEAD - header)
    return frame
