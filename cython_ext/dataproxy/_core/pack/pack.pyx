"""Packs, lists of packs, and the pool that reuses their buffers.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from dataproxy._core.pack.held cimport HeldBody, held_bodies
from dataproxy._core.pack.parts cimport parts_release
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.base.timers cimport timer_init
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport (
    atomic_add, atomic_load, atomic_replace, atomic_store, relaxed_load, relaxed_store,
)
from dataproxy._core.plat.bits cimport leading_zeros, line_alloc
from dataproxy._core.plat.thread cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)


cdef enum:
    FIRST_CAP = 1024
    LARGE = 65536
    PAGE = 4096
    LOOKS = 4               # spare packs of a class that are tried


cdef void list_push(PackList* l, Pack* p) noexcept nogil:
    """Append ``p``.  Locality: owner of the list."""
    dp_assert(
        l.head != p and p.next == NULL and p.prev == NULL,
        "the pack is in no list: seq=%u, state=%d, list.n=%ld", p.seq, p.state, l.n)
    dp_assert((l.n == 0) == (l.head == NULL) and (l.n == 0) == (l.tail == NULL),
              "a list is empty at both ends or at none: list.n=%ld", l.n)
    p.next = NULL
    p.prev = l.tail
    if l.tail == NULL:
        l.head = p
    else:
        l.tail.next = p
    l.tail = p
    l.n += 1


cdef void list_remove(PackList* l, Pack* p) noexcept nogil:
    """Take ``p`` out; it must be in the list.  Locality: owner of the list."""
    dp_assert(l.n > 0, "list.n > 0: list.n=%ld, seq=%u, state=%d", l.n, p.seq, p.state)
    dp_assert((p.prev == NULL) == (l.head == p) and (p.next == NULL) == (l.tail == p),
              "the pack is in this list: seq=%u, state=%d, list.n=%ld", p.seq, p.state, l.n)
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
    """Take the first pack, or NULL.  Locality: owner of the list."""
    cdef Pack* p = l.head
    if p != NULL:
        list_remove(l, p)
    return p


cdef void pool_open(PackPool* pool, size_t max_bytes, int64_t most) noexcept nogil:
    """Make an empty pool that keeps at most ``max_bytes`` of spare packs; less if all packs come near ``most`` bytes.

    Locality: owner.
    """
    memset(pool, 0, sizeof(PackPool))
    pthread_mutex_init(&pool.lock, NULL)
    pool.max_bytes = <int64_t>max_bytes
    pool.most = most
    pool.spread = 1


cdef inline int _class(size_t cap) noexcept nogil:
    """Return the class of a buffer of ``cap`` bytes: the exponent of the largest power of two not above ``cap``."""
    return min(63 - leading_zeros(cap | 1), SPARE_CLASSES - 1)


cdef void _free_chain(Pack* p) noexcept nogil:
    cdef Pack* following
    while p != NULL:
        following = p.next
        free(p.buf)
        free(p)
        p = following


cdef void _trim(PackPool* pool, int64_t bytes) noexcept nogil:
    """Release spare packs, the largest first, until ``bytes`` are free.  Locks: takes pool.lock."""
    cdef Pack* chain = NULL
    cdef Pack* p
    cdef int c = SPARE_CLASSES - 1
    pthread_mutex_lock(&pool.lock)
    while bytes > 0 and c >= 0:
        p = pool.spare[c]
        if p == NULL:
            c -= 1
            continue
        pool.spare[c] = p.next
        bytes -= pack_cost(p.cap)
        relaxed_store(&pool.spare_bytes, pool.spare_bytes - pack_cost(p.cap))
        p.next = chain
        chain = p
    pthread_mutex_unlock(&pool.lock)
    _free_chain(chain)


cdef void pool_close(PackPool* pool) noexcept nogil:
    """Release all spare packs.  Locality: the last user."""
    _trim(pool, pool.spare_bytes)
    pthread_mutex_destroy(&pool.lock)


cdef void pool_retire(PackPool* pool) noexcept nogil:
    """Release all spare packs and keep none from now on.  Locality: any thread.  Locks: takes pool.lock."""
    pthread_mutex_lock(&pool.lock)
    pool.max_bytes = 0
    pthread_mutex_unlock(&pool.lock)
    _trim(pool, relaxed_load(&pool.spare_bytes))


cdef void pool_count(PackPool* pool, Pack* p) noexcept nogil:
    """Count the memory of ``p``; releases spare packs if needed.

    To be called after each allocation, release or change of size of the pack's buffer.
    Locality: owner of the pack.  Locks: may take pool.lock.
    """
    cdef int64_t now = pack_memory(p.cap if p.frame != NULL else p.cap * <size_t>pool.spread)
    cdef int64_t more = now - p.memory
    cdef int64_t over
    if more == 0:
        return
    relaxed_store(&p.memory, now)
    over = atomic_add(&pool.in_use, more) + relaxed_load(&pool.spare_bytes) - pool.most
    if more > 0 and over > 0:
        _trim(pool, over)


cdef void pool_uncount(PackPool* pool, Pack* p) noexcept nogil:
    """Stop counting ``p``: it is given back, or counted elsewhere.  Locality: owner of the pack."""
    if p.memory:
        dp_assert(p.memory <= atomic_load(&pool.in_use), "memory <= in_use: memory=%ld, in_use=%ld",
                  p.memory, atomic_load(&pool.in_use))
        atomic_add(&pool.in_use, -p.memory)
        relaxed_store(&p.memory, 0)


cdef inline Pack* _look(PackPool* pool, int c, size_t least, size_t most) noexcept nogil:
    """Take, of the first LOOKS spare packs of a class, one whose buffer has ``least`` to ``most`` bytes, or NULL."""
    cdef Pack** at = &pool.spare[c]
    cdef Pack* p = at[0]
    cdef int looks = LOOKS
    while p != NULL and looks > 0:
        if least <= p.cap <= most:
            at[0] = p.next
            return p
        at = &p.next
        p = p.next
        looks -= 1
    return NULL


cdef Pack* _spare(PackPool* pool, size_t cap) noexcept nogil:
    """Take a spare pack whose buffer has ``cap`` bytes or a little more, else one with half of them, else NULL.

    Memory that was used before is cheap; in new memory, the first access to each page costs a page fault.
    """
    cdef int c = _class(cap)
    cdef Pack* p = _look(pool, c, cap, pack_loose(cap))
    if p == NULL and c + 1 < SPARE_CLASSES:
        p = _look(pool, c + 1, cap, pack_loose(cap))
    if p == NULL:
        p = _look(pool, c, cap // 2, cap)
    if p == NULL and c > 0:
        p = _look(pool, c - 1, cap // 2, cap)
    return p if p != NULL else _look(pool, 0, 0, cap)


cdef Pack* pool_take(PackPool* pool, size_t head, size_t cap) noexcept nogil:
    """Return an empty pack with ``head`` bytes of head room, or NULL without memory.

    Its buffer is not larger than ``pack_loose(cap)``.
    Locality: any thread.  Locks: takes pool.lock.
    """
    cdef Pack* p
    cdef uint8_t* buf = NULL
    cdef size_t have = 0
    pthread_mutex_lock(&pool.lock)
    p = _spare(pool, cap)
    if p != NULL:
        relaxed_store(&pool.spare_bytes, pool.spare_bytes - pack_cost(p.cap))
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
    p.conn = -1
    timer_init(&p.timer, 1, p)
    if have < cap and pack_grow(p, cap) != ST_OK:
        free(p.buf)
        free(p)
        return NULL
    pool_count(pool, p)
    return p


cdef inline void _return(PackPool* pool, Pack* p) noexcept nogil:
    """Put the references of a finished pack where threads that hold the GIL find them.  Locks: pool.lock is held."""
    cdef const HeldBody* body
    cdef uint32_t i
    if p.held == NULL:
        return
    body = held_bodies(p.held)
    for i in range(p.held.n):
        relaxed_store(&pool.returned_bytes, pool.returned_bytes + <int64_t>body[i].n)
    p.held.next = pool.returned
    pool.returned = p.held
    p.held = NULL


cdef void pool_return(PackPool* pool, Pack* p) noexcept nogil:
    """Return the references of a pack whose bytes nobody needs any more.  Locality: owner.  Locks: takes pool.lock."""
    if p.held != NULL:
        pthread_mutex_lock(&pool.lock)
        _return(pool, p)
        pthread_mutex_unlock(&pool.lock)


cdef Held* pool_take_returned(PackPool* pool) noexcept nogil:
    """Take all references that can be given back, or NULL.  Locality: any thread.  Locks: takes pool.lock."""
    cdef Held* chain
    pthread_mutex_lock(&pool.lock)
    chain = pool.returned
    pool.returned = NULL
    relaxed_store(&pool.returned_bytes, 0)
    pthread_mutex_unlock(&pool.lock)
    return chain


cdef void pool_give(PackPool* pool, Pack* p) noexcept nogil:
    """Take back a pack that nobody uses any more.  Locality: any thread.  Locks: takes pool.lock."""
    cdef int64_t cost = pack_cost(p.cap)
    cdef int64_t kept
    cdef int c = _class(p.cap)
    cdef bint keep = False
    dp_assert(p.state == PK_OPEN or p.state == PK_SETTLED,
              "a pack that is given back is open or settled: state=%d, seq=%u", p.state, p.seq)
    dp_assert(p.next == NULL and p.prev == NULL, "a pack that is given back is in no list: seq=%u", p.seq)
    dp_assert(not p.timer.armed, "a pack that is given back has no timer: due_us=%ld, seq=%u", p.timer.due_us, p.seq)
    dp_assert(p.asked_more == NULL, "a pack that is given back has no attempts: n_asked=%d, seq=%u", p.n_asked, p.seq)
    if p.pack_result != NULL:
        pack_result_release(p.pack_result)
        p.pack_result = NULL
    if p.parts != NULL:
        parts_release(p.parts)
        p.parts = NULL
    free(p.error_text)
    p.error_text = NULL
    pool_uncount(pool, p)
    pthread_mutex_lock(&pool.lock)
    _return(pool, p)
    kept = pool.spare_bytes + cost
    if kept <= pool.max_bytes and atomic_load(&pool.in_use) + kept <= pool.most:
        p.next = pool.spare[c]
        pool.spare[c] = p
        relaxed_store(&pool.spare_bytes, kept)
        keep = True
    pthread_mutex_unlock(&pool.lock)
    if not keep:
        free(p.buf)
        free(p)


cdef void pack_fit(PackPool* pool, Pack* p, size_t tail) noexcept nogil:
    """Shrink the buffer to the items and ``tail`` bytes if it is much larger.  Locality: owner."""
    cdef size_t need = p.head + p.body_n + tail
    if p.cap > pack_loose(need) and pack_grow(p, need) == ST_OK:
        pool_count(pool, p)


cdef void pack_strip(Pack* p) noexcept nogil:
    """Release the buffer of a settled pack whose other fields are still needed.  Locality: owner."""
    free(p.buf)
    p.buf = NULL
    p.cap = 0
    p.frame = NULL


cdef int pack_solid(Pack* p, size_t tail) noexcept nogil:
    """Copy held bodies into the buffer, so that all items are in one piece; ST_OK or ST_NO_MEMORY (nothing changed).

    The new buffer has ``tail`` bytes behind the items; a frame that was made around them is gone.  The references stay
    until the pack is given back.  If a pool counts the pack, call `pool_count`.
    Locality: owner.
    """
    cdef const HeldBody* body
    cdef uint8_t* solid
    cdef size_t done = 0, at = p.head, cap
    cdef uint32_t i
    if pack_apart(p) == 0:
        return ST_OK
    cap = p.head + pack_items(p) + tail
    solid = <uint8_t*>malloc(cap)
    if solid == NULL:
        return ST_NO_MEMORY
    body = held_bodies(p.held)
    for i in range(p.held.gaps):
        memcpy(solid + at, p.buf + p.head + done, body[i].at - done)
        at += body[i].at - done
        done = body[i].at
        memcpy(solid + at, body[i].p, body[i].n)
        at += body[i].n
    memcpy(solid + at, p.buf + p.head + done, p.body_n - done)
    p.body_n = pack_items(p)
    p.held.gaps = 0
    p.held.bytes = 0
    free(p.buf)
    p.buf = solid
    p.cap = cap
    p.frame = NULL
    return ST_OK


cdef bint pack_hold(Pack* p) noexcept nogil:
    """Claim ``p`` for its executor; False when a sender has given it up.  Locality: executor."""
    return atomic_replace(&p.claim, CL_FREE, CL_HELD) or atomic_load(&p.claim) != CL_DROPPED


cdef void pack_let_go(Pack* p) noexcept nogil:
    """Let senders claim ``p`` again; no byte of it was written.  Locality: executor."""
    if atomic_load(&p.claim) == CL_HELD:
        atomic_store(&p.claim, CL_FREE)


cdef size_t room_for(const Pack* p, size_t extra) noexcept nogil:
    """Return the size of a buffer with room for ``extra`` bytes behind the items, and for growth.  Locality: owner."""
    cdef size_t need = p.head + p.body_n + extra
    cdef size_t cap
    if need > LARGE:
        return (need + need // 4 + PAGE - 1) // PAGE * PAGE    # geometric growth, but less than doubling
    cap = p.cap if p.cap >= FIRST_CAP else FIRST_CAP
    while cap < need:
        cap *= 2
    return cap


cdef int pack_room(Pack* p, size_t extra) noexcept nogil:
    """Make room for ``extra`` bytes behind the items; ST_OK or ST_NO_MEMORY.  Locality: owner."""
    return ST_OK if p.head + p.body_n + extra <= p.cap else pack_grow(p, room_for(p, extra))


cdef int pack_grow(Pack* p, size_t cap) noexcept nogil:
    """Give ``p`` a buffer of ``cap`` bytes, enough for its items; ST_OK or ST_NO_MEMORY.  Locality: owner."""
    cdef uint8_t* grown
    dp_assert(cap >= p.head + p.body_n, "the buffer holds the items: cap=%zu, head=%zu, body_n=%zu",
              cap, p.head, p.body_n)
    grown = <uint8_t*>realloc(p.buf, cap)
    if grown == NULL:
        return ST_NO_MEMORY
    p.buf = grown
    p.cap = cap
    return ST_OK


cdef PackResult* pack_result_new() noexcept nogil:
    """Return a pending result with one reference, or NULL.  Locality: any thread."""
    cdef PackResult* v = <PackResult*>calloc(1, sizeof(PackResult))
    if v != NULL:
        v.refs = 1
    return v


cdef void pack_result_release(PackResult* v) noexcept nogil:
    """Drop one reference.  Locality: any thread."""
    dp_assert(atomic_load(&v.refs) > 0, "refs > 0: refs=%ld, seq=%u", v.refs, v.seq)
    if atomic_add(&v.refs, -1) == 0:
        if v.parts != NULL:
            parts_release(v.parts)
        free(v)
