"""Items of a body: counted and checked in one walk, also while they are a snappy block, and given their names.

A body that was received as one snappy block is walked without unpacking it.

A message without an id from the caller is named by its pack's id and its place in the frame.  In a frame with a part of
the pack the place is different.  So the name is written into the item: ``msgid=<id>.<place>``; readers use it instead
of the place.  Lines (type 3) have no attributes, so they have no names.

Locks: none.
"""

from libc.string cimport memcmp, memcpy

from dataproxy._core.base.snappy.blockmap cimport BlockMap, block_map
from dataproxy._core.base.snappy.blockread cimport BlockReader, block_reader, block_word
from dataproxy._core.base.buf cimport buf_reserve
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_INVALID, ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.base.text cimport is_utf8, write_decimal
from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.wire.api cimport ITEM_ATTRS, ITEM_LENGTH
from dataproxy._core.wire.inlong.attrs cimport Attrs, attrs_read
from dataproxy._core.wire.inlong.const cimport MAX_TEXT_ATTRS

cdef enum:
    KEY = 6                     # msgid=
    ADDED = 4 + KEY + 1 + 20 + 1    # to an item, besides the id: length, key, dot, place, '&'


cdef int walk_items(const uint8_t* p, size_t n, Walk* walk) noexcept nogil:
    """Walk ``{u32 length, data}``; ST_PROTOCOL at an item that is empty or does not fit.

    Locality: any thread.
    """
    cdef size_t at = 0
    cdef size_t size
    cdef uint32_t count = 0
    while n - at >= 4:
        size = load_be32(p + at)
        if size == 0 or size > n - at - 4:
            break
        at += 4 + size
        count += 1
    walk.at = at
    walk.count = count
    return ST_OK if at == n and count > 0 else ST_PROTOCOL


cdef int walk_pairs(const uint8_t* p, size_t n, Buf* store, Walk* walk) noexcept nogil:
    """Walk ``{u32 length, data, u32 length, attribute text}``; with ``store`` the texts are read too.

    Locality: owner of ``store``.
    """
    cdef size_t at = 0
    cdef size_t size
    cdef size_t text_at
    cdef Attrs attrs
    cdef int status = ST_OK
    walk.count = 0
    while n - at >= 4:
        size = load_be32(p + at)
        if size == 0 or size > n - at - 4:
            break
        text_at = at + 4 + size
        if n - text_at < 4:
            break
        size = load_be32(p + text_at)
        if size == 0 or size > n - text_at - 4:
            break
        if store != NULL:
            if size > MAX_TEXT_ATTRS:       # before anything is split
                break
            status = attrs_read(slice_of(p + text_at + 4, size), store, &attrs)
            if status != ST_OK:
                break
            if not is_utf8(slice_of(p + text_at + 4, size)):
                break
        at = text_at + 4 + size
        walk.count += 1
    walk.at = at
    if status != ST_OK:
        return status
    return ST_OK if at == n and walk.count > 0 else ST_PROTOCOL


cdef int walk_packed(const uint8_t* p, size_t n, size_t limit, Buf* scratch, uint32_t* count) noexcept nogil:
    """Walk the items of a block.  Locality: owner of ``scratch``."""
    cdef size_t kept = scratch.n
    cdef BlockMap map
    cdef int status = block_map(p, n, limit, scratch, &map)
    if status == ST_OK:
        status = _walk_block(&map, count)
    scratch.n = kept
    return status


cdef int _walk_block(const BlockMap* map, uint32_t* count) noexcept nogil:
    """Read one length after the other.  Locality: any thread."""
    cdef BlockReader reader
    cdef uint32_t word = 0
    cdef size_t at = 0
    cdef size_t size
    count[0] = 0
    block_reader(&reader, map)
    while map.size - at >= 4:
        if not block_word(&reader, at, &word):
            return ST_PROTOCOL
        size = load_be32(&word)
        if size == 0 or size > map.size - at - 4:
            return ST_PROTOCOL
        at += 4 + size
        count[0] += 1
    return ST_OK if at == map.size and count[0] > 0 else ST_PROTOCOL


cdef inline bint _part(const uint8_t* p, size_t n, size_t* at, Slice* part) noexcept nogil:
    cdef size_t size
    if n - at[0] < 4:
        return False
    size = load_be32(p + at[0])
    if size > n - at[0] - 4:
        return False
    part[0] = slice_of(p + at[0] + 4, size)
    at[0] += 4 + size
    return True


cdef inline uint8_t* _put(uint8_t* to, Slice s) noexcept nogil:
    memcpy(to, s.p, s.n)
    return to + s.n


cdef uint8_t* _put_named(uint8_t* to, Slice body, Slice attrs, Slice id, uint32_t place) noexcept nogil:
    """Write one item and return its end."""
    cdef uint8_t* length
    store_be32(to, <uint32_t>body.n)
    length = _put(to + 4, body)
    to = length + 4
    if attrs.n < KEY or memcmp(attrs.p, b"msgid=", KEY) != 0:
        to = _put(to, slice_of(b"msgid=", KEY))
        to = _put(to, id)
        to[0] = 46              # '.'
        to += 1 + write_decimal(to + 1, place)
        if attrs.n:
            to[0] = 38          # '&'
            to += 1
    if attrs.n:
        to = _put(to, attrs)
    store_be32(length, <uint32_t>(to - length - 4))
    return to


cdef int name_items(
    const uint8_t* p, size_t n, int items, uint32_t count, Slice id, uint32_t* ends, Buf* out,
) noexcept nogil:
    """Append the items with their names.  Locality: owner of ``out``."""
    cdef size_t at = 0, start = out.n
    cdef uint32_t i
    cdef Slice body, attrs
    cdef uint8_t* to
    if items != ITEM_LENGTH and items != ITEM_ATTRS:
        return ST_INVALID
    if buf_reserve(out, n + count * (ADDED + id.n)) != ST_OK:
        return ST_NO_MEMORY
    to = out.p + start
    for i in range(count):
        attrs = slice_of(NULL, 0)
        if not _part(p, n, &at, &body) or (items == ITEM_ATTRS and not _part(p, n, &at, &attrs)):
            return ST_PROTOCOL
        to = _put_named(to, body, attrs, id, i)
        ends[2 * i] = <uint32_t>at
        ends[2 * i + 1] = <uint32_t>(to - out.p - start)
    if at != n:
        return ST_PROTOCOL
    out.n = <size_t>(to - out.p)
    return ST_OK
