"""Items of a body: counted and checked in one walk.

Locks: none.
"""

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport load_be32
from dataproxy._core.wire.inlong.attrs cimport Attrs, attrs_read
from dataproxy._core.wire.inlong.const cimport MAX_TEXT_ATTRS
from dataproxy._core.wire.inlong.utf8 cimport is_utf8


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
