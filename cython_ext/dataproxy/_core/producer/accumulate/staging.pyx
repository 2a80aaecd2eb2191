"""Where messages wait when there are so many open packs that no cache holds them.

To append to such a pack a thread waits for memory three times: for the stream, its open pack, and the end of the
pack's bytes; each address is known only when the one before was loaded.  A message that is staged waits for none of
them.  When this buffer is full, or when anything else touches the open packs, all staged messages go to their packs
in the order in which they came, and the memory of all is prefetched before the first needs it.
"""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy, memmove

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.bits cimport LINE, prefetch, prefetch_write
from dataproxy._core.producer.accumulate.item cimport item_size, item_write
from dataproxy._core.producer.accumulate.openpacks cimport openpack_for, openpack_placed
from dataproxy._core.producer.accumulate.state cimport EX_ALL, NO_KEY, NO_TIME, Extras

cdef enum:
    TAIL_LINES = 3          # cache lines prefetched at the end of a pack's bytes


cdef bint staging_put(Staging* t, Stream* s, const uint8_t* body, size_t n) noexcept nogil:
    """Copy one message; False when it does not fit.  Locality: any thread.  Locks: the batcher's is held."""
    cdef uint32_t at = t.ends[t.n - 1] if t.n else 0
    if n > STAGED_BODY or t.n == STAGED or at + n > STAGED_BYTES:
        return False
    dp_assert(at <= STAGED_BYTES and t.n < STAGED, "a staged message is in the buffer: at=%u, n=%u", at, t.n)
    prefetch(s)
    memcpy(t.bytes + at, body, n)
    t.streams[t.n] = s
    t.ends[t.n] = at + <uint32_t>n
    t.n += 1
    return True


cdef void _fetch(const Staging* t) noexcept nogil:
    """Prefetch the open packs of all messages, then the ends of their bytes.

    Locality: any thread.  Locks: the batcher's is held.
    """
    cdef uint32_t i, k
    cdef Pack* p
    for i in range(t.n):
        p = t.streams[i].plain
        if p != NULL:
            prefetch_write(p)
    for i in range(t.n):
        p = t.streams[i].plain
        if p != NULL:
            for k in range(TAIL_LINES):
                prefetch_write(p.buf + p.head + p.body_n + k * LINE)


cdef void _keep(Staging* t, uint32_t first) noexcept nogil:
    """Remove the messages before ``first``.  Locality: any thread.  Locks: the batcher's is held."""
    cdef uint32_t i, gone = t.ends[first - 1] if first else 0
    for i in range(first, t.n):
        t.streams[i - first] = t.streams[i]
        t.ends[i - first] = t.ends[i] - gone
    t.n -= first
    if t.n:
        memmove(t.bytes, t.bytes + gone, t.ends[t.n - 1])


cdef int staging_empty(Batcher* b) noexcept nogil:
    """Put staged messages into their packs; ST_OK, or ST_NO_MEMORY and the rest stays staged.

    Locality: any thread.  Locks: the batcher's is held; takes accounting.lock, then an inbox's, when it seals.
    """
    cdef Staging* t = &b.staged
    cdef Extras x
    cdef Pack* p
    cdef uint32_t i, at = 0
    cdef size_t n, need
    x.when_ms = NO_TIME
    x.attrs = slice_of(NULL, 0)
    x.own_id = x.attrs
    x.key_bucket = NO_KEY
    x.exempt = EX_ALL
    x.owner = NULL
    _fetch(t)
    for i in range(t.n):
        n = t.ends[i] - at
        need = item_size(b, n, 0)
        p = t.streams[i].plain
        if p == NULL or p.head + p.body_n + need > p.cap or p.body_n + need > p.most:
            if openpack_for(b, t.streams[i], &x, need, need, False, &p) != ST_OK:
                p = NULL
        if p == NULL:
            _keep(t, i)
            return ST_NO_MEMORY
        if p.count == 0:
            p.opened_us = t.since_us
        item_write(p, t.bytes + at, n, 0, x.own_id, x.attrs)
        openpack_placed(b, p, need, need)
        at = t.ends[i]
    t.n = 0
    return ST_OK
