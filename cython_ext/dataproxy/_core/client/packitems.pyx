"""The caller's ids of a settled pack that the dispatcher has still to tell of: they outlive its other bytes."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put, buf_put_u8
from dataproxy._core.base.compress cimport unpack_block
from dataproxy._core.base.pack cimport Pack, pack_strip
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.client.ids cimport OWN_ID_KEY
from dataproxy._core.plat.endian cimport load_be32

__all__: list = []

cdef enum:
    LARGEST = 1 << 30       # of an unpacked body; it was ours before it was compressed


cdef int _copy_id(const uint8_t* text, size_t n, Buf* ids) noexcept nogil:
    """Append the id that an item's attributes begin with, behind its length (at most 128) in a byte."""
    cdef size_t end = OWN_ID_KEY
    if n <= OWN_ID_KEY or memcmp(text, b"msgid=", OWN_ID_KEY) != 0:
        return buf_put_u8(ids, 0)
    while end < n and text[end] != 38:      # '&'
        end += 1
    if buf_put_u8(ids, <uint8_t>(end - OWN_ID_KEY)) != ST_OK:
        return ST_NO_MEMORY
    return buf_put(ids, text + OWN_ID_KEY, end - OWN_ID_KEY)


cdef void pack_keep_ids(Pack* p) noexcept nogil:
    """Replace the items of a pack by the ids that the caller gave them; without memory, by nothing.

    Locality: who settled it.  Locks: none.
    """
    cdef Buf plain, ids
    cdef const uint8_t* at = p.buf + p.head
    cdef uint32_t _i
    cdef int status = ST_OK
    buf_init(&plain)
    buf_init(&ids)
    if p.compressed:
        status = unpack_block(at, p.body_n, LARGEST, &plain)
        at = plain.p
    for _i in range(p.count):
        if status != ST_OK:
            break
        at += 4 + load_be32(at)
        status = _copy_id(at + 4, load_be32(at), &ids)
        at += 4 + load_be32(at)
    buf_free(&plain)
    pack_strip(p)
    if status != ST_OK:
        buf_free(&ids)
        p.own_ids = False       # the pack's own ids must do
        return
    p.buf = ids.p
    p.cap = ids.cap
    p.head = 0
    p.body_n = ids.n
    p.compressed = False


cdef list pack_own_ids(Pack* p):
    """Return the caller's id of each message, None for those without, or None for a pack without any.

    Locality: GIL, owner of a pack that pack_keep_ids has seen.  Locks: none.
    """
    cdef const uint8_t* at = p.buf
    cdef uint32_t _i
    if not p.own_ids or at == NULL:
        return None
    out = []
    for _i in range(p.count):
        out.append((<const char*>at)[1:1 + at[0]].decode() if at[0] else None)
        at += 1 + at[0]
    return out
