"""The only walk over the items of a pack; and the caller's ids of a settled pack, until the dispatcher reports them.

The ids are kept longer than the other bytes of a pack.  Locality: the owner of the pack.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memchr, memcmp

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init, buf_put, buf_put_u8
from dataproxy._core.base.snappy.compress cimport unpack_block
from dataproxy._core.pack.pack cimport Pack, pack_solid, pack_strip
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.producer.ingest.ids cimport OWN_ID_KEY
from dataproxy._core.plat.endian cimport load_be32
from dataproxy._core.wire.api cimport ITEM_ATTRS, ITEM_LINES, ITEM_OBJECTS

__all__: list = []

cdef enum:
    LARGEST = 1 << 30       # bytes of an unpacked body; this producer compressed it, so no smaller limit is needed


cdef bint _part(ItemWalk* w, Slice* part) noexcept nogil:
    """Take a length and so many bytes; False when some of them are missing."""
    cdef size_t n
    if w.n < 4:
        return False
    n = load_be32(w.p)
    if n > w.n - 4:
        return False
    part[0] = slice_of(w.p + 4, n)
    w.p += 4 + n
    w.n -= 4 + n
    return True


cdef inline bint _number(ItemWalk* w, size_t* value) noexcept nogil:
    """Take a varint of at most four bytes."""
    cdef int shift = 0
    value[0] = 0
    while w.n > 0 and shift < 28:
        value[0] |= <size_t>(w.p[0] & 0x7F) << shift
        w.p += 1
        w.n -= 1
        if (w.p - 1)[0] < 0x80:
            return True
        shift += 7
    return False


cdef bint _object(ItemWalk* w, Slice* body) noexcept nogil:
    """Take a protobuf message of this producer's own making: time, source, body."""
    cdef size_t n
    cdef int field
    for field in range(4):              # the message itself, and its three fields
        if w.n == 0:
            return False
        w.p += 1                        # the tag
        w.n -= 1
        if field == 1:
            while w.n > 1 and w.p[0] >= 0x80:
                w.p += 1
                w.n -= 1
            n = 1
        elif not _number(w, &n) or n > w.n:
            return False
        if n > w.n:
            return False
        if field:
            body[0] = slice_of(w.p, n)
            w.p += n
            w.n -= n
    return True


cdef bint item_next(ItemWalk* w, Slice* body, Slice* attrs) noexcept nogil:
    """Take the next item; False when no complete one is left.  Nothing is read beyond the last byte.

    Locality: any thread that has the bytes.
    """
    cdef const uint8_t* lf
    attrs[0] = slice_of(NULL, 0)
    if w.items == ITEM_OBJECTS:
        return _object(w, body)
    if w.items != ITEM_LINES:
        return _part(w, body) and (w.items != ITEM_ATTRS or _part(w, attrs))
    if w.n == 0:
        return False
    lf = <const uint8_t*>memchr(w.p, 10, w.n)
    body[0] = slice_of(w.p, <size_t>(lf - w.p) if lf != NULL else w.n)
    w.p += min(w.n, body.n + 1)
    w.n -= min(w.n, body.n + 1)
    return True


cdef int _copy_id(Slice attrs, Buf* ids) noexcept nogil:
    """Append the id at the beginning of an item's attributes: its length (at most 128) in one byte, then the id."""
    cdef const uint8_t* text = attrs.p
    cdef size_t n = attrs.n
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

    Locality: the thread that settled the pack.
    """
    cdef Buf plain, ids
    cdef ItemWalk walk
    cdef Slice body, attrs
    cdef uint32_t _i
    cdef int status = ST_OK
    buf_init(&plain)
    buf_init(&ids)
    status = pack_solid(p, 0)
    walk.p = p.buf + p.head
    walk.n = p.body_n
    walk.items = p.items
    if p.compressed:
        status = unpack_block(walk.p, walk.n, LARGEST, &plain)
        walk.p = plain.p
        walk.n = plain.n
    for _i in range(p.count):
        if status != ST_OK:
            break
        status = _copy_id(attrs, &ids) if item_next(&walk, &body, &attrs) else ST_PROTOCOL
    buf_free(&plain)
    pack_strip(p)
    if status != ST_OK:
        buf_free(&ids)
        p.own_ids = False       # the messages are then reported with the ids that the producer made
        return
    p.buf = ids.p
    p.cap = ids.cap
    p.head = 0
    p.body_n = ids.n
    p.compressed = False


cdef list pack_own_ids(Pack* p):
    """Return the caller's id of each message, None for those without, or None for a pack without any.

    Locality: GIL, owner of a pack that pack_keep_ids has seen.
    """
    cdef const uint8_t* text = p.buf
    cdef size_t at = 0
    cdef uint32_t _i
    if not p.own_ids or text == NULL:
        return None
    out = []
    for _i in range(p.count):
        if at >= p.body_n or text[at] > p.body_n - at - 1:
            out.append(None)
            continue
        out.append((<const char*>text)[at + 1:at + 1 + text[at]].decode() if text[at] else None)
        at += 1 + text[at]
    return out
