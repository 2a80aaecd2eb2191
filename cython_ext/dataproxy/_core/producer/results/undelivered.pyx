"""The buffers of packs that failed, expired or were dropped, up to a limit of their own.

A pack's buffer moves here as it is, framed and compressed or not.  Nothing is unpacked before somebody iterates, and
only bodies that the pack held by reference are copied; but what framing has changed where it lay becomes items again.
Messages that come after the limit is reached are counted and not kept, because the oldest losses say most about the
cause.  In this module "lock" is ``UndeliveredBuffer.lock``.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport Buf, buf_free, buf_init
from dataproxy._core.base.snappy.compress cimport unpack_block
from dataproxy._core.pack.pack cimport (
    OUT_DELIVERED, Pack, pack_items, pack_result_new, pack_result_release, pack_solid,
)
from dataproxy._core.pack.parts cimport parts_find, parts_messages
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.producer.results.accounting cimport pack_result_fill
from dataproxy._core.producer.results.packitems cimport ItemWalk, item_next
from dataproxy._core.producer.accumulate.streams cimport Stream, stream_hold
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)

cdef enum:
    MOST_UNPACKED = 1073741824      # bytes; no pack is nearly so large


cdef void undelivered_open(UndeliveredBuffer* l, int64_t limit, const WireOps* wire) noexcept nogil:
    """Open a zeroed store that keeps ``limit`` bytes of packs, which ``wire`` has framed.

    Locality: the producer's creator.
    """
    l.limit = limit
    l.wire = wire
    pthread_mutex_init(&l.lock, NULL)


cdef void _free(UndeliveredPack* x) noexcept nogil:
    if x.pack_result != NULL:
        pack_result_release(x.pack_result)
    free(x.buf)
    free(x)


cdef void undelivered_close(UndeliveredBuffer* l) noexcept nogil:
    """Release everything.  Locality: the last user."""
    cdef UndeliveredPack* x = undelivered_take(l)
    while x != NULL:
        _free(x)
        x = undelivered_take(l)
    pthread_mutex_destroy(&l.lock)


cdef UndeliveredPack* _from_pack(Pack* p, int64_t now_us) noexcept nogil:
    """Return an undelivered pack that takes over the buffer of ``p``; NULL without memory, and then ``p`` is unchanged.
    """
    cdef UndeliveredPack* x = <UndeliveredPack*>calloc(1, sizeof(UndeliveredPack))
    cdef uint8_t* tight
    if x == NULL:
        return NULL
    x.pack_result = pack_result_new()
    if x.pack_result == NULL:
        free(x)
        return NULL
    pack_result_fill(x.pack_result, p, now_us - p.opened_us)
    x.at = p.head
    x.end = p.head + p.body_n
    if p.report and p.own_ids:                  # the dispatcher reads the ids from its items
        x.buf = <uint8_t*>malloc(x.end)
        if x.buf == NULL:
            _free(x)
            return NULL
        memcpy(x.buf, p.buf, x.end)
    else:
        tight = <uint8_t*>realloc(p.buf, x.end)     # the buffer may be larger than its content
        x.buf = tight if tight != NULL else p.buf
        p.buf = NULL
        p.cap = 0
        p.frame = NULL
    x.compressed = p.compressed
    x.items = p.items
    x.count = p.count
    x.data_time_ms = p.data_time_ms
    x.charge = <int64_t>(x.end + sizeof(UndeliveredPack) + sizeof(x.pack_result[0]))
    x.stream = <Stream*>p.stream
    stream_hold(x.stream)
    return x


cdef void undelivered_keep(UndeliveredBuffer* l, Pack* p, int64_t now_us) noexcept nogil:
    """Take over the buffer of a settled pack that was not delivered, if there is room.

    Locality: the thread that settles the pack, before the accounting counts it.  Locks: takes lock.
    """
    cdef int64_t need = <int64_t>(p.head + pack_items(p) + sizeof(UndeliveredPack) + sizeof(p.pack_result[0]))
    cdef UndeliveredPack* x = NULL
    pthread_mutex_lock(&l.lock)
    if p.buf != NULL and l.charged + need <= l.limit and pack_solid(p, 0) == ST_OK:
        if p.frame != NULL and l.wire.restore != NULL:
            l.wire.restore(p.buf + p.head, p.body_n)
            p.frame = NULL
        x = _from_pack(p, now_us)
    if x == NULL:
        l.not_kept += p.count if p.parts == NULL else p.count - parts_messages(p.parts, OUT_DELIVERED)
    else:
        l.charged += x.charge
        if l.last == NULL:
            l.first = x
        else:
            l.last.next = x
        l.last = x
    pthread_mutex_unlock(&l.lock)


cdef void undelivered_missed(UndeliveredBuffer* l, int64_t messages) noexcept nogil:
    """Count messages that never had a pack.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&l.lock)
    l.not_kept += messages
    pthread_mutex_unlock(&l.lock)


cdef UndeliveredPack* undelivered_take(UndeliveredBuffer* l) noexcept nogil:
    """Take out the oldest one, which stays charged; NULL when there is none.  Locality: any.  Locks: takes lock."""
    cdef UndeliveredPack* x
    pthread_mutex_lock(&l.lock)
    x = l.first
    if x != NULL:
        l.first = x.next
        if l.first == NULL:
            l.last = NULL
        x.next = NULL
    pthread_mutex_unlock(&l.lock)
    return x


cdef void undelivered_put_back(UndeliveredBuffer* l, UndeliveredPack* x) noexcept nogil:
    """Put one whose messages were not all read back to the front.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&l.lock)
    x.next = l.first
    l.first = x
    if l.last == NULL:
        l.last = x
    pthread_mutex_unlock(&l.lock)


cdef void undelivered_spent(UndeliveredBuffer* l, UndeliveredPack* x) noexcept nogil:
    """Release one that was taken; its reference to the stream becomes the caller's.

    Locality: any thread.  Locks: takes lock.
    """
    pthread_mutex_lock(&l.lock)
    l.charged -= x.charge
    pthread_mutex_unlock(&l.lock)
    _free(x)


cdef void undelivered_counts(UndeliveredBuffer* l, int64_t* charged, int64_t* not_kept) noexcept nogil:
    """Read the counters.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&l.lock)
    charged[0] = l.charged
    not_kept[0] = l.not_kept
    pthread_mutex_unlock(&l.lock)


cdef int undelivered_pack_open(UndeliveredPack* x) noexcept nogil:
    """Unpack a compressed block, so that items can be read; ST_OK or a failure.  Locality: its owner."""
    cdef Buf out
    cdef int status
    if not x.compressed:
        return ST_OK
    buf_init(&out)
    status = unpack_block(x.buf + x.at, x.end - x.at, MOST_UNPACKED, &out)
    if status != ST_OK:
        buf_free(&out)
        return status
    free(x.buf)
    x.buf = out.p
    x.at = 0
    x.end = out.n
    x.compressed = False
    return ST_OK


cdef bint undelivered_pack_next(UndeliveredPack* x, Slice* body, Slice* attrs) noexcept nogil:
    """Read the next undelivered message of an open undelivered pack and move past it; False when there is none.

    Locality: its owner.
    """
    cdef ItemWalk walk
    walk.p = x.buf + x.at
    walk.n = x.end - x.at
    walk.items = x.items
    while x.index < x.count and item_next(&walk, body, attrs):
        x.at = x.end - walk.n
        x.index += 1
        if x.pack_result.parts == NULL or parts_find(x.pack_result.parts, x.index - 1).outcome != OUT_DELIVERED:
            return True
    return False
