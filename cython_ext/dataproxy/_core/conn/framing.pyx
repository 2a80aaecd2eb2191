"""Sealed pack -> frame bytes in its own buffer."""

from libc.stdint cimport uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.snappy.compress cimport pack_block, pack_bound
from dataproxy._core.pack.pack cimport Pack, PackPool, pack_apart, pack_grow, pool_count, pool_give, pool_take
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.wire.api cimport ITEM_OBJECTS, FrameSpec, WireOps


cdef bint _compress(PackPool* spares, Pack* p, size_t tail) noexcept nogil:
    """Replace the body by its compressed form; False (nothing changed) if that is not smaller."""
    cdef Pack* other = pool_take(spares, p.head, p.head + pack_bound(p.body_n) + tail)
    cdef Buf out
    cdef uint8_t* buf
    cdef size_t cap, n
    cdef int status
    if other == NULL:
        return False
    out.p = other.buf
    out.n = p.head
    out.cap = other.cap
    status = pack_block(p.buf + p.head, p.body_n, &out)
    other.buf = out.p
    other.cap = out.cap
    n = out.n - p.head
    if status != ST_OK or n + n // 16 >= p.body_n:
        pool_give(spares, other)
        return False
    buf = p.buf
    cap = p.cap
    p.buf = other.buf
    p.cap = other.cap
    p.body_n = n
    p.compressed = True
    other.buf = buf
    other.cap = cap
    pool_count(spares, p)
    pool_give(spares, other)
    return True


cdef int frame_pack(const WireOps* wire, const FrameRules* rules, PackPool* spares, Pack* p) noexcept nogil:
    """Make ``p.frame``; ST_OK, ST_NO_MEMORY or ST_LIMIT.  Locality: executor.  Locks: takes the lock of ``spares``.

    The frame holds the sequence number, data time, count and attributes of the pack, so a resend has the same bytes.
    """
    cdef FrameSpec spec
    cdef size_t start = 0, size = 0, tail
    cdef int status
    spec.family = rules.family
    spec.items = p.items
    spec.compressed = False
    spec.seq = p.seq
    spec.count = p.count
    spec.data_time_ms = p.data_time_ms
    spec.attrs = p.attrs
    spec.id = slice_of(p.id, <size_t>p.id_n)
    spec.apart = pack_apart(p)
    spec.ack = rules.ack
    spec.origin = slice_of(rules.origin, rules.origin_n)
    spec.origin_ms = rules.wall_offset_ms + p.opened_us // 1000
    spec.sender = slice_of(rules.sender, rules.sender_n)
    spec.proof_n = rules.proof_n
    spec.answer_ms = rules.answer_ms
    if wire.arrange != NULL:
        p.body_n = wire.arrange(&spec, p.buf + p.head, p.body_n)
        if p.body_n == 0:
            return ST_LIMIT
        spec.items = p.items = ITEM_OBJECTS
    spec.body = slice_of(p.buf + p.head, p.body_n)
    tail = wire.tail_room(&spec) + 16       # for `cp=snappy`, which compression adds to the attributes
    dp_assert(not rules.compress or spec.apart == 0, "bodies that will be compressed are copied: apart=%zu", spec.apart)
    if rules.compress and p.body_n >= rules.compress_min:
        spec.compressed = _compress(spares, p, tail)
    if p.head + p.body_n + tail > p.cap and pack_grow(p, p.head + p.body_n + tail) != ST_OK:
        return ST_NO_MEMORY
    spec.body = slice_of(p.buf + p.head, p.body_n)      # where it lies by now: `frame` may look at it once more
    p.frame = p.buf                 # counted as it is from here on: nothing grows any more
    pool_count(spares, p)
    status = wire.frame(&spec, p.buf, p.body_n, &start, &size)
    if status == ST_OK and size > rules.max_frame:
        if wire.restore != NULL:
            wire.restore(p.buf + p.head, p.body_n)
        status = ST_LIMIT
    if status != ST_OK:
        p.frame = NULL
        return status
    dp_assert(start + size - spec.apart <= p.cap, "the frame is in the buffer: start=%zu, size=%zu, apart=%zu, cap=%zu",
              start, size, spec.apart, p.cap)
    p.frame = p.buf + start
    p.frame_n = size
    return ST_OK
