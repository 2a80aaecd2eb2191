"""One message as an item of an open pack: its size, its bytes, its place in the counts."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from dataproxy._core.pack.held cimport held_add
from dataproxy._core.pack.pack cimport PK_OPEN, Pack
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.text cimport is_line
from dataproxy._core.producer.accumulate.state cimport Batcher
from dataproxy._core.producer.ingest.ids cimport item_text_write
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.endian cimport store_be32
from dataproxy._core.wire.api cimport ITEM_LINES


cdef inline size_t item_size(const Batcher* b, size_t n, size_t text_n) noexcept nogil:
    """Return what ``n`` bytes of body and ``text_n`` of attributes take in a pack.  Locality: any.  Locks: none."""
    if text_n:
        return 8 + n + text_n
    return n + 1 if b.lines else n + 4


cdef inline bint item_is_held(const Batcher* b, size_t n, const void* owner) noexcept nogil:
    """Tell whether a body of ``n`` bytes stays where it lies: it is large, and ``owner`` keeps it as it is.

    Locality: any thread.  Locks: none.
    """
    return owner != NULL and n >= b.hold_from


cdef inline void item_write(
    Pack* p, const uint8_t* body, size_t n, size_t text_n, Slice own_id, Slice attrs,
) noexcept nogil:
    """Write an item behind the others; there is room.  Locality: any thread.  Locks: the batcher's is held."""
    cdef uint8_t* to = p.buf + p.head + p.body_n
    if p.items == ITEM_LINES:
        memcpy(to, body, n)
        to[n] = 10
        return
    store_be32(to, <uint32_t>n)
    memcpy(to + 4, body, n)
    if text_n:
        store_be32(to + 4 + n, <uint32_t>text_n)
        item_text_write(to + 8 + n, own_id, attrs)
        if own_id.n:
            p.own_ids = True


cdef inline void item_hold(
    Pack* p, const uint8_t* body, size_t n, size_t text_n, Slice own_id, Slice attrs, void* owner,
) noexcept nogil:
    """Write an item whose body stays where it lies; there is room, also in ``p.held``.

    The pack takes over the reference to ``owner``.  Locality: any thread.  Locks: the batcher's is held.
    """
    cdef uint8_t* to = p.buf + p.head + p.body_n
    store_be32(to, <uint32_t>n)
    held_add(p.held, body, n, p.body_n + 4, owner)
    p.most -= min(p.most, n)
    if text_n:
        store_be32(to + 4, <uint32_t>text_n)
        item_text_write(to + 8, own_id, attrs)
        if own_id.n:
            p.own_ids = True


cdef inline bint item_is_line(int rule, const Pack* p, size_t n) noexcept nogil:
    """Tell whether the body of ``n`` bytes that was just written behind the others may be a line.

    Locality: any thread.  Locks: the batcher's is held.  The caller's memory was checked before the call waited for
    room, or for other threads; what counts among lines is what was copied.
    """
    return is_line(rule, p.buf + p.head + p.body_n, n)


cdef inline uint8_t* item_begin(Pack* p, const uint8_t* body, size_t n, size_t text_n) noexcept nogil:
    """Write an item but for its attribute text, an id of the caller's among it; return where that begins.

    Locality: any thread.  Locks: the batcher's is held.
    """
    cdef uint8_t* to = p.buf + p.head + p.body_n
    store_be32(to, <uint32_t>n)
    memcpy(to + 4, body, n)
    store_be32(to + 4 + n, <uint32_t>text_n)
    p.own_ids = True
    return to + 8 + n


cdef inline void item_accepted(Batcher* b, size_t n, size_t need) noexcept nogil:
    """Count a message that is in, and charge its item.  Locality: any thread.  Locks: the batcher's is held."""
    b.charged += <int64_t>need
    b.accepted += 1
    b.accepted_bytes += <int64_t>n
    b.open_messages += 1


cdef inline void item_placed(Pack* p, size_t room) noexcept nogil:
    """Count an item that took ``room`` bytes of its pack.  Locality: any thread.  Locks: the batcher's is held."""
    p.body_n += room
    p.count += 1
    dp_assert(p.state == PK_OPEN, "items are written to an open pack: state=%d, seq=%u", p.state, p.seq)
    dp_assert(p.head + p.body_n <= p.cap, "the items are in the buffer: head=%zu, body_n=%zu, cap=%zu",
              p.head, p.body_n, p.cap)
