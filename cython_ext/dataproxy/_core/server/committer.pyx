"""The committer's queue and loop.

Locks: none, except where a function says otherwise.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, timespec

from dataproxy._core.base.status cimport ST_CLOSED, ST_FULL, ST_NO_MEMORY, ST_OK
from dataproxy._core.server.entries cimport ENTRY_MESSAGES, Entry, EntryDone, StoreOps, entry_footprint
from dataproxy._core.server.store.stages cimport STAGE_ANSWERED, STAGE_COMMITTED, STAGE_TAKEN, stage_passed
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_store, relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.plat.clock cimport now_us
from dataproxy._core.plat.thread cimport (
    pthread_cond_broadcast,
    pthread_cond_destroy,
    pthread_cond_init,
    pthread_cond_signal,
    pthread_cond_timedwait,
    pthread_condattr_destroy,
    pthread_condattr_init,
    pthread_condattr_setclock,
    pthread_condattr_t,
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)

cdef enum:
    LOOK_AGAIN_US = 1000000     # of a wait for the store that nobody has ended


ctypedef struct Share:      # entries of a commit that one origin gets back
    void* origin
    Entry* head
    Entry* tail


cdef int committer_init(Committer* c, const StoreOps* ops, void* store, EntryDone done,
                        const CommitterLimits* limits) noexcept nogil:
    """Make an idle committer.  Locality: owner."""
    cdef pthread_condattr_t attr
    cdef int failed
    memset(c, 0, sizeof(Committer))
    c.ops = ops
    c.store = store
    c.done = done
    c.limits = limits[0]
    pthread_condattr_init(&attr)
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC)
    failed = pthread_mutex_init(&c.mutex, NULL)
    if failed == 0:
        failed = pthread_cond_init(&c.cond, &attr)
    pthread_condattr_destroy(&attr)
    return ST_NO_MEMORY if failed else ST_OK


cdef void committer_free(Committer* c) noexcept nogil:
    """Release a committer whose loop has ended.  Locality: owner."""
    pthread_mutex_destroy(&c.mutex)
    pthread_cond_destroy(&c.cond)


cdef int committer_submit(Committer* c, Entry* chain) noexcept nogil:
    """Queue a chain for the next commit; ST_OK, ST_FULL or ST_CLOSED.

    A chain larger than the limit is taken if no other entry is held, and one with a taker of its own always: such are
    small and few.
    Locality: any thread.
    Locks: takes mutex.
    """
    cdef Entry* tail = chain
    cdef size_t size = 0
    cdef int status = ST_OK
    cdef bint first = False
    if chain == NULL:
        return ST_OK
    size = entry_footprint(chain)
    while tail.next != NULL:
        tail = tail.next
        size += entry_footprint(tail)
    pthread_mutex_lock(&c.mutex)
    dp_assert((c.head == NULL) == (c.tail == NULL), "a queue with a first entry has a last one: held_bytes=%zu",
              c.held_bytes)
    if c.stopping:
        status = ST_CLOSED
    elif chain.back == NULL and c.held_bytes and c.held_bytes + size > c.limits.queue_bytes:
        status = ST_FULL
        _wait_for_room(c, chain.origin)
    else:
        c.held_bytes += size
        first = c.head == NULL
        if first:
            c.head = chain
        else:
            c.tail.next = chain
        c.tail = tail
        relaxed_store(&c.queued_bytes, <int64_t>c.held_bytes)
    pthread_mutex_unlock(&c.mutex)
    if first:
        pthread_cond_signal(&c.cond)    # behind the lock, which the committer takes as soon as it wakes up
    return status


cdef inline void _notice(Committer* c, const Entry* chain) noexcept nogil:
    """Tell of a chain that was appended.  Locality: who appended it."""
    cdef int i
    for i in range(<int>COMMITTER_NOTICES):
        if c.noticed[i] != NULL:
            c.noticed[i](c.notice_context[i], chain)


cdef bint committer_commit(Committer* c, Entry* chain) noexcept nogil:
    """Commit a chain on the calling thread if nothing else waits or is in the store; false: nothing has happened.

    A wake-up of the committing thread and one of the loop cost more than the append of a round to memory.
    Locality: any thread.
    Locks: takes mutex, but not during calls of the store.
    """
    cdef Entry* entry = chain
    cdef bint others
    if not c.ops.brief:
        return False
    pthread_mutex_lock(&c.mutex)
    # Not before the loop runs or after it was stopped: then nobody would be woken for what comes meanwhile.
    others = c.busy or c.wanted or c.held_bytes > 0 or c.stopping or relaxed_load(&c.running) == 0
    if not others:
        c.busy = True
    pthread_mutex_unlock(&c.mutex)
    if others:
        return False
    stage_passed(STAGE_TAKEN)
    c.ops.append(c.store, chain)
    stage_passed(STAGE_COMMITTED)
    relaxed_add(&c.commits, 1)
    while entry != NULL:
        _count(c, entry)
        entry = entry.next
    _leave(c)
    _notice(c, chain)
    return True


cdef bint committer_step(Committer* c, int64_t until_us) noexcept nogil:
    """Make one commit of the waiting entries, or wait for the first until ``until_us``; false without a commit.

    Locality: the committing thread.
    Locks: takes mutex, but not during calls of the store and of ``done``.
    """
    cdef size_t size = 0
    cdef Entry* chain = _take(c, until_us, &size)
    if chain == NULL:
        return False
    stage_passed(STAGE_TAKEN)
    c.ops.append(c.store, chain)
    _leave(c)
    _notice(c, chain)
    relaxed_add(&c.commits, 1)
    stage_passed(STAGE_COMMITTED)
    _hand_back(c, chain)
    stage_passed(STAGE_ANSWERED)
    _release(c, size)
    return True


cdef void committer_run(Committer* c) noexcept nogil:
    """Commit until ``committer_stop``; then commit what is still queued, and return.

    Locality: the committing thread, the only one that touches a store that may wait.
    Locks: takes mutex, but not during calls of the store and of ``done``.
    """
    cdef int64_t retain_at = now_us()
    atomic_store(&c.running, 1)
    while committer_step(c, retain_at) or not _is_stopping(c):
        if now_us() >= retain_at and _retain(c) == 0:
            retain_at = now_us() + c.limits.retain_every_ms * 1000
    pthread_mutex_lock(&c.mutex)
    _enter(c)           # whoever committed at once has left, and nobody comes after `stopping`
    c.busy = False
    pthread_mutex_unlock(&c.mutex)
    atomic_store(&c.running, 0)


cdef int64_t _retain(Committer* c) noexcept nogil:
    """Let the store drop what is past its limits; returns the number of entries.

    Locality: committing thread.
    Locks: takes mutex, but not during the call of the store.
    """
    cdef int64_t dropped
    pthread_mutex_lock(&c.mutex)
    _enter(c)
    pthread_mutex_unlock(&c.mutex)
    dropped = c.ops.retain(c.store)
    _leave(c)
    return dropped


cdef void _enter(Committer* c) noexcept nogil:
    """Wait until the store is free, and take it.  Locality: committing thread.  Locks: the caller holds mutex."""
    cdef timespec deadline
    c.wanted = True
    while c.busy:
        _set_deadline(&deadline, now_us() + LOOK_AGAIN_US)
        pthread_cond_timedwait(&c.cond, &c.mutex, &deadline)
    c.wanted = False
    c.busy = True


cdef void _set_deadline(timespec* deadline, int64_t at_us) noexcept nogil:
    """Set a time of the monotonic clock.  Locality: any thread."""
    deadline.tv_sec = at_us // 1000000
    deadline.tv_nsec = (at_us % 1000000) * 1000


cdef void _leave(Committer* c) noexcept nogil:
    """Free the store, and wake the committing thread if it may wait for that.

    Locality: the thread that is in the store.
    Locks: takes mutex.
    """
    cdef bint wanted
    pthread_mutex_lock(&c.mutex)
    dp_assert(c.busy, "who leaves the store was in it: held_bytes=%zu", c.held_bytes)
    c.busy = False
    wanted = c.wanted
    pthread_mutex_unlock(&c.mutex)
    if wanted:
        pthread_cond_signal(&c.cond)


cdef void committer_stop(Committer* c) noexcept nogil:
    """Refuse further chains and let the loop end when the queue is empty.

    Locality: any thread.
    Locks: takes mutex.
    """
    pthread_mutex_lock(&c.mutex)
    c.stopping = True
    pthread_cond_broadcast(&c.cond)
    pthread_mutex_unlock(&c.mutex)


cdef bint _is_stopping(Committer* c) noexcept nogil:
    """Tell whether the loop has to end.  Locality: any thread.  Locks: takes mutex."""
    cdef bint stopping
    pthread_mutex_lock(&c.mutex)
    stopping = c.stopping and c.head == NULL
    pthread_mutex_unlock(&c.mutex)
    return stopping


cdef void _wait_for_room(Committer* c, void* origin) noexcept nogil:
    """Remember an origin that was refused.  Locality: any thread.  Locks: the caller holds mutex."""
    cdef int i
    for i in range(c.waiting_count):
        if c.waiting[i] == origin:
            return
    if c.waiting_count < COMMITTER_ORIGINS:
        c.waiting[c.waiting_count] = origin
        c.waiting_count += 1


cdef Entry* _take(Committer* c, int64_t until_us, size_t* size) noexcept nogil:
    """Take up to one commit of entries, and the store, waiting for the first until ``until_us``; NULL if none came.

    Locality: committing thread.
    Locks: takes mutex.
    """
    cdef timespec deadline
    cdef Entry* chain
    cdef Entry* last
    _set_deadline(&deadline, until_us)
    size[0] = 0
    pthread_mutex_lock(&c.mutex)
    while c.head == NULL and not c.stopping:
        if pthread_cond_timedwait(&c.cond, &c.mutex, &deadline) != 0:
            break
    if c.head != NULL:
        _enter(c)
    chain = c.head
    if chain != NULL:
        last = chain
        size[0] = entry_footprint(last)
        while last.next != NULL and size[0] + entry_footprint(last.next) <= c.limits.commit_bytes:
            last = last.next
            size[0] += entry_footprint(last)
        c.head = last.next
        if c.head == NULL:
            c.tail = NULL
        last.next = NULL
    pthread_mutex_unlock(&c.mutex)
    return chain


cdef void _release(Committer* c, size_t size) noexcept nogil:
    """Release room and call the origins that wait for it.  Locality: committing thread.  Locks: takes mutex."""
    cdef void* waiting[COMMITTER_ORIGINS]
    cdef int n
    cdef int i
    pthread_mutex_lock(&c.mutex)
    dp_assert(c.held_bytes >= size, "held_bytes covers a commit: held_bytes=%zu, size=%zu", c.held_bytes, size)
    c.held_bytes -= size
    relaxed_store(&c.queued_bytes, <int64_t>c.held_bytes)
    n = c.waiting_count
    for i in range(n):
        waiting[i] = c.waiting[i]
    c.waiting_count = 0
    pthread_mutex_unlock(&c.mutex)
    for i in range(n):
        c.done(waiting[i], NULL)


cdef void _hand_back(Committer* c, Entry* chain) noexcept nogil:
    """Give each origin its entries, in their order.  Locality: committing thread."""
    cdef Share shares[COMMITTER_ORIGINS]
    cdef Share* share
    cdef Entry* entry
    cdef int n = 0
    cdef int i
    while chain != NULL:
        entry = chain
        chain = entry.next
        entry.next = NULL
        _count(c, entry)
        share = NULL
        for i in range(n):
            if shares[i].origin == entry.origin:
                share = &shares[i]
                break
        if share != NULL:
            share.tail.next = entry
            share.tail = entry
            continue
        if n == COMMITTER_ORIGINS:
            _hand_out(c, shares, n)
            n = 0
        shares[n].origin = entry.origin
        shares[n].head = entry
        shares[n].tail = entry
        n += 1
    _hand_out(c, shares, n)


cdef void _hand_out(Committer* c, Share* shares, int n) noexcept nogil:
    """Give each share to who takes it back.  Locality: committing thread."""
    cdef EntryDone back
    cdef int i
    for i in range(n):
        back = shares[i].head.back
        if back == NULL:
            back = c.done
        back(shares[i].origin, shares[i].head)


cdef inline void _count(Committer* c, const Entry* entry) noexcept nogil:
    """Count what came of an entry.  Locality: who appended it."""
    relaxed_add(&c.refused if entry.status != ST_OK else &c.entries, entry.kind == ENTRY_MESSAGES)
