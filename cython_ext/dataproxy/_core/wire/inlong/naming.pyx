"""Items that carry their own names.

A message without an id from the caller is named by its pack's id and its place in the frame.  In a frame with a part of
the pack the place is different.  So the name is written into the item: ``msgid=<id>.<place>``; readers use it instead
of the place.  Lines (type 3) have no attributes, so they have no names.

Locality: owner of ``out``.  Locks: none.
"""

from libc.string cimport memcmp, memcpy

from dataproxy._core.base.buf cimport buf_reserve
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_INVALID, ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.wire.api cimport ITEM_ATTRS, ITEM_LENGTH
from dataproxy._core.wire.inlong.number cimport write_decimal

cdef enum:
    KEY = 6                     # msgid=
    ADDED = 4 + KEY + 1 + 20 + 1    # to an item, besides the id: length, key, dot, place, '&'


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
    """Append the items with their names."""
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
