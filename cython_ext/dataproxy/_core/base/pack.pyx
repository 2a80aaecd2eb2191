"""Packs, lists of packs, and the pool that recycles their buffers."""

from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from dataproxy._core.base.parts cimport parts_release
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.base.timers cimport timer_init
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, atomic_replace, atomic_store
from dataproxy._core.plat.bits cimport line_alloc
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)


cdef enum:
    FIRST_CAP = 1024
    LARGE = 65536
    PAGE = 4096


cdef void list_push(PackList* l, Pack* p) noexcept nogil:
    """Append ``p``.  Locality: owner of the list.  Locks: none."""
    p.next = NULL
    p.prev = l.tail
    if l.tail == NULL:
        l.head = p
    else:
        l.tail.next = p
    l.tail = p
    l.n += 1


cdef void list_push_front(PackList* l, Pack* p) noexcept nogil:
    """Put ``p`` first.  Locality: owner of the list.  Locks: none."""
    p.prev = NULL
    p.next = l.head
    if l.head == NULL:
        l.tail = p
    else:
        l.head.prev = p
    l.head = p
    l.n += 1


cdef void list_remove(PackList* l, Pack* p) noexcept nogil:
    """Take ``p`` out; it must be in the list.  Locality: owner of the list.  Locks: none."""
    if p.prev == NULL:
        l.head = p.next
    else:
        p.prev.next = p.next
    if p.next == NULL:
        l.tail = p.prev
    else:
        p.next.prev = p.prev
    p.next = NULL
    p.prev = NULL
    l.n -= 1


cdef Pack* list_pop(PackList* l) noexcept nogil:
    """Take the first pack, or NULL.  Locality: owner of the list.  Locks: none."""
    cdef Pack* p = l.head
    if p != NULL:
        list_remove(l, p)
    return p


cdef void pool_open(PackPool* pool, size_t max_bytes) noexcept nogil:
    """Make an empty pool that keeps at most ``max_bytes`` of spare buffers.  Locks: none."""
    memset(pool, 0, sizeof(PackPool))
    pthread_mutex_init(&pool.lock, NULL)
    pool.max_bytes = max_bytes


cdef void pool_close(PackPool* pool) noexcept nogil:
    """Release all spare packs.  Locality: the last user.  Locks: none."""
    cdef Pack* p = pool.spare
    cdef Pack* following
    while p != NULL:
        following = p.next
        free(p.buf)
        free(p)
        p = following
    pool.spare = NULL
    pthread_mutex_destroy(&pool.lock)


cdef void pool_retire(PackPool* pool) noexcept nogil:
    """Release all spare packs and keep none from now on.  Locality: any thread.  Locks: takes pool.lock."""
    cdef Pack* p
    cdef Pack* following
    pthread_mutex_lock(&pool.lock)
    p = pool.spare
    pool.spare = NULL
    pool.spare_bytes = 0
    pool.max_bytes = 0
    pthread_mutex_unlock(&pool.lock)
    while p != NULL:
        following = p.next
        free(p.buf)
        free(p)
        p = following


cdef Pack* pool_take(PackPool* pool, size_t head, size_t cap) noexcept nogil:
    """Return an empty pack with ``head`` bytes of head room, or NULL without memory.

    Locality: any thread.  Locks: takes pool.lock.  A recycled buffer may be larger than ``cap``.
    """
    cdef Pack* p
    cdef uint8_t* buf = NULL
    cdef size_t have = 0
    pthread_mutex_lock(&pool.lock)
    p = pool.spare
    if p != NULL:
        pool.spare = p.next
        pool.spare_bytes -= p.cap + sizeof(Pack)
    pthread_mutex_unlock(&pool.lock)
    if p != NULL:
        buf = p.buf
        have = p.cap
    else:
        p = <Pack*>line_alloc(sizeof(Pack))
        if p == NULL:
            return NULL
    memset(p, 0, sizeof(Pack))
    p.buf = buf
    p.cap = have
    p.head = head
    p.link = -1
    timer_init(&p.timer, 1, p)
    if have < cap and pack_grow(p, cap) != ST_OK:
        free(p.buf)
        free(p)
        return NULL
    return p


cdef void pool_give(PackPool* pool, Pack* p) noexcept nogil:
    """Take back a pack that nobody uses any more.  Locality: any thread.  Locks: takes pool.lock."""
    cdef bint keep = False
    if p.verdict != NULL:
        verdict_release(p.verdict)
        p.verdict = NULL
    if p.parts != NULL:
        parts_release(p.parts)
        p.parts = NULL
    free(p.error_text)
    p.error_text = NULL
    pthread_mutex_lock(&pool.lock)
    if pool.spare_bytes + p.cap + sizeof(Pack) <= pool.max_bytes:
        p.next = pool.spare
        pool.spare = p
        pool.spare_bytes += p.cap + sizeof(Pack)
        keep = True
    pthread_mutex_unlock(&pool.lock)
    if not keep:
        free(p.buf)
        free(p)


cdef void pack_strip(Pack* p) noexcept nogil:
    """Release the bytes of a settled pack whose facts are still wanted.  Locality: owner.  Locks: none."""
    free(p.buf)
    p.buf = NULL
    p.cap = 0
    p.frame = NULL


cdef bint pack_hold(Pack* p) noexcept nogil:
    """Claim ``p`` for its executor; False when a sender has given it up.  Locality: executor.  Locks: none."""
    return atomic_replace(&p.claim, CL_FREE, CL_HELD) or atomic_load(&p.claim) != CL_DROPPED


cdef void pack_let_go(Pack* p) noexcept nogil:
    """Let senders claim ``p`` again; no byte of it was written.  Locality: executor.  Locks: none."""
    if atomic_load(&p.claim) == CL_HELD:
        atomic_store(&p.claim, CL_FREE)


cdef int pack_room(Pack* p, size_t extra) noexcept nogil:
    """Make room for ``extra`` bytes behind the items; ST_OK or ST_NO_MEMORY.  Locality: owner."""
    cdef size_t need = p.head + p.body_n + extra
    cdef size_t cap
    if need <= p.cap:
        return ST_OK
    if need > LARGE:
        cap = (need + need // 4 + PAGE - 1) // PAGE * PAGE     # still geometric, without doubling what is nearly full
    else:
        cap = p.cap if p.cap >= FIRST_CAP else FIRST_CAP
        while cap < need:
            cap *= 2
    return pack_grow(p, cap)


cdef int pack_grow(Pack* p, size_t cap) noexcept nogil:
    """Give ``p`` a buffer of ``cap`` bytes, more than it has; ST_OK or ST_NO_MEMORY.  Locality: owner."""
    cdef uint8_t* grown
    grown = <uint8_t*>realloc(p.buf, cap)
    if grown == NULL:
        return ST_NO_MEMORY
    p.buf = grown
    p.cap = cap
    return ST_OK


cdef Verdict* verdict_new() noexcept nogil:
    """Return a pending verdict with one reference, or NULL.  Locality: any thread.  Locks: none."""
    cdef Verdict* v = <Verdict*>calloc(1, sizeof(Verdict))
    if v != NULL:
        v.refs = 1
    return v


cdef void verdict_release(Verdict* v) noexcept nogil:
    """Drop one reference.  Locality: any thread.  Locks: none."""
    if atomic_add(&v.refs, -1) == 0:
        if v.parts != NULL:
            parts_release(v.parts)
        free(v)
