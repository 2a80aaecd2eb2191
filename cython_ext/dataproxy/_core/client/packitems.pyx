"""What a pack's own bytes say of its messages, read back after its result is final."""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.compress cimport unpack_block
from dataproxy._core.base.pack cimport Pack
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.client.ids cimport OWN_ID_KEY
from dataproxy._core.plat.endian cimport load_be32

__all__: list = []

cdef enum:
    LARGEST = 1 << 30       # of an unpacked body; it was ours before it was compressed


cdef object _own_id(const uint8_t* text, size_t n):
    cdef size_t end = OWN_ID_KEY
    if n <= OWN_ID_KEY or memcmp(text, b"msgid=", OWN_ID_KEY) != 0:
        return None
    while end < n and text[end] != 38:      # '&'
        end += 1
    return (<const char*>text)[OWN_ID_KEY:end].decode()


cdef list pack_own_ids(Pack* p):
    """Return the caller's id of each message, None for those without, or None for a pack without any.

    Locality: GIL, owner of a settled pack.  Locks: none.
    """
    cdef Buf plain
    cdef const uint8_t* at
    cdef uint32_t _i
    cdef list out
    if not p.own_ids or p.buf == NULL:
        return None
    buf_init(&plain)
    try:
        at = p.buf + p.head
        if p.compressed:
            if unpack_block(at, p.body_n, LARGEST, &plain) != ST_OK:
                return None                 # no memory: the pack's own ids must do
            at = plain.p
        out = []
        for _i in range(p.count):
            at += 4 + load_be32(at)
            out.append(_own_id(at + 4, load_be32(at)))
            at += 4 + load_be32(at)
        return out
    finally:
        buf_free(&plain)
