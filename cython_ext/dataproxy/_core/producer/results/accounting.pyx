"""Counts of what became of every message, and the waits for it.

``accepted`` and ``open`` are in the batcher under its lock; all counts after the seal are here, under
``Accounting.lock`` ("lock" below).  A message is moved from one to the other while both locks are held.  So at any
moment, exactly, ``accepted = open + in_flight + delivered + sent + failed + expired + dropped``.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset, strncpy
from posix.time cimport CLOCK_MONOTONIC, timespec

from dataproxy._core.base.hist cimport Hist, hist_add
from dataproxy._core.pack.pack cimport (
    CL_DROPPED, CL_FREE, CL_SENT, OUT_DELIVERED, OUT_DROPPED, OUT_EXPIRED, OUT_MIXED, OUT_PENDING, OUT_SENT, PK_SETTLED,
    Pack, PackResult,
)
from dataproxy._core.pack.parts cimport Part, parts_keep
from dataproxy._core.producer.aio.loopqueue cimport LoopWait, waits_ring, waits_ring_due
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, atomic_store, relaxed_add, relaxed_load
from dataproxy._core.plat.clock cimport now_us as clock_us
from dataproxy._core.plat.sched cimport sched_yield
from dataproxy._core.plat.thread cimport (
    pthread_cond_destroy, pthread_cond_init, pthread_cond_timedwait, pthread_condattr_destroy,
    pthread_condattr_init, pthread_condattr_setclock, pthread_condattr_t, pthread_mutex_destroy, pthread_mutex_init,
    pthread_mutex_lock, pthread_mutex_unlock,
)


cdef void accounting_open(Accounting* k) noexcept nogil:
    """Open empty accounting.  Locality: the producer's creator."""
    cdef pthread_condattr_t attr
    cdef int i
    memset(k, 0, sizeof(Accounting))
    pthread_mutex_init(&k.lock, NULL)
    pthread_condattr_init(&attr)
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC)
    pthread_cond_init(&k.changed, &attr)
    for i in range(RESULT_CONDS):
        pthread_cond_init(&k.result_conds[i], &attr)
    pthread_condattr_destroy(&attr)


cdef void accounting_close(Accounting* k) noexcept nogil:
    """Release the lock and the conditions.  Locality: the last user."""
    cdef int i
    pthread_cond_destroy(&k.changed)
    for i in range(RESULT_CONDS):
        pthread_cond_destroy(&k.result_conds[i])
    pthread_mutex_destroy(&k.lock)


cdef void accounting_sealed(Accounting* k, Pack* p) noexcept nogil:
    """Count a pack that leaves the batcher.  Locality: any thread.  Locks: batcher's held; takes lock."""
    pthread_mutex_lock(&k.lock)
    accounting_enter(k, p)
    pthread_mutex_unlock(&k.lock)


cdef void accounting_enter(Accounting* k, Pack* p) noexcept nogil:
    """Count a pack that leaves the batcher.  Locality: any thread.  Locks: the batcher's and lock are held."""
    dp_assert(p.serial == 0, "a pack is sealed once: serial=%ld, seq=%u", p.serial, p.seq)
    k.in_flight += p.count
    relaxed_add(&k.in_flight_packs, 1)
    k.sealed_packs += 1
    p.serial = k.sealed_packs
    p.older = k.newest
    p.newer = NULL
    if k.newest == NULL:
        k.oldest = p
    else:
        k.newest.newer = p
    k.newest = p
    if k.shed_from == NULL:
        k.shed_from = p


cdef void _count_code(Accounting* k, int code, int64_t messages) noexcept nogil:
    cdef int i
    for i in range(k.n_codes):
        if k.codes[i] == code:
            k.code_counts[i] += messages
            return
    if k.n_codes < CODES:
        k.codes[k.n_codes] = code
        k.code_counts[k.n_codes] = messages
        k.n_codes += 1
    else:
        k.code_counts[CODES - 1] += messages    # more codes than slots: the last slot counts all others


cdef void pack_result_fill(PackResult* v, const Pack* p, int64_t latency) noexcept nogil:
    """Write the result of ``p`` into the pack result that Deliveries read.  Locality: who settles it."""
    v.outcome = p.outcome
    v.code = p.code
    v.attempts = p.attempts
    v.maybe_delivered = p.outcome != OUT_DELIVERED and p.open_attempts > 0
    v.seq = p.seq
    memcpy(v.id, p.id, sizeof(v.id))
    v.settled_us = p.opened_us + latency
    v.latency_us = latency
    v.refused = p.refused
    if p.outcome == OUT_MIXED:
        v.parts = parts_keep(p.parts)
    memcpy(v.node, p.node, sizeof(v.node))
    if p.error_text != NULL:
        strncpy(v.text, p.error_text, sizeof(v.text) - 1)
    atomic_store(&v.done, 1)


cdef inline int _cond_of(const PackResult* v) noexcept nogil:
    """Return the condition at which threads wait for ``v``: the high bits of its address, well mixed."""
    return <int>((<uint64_t><uintptr_t>v * <uint64_t>0x9E3779B97F4A7C15) >> 58)


cdef void _collect(Accounting* k, PackResult* v) noexcept nogil:
    """Note who waits for a settled pack: event loops for the next wake, threads for the lock's release.

    Locks: lock is held.
    """
    cdef LoopWait* w = <LoopWait*>v.loop_waits
    cdef LoopWait* following
    cdef int cond = _cond_of(v)
    if k.result_waiters[cond]:
        k.result_signals |= <uint64_t>1 << cond
    v.loop_waits = NULL
    while w != NULL:
        following = w.next
        w.next = NULL
        if k.due == NULL:
            k.due = w
        else:
            k.last_due.next = w
        k.last_due = w
        w = following


cdef void _unlink(Accounting* k, Pack* p) noexcept nogil:
    dp_assert((p.older == NULL) == (k.oldest == p) and (p.newer == NULL) == (k.newest == p),
              "the pack has no result yet: serial=%ld, seq=%u", p.serial, p.seq)
    dp_assert(k.in_flight_packs >= 0 and k.in_flight >= k.in_flight_packs,
              "in_flight >= in_flight_packs >= 0: in_flight=%ld, in_flight_packs=%ld", k.in_flight, k.in_flight_packs)
    dp_assert(k.settled_packs + k.in_flight_packs == k.sealed_packs,
              "sealed_packs = settled_packs + in_flight_packs: %ld, %ld + %ld",
              k.sealed_packs, k.settled_packs, k.in_flight_packs)
    if k.shed_from == p:
        k.shed_from = p.newer
    if p.older == NULL:
        k.oldest = p.newer
    else:
        p.older.newer = p.newer
    if p.newer == NULL:
        k.newest = p.older
    else:
        p.newer.older = p.older


cdef inline void _count(
    Accounting* k, int outcome, int code, uint32_t messages, int64_t size, int64_t latency, bint maybe,
) noexcept nogil:
    """Count messages that share a result; ``size``: their charge in bytes; ``maybe``: they may have arrived."""
    if outcome == OUT_DELIVERED:
        k.delivered += messages
        k.delivered_bytes += size
        hist_add(&k.latency, latency, messages)
        return
    if outcome == OUT_SENT:
        k.sent += messages
        hist_add(&k.latency, latency, messages)
        return
    if outcome == OUT_EXPIRED:
        k.expired += messages
    else:
        k.failed += messages
    if maybe:
        k.maybe_delivered += messages
    _count_code(k, code, messages)


cdef void accounting_settle(Accounting* k, Pack* p, int64_t now_us) noexcept nogil:
    """Enter the final result of one pack.  Locality: executor.  Locks: lock is held by the caller."""
    cdef int64_t latency = now_us - p.opened_us
    cdef const Part* part
    cdef uint32_t i
    dp_assert(p.state == PK_SETTLED and p.outcome != OUT_PENDING,
              "a pack with a result is settled: state=%d, outcome=%d, seq=%u", p.state, p.outcome, p.seq)
    p.latency_us = latency
    k.in_flight -= p.count
    relaxed_add(&k.in_flight_packs, -1)
    k.settled_packs += 1
    if p.attempts > 1:
        k.resent += p.attempts - 1
    if p.outcome == OUT_DELIVERED:
        _count(k, OUT_DELIVERED, 0, p.count, <int64_t>p.charge, latency, False)
    elif p.outcome == OUT_MIXED:
        for i in range(p.parts.n_done):
            part = &p.parts.done[i]
            _count(k, part.outcome, part.code, part.n, part.bytes, latency, part.maybe_delivered)
    else:
        _count(k, p.outcome, p.code, p.count, 0, latency, p.open_attempts > 0)
    _unlink(k, p)
    if p.pack_result != NULL:
        pack_result_fill(p.pack_result, p, latency)
        _collect(k, p.pack_result)
    atomic_add(&k.released_messages, p.count)
    atomic_add(&k.released, <int64_t>p.charge)


cdef void accounting_turn(Accounting* k) noexcept nogil:
    """Let waiting senders try again, because memory was given back.  Locality: any thread.

    Locks: takes lock if any sender waits.
    """
    atomic_add(&k.turns, 1)
    if atomic_load(&k.awaiting):
        accounting_hold(k)
        accounting_wake(k)
        accounting_let_go(k)


cdef Pack* accounting_unsent(Accounting* k, const Pack* after) noexcept nogil:
    """Return the oldest pack behind ``after`` (NULL: of all) that no executor has claimed, or NULL.

    Locality: any thread.
    Locks: lock is held.
    """
    cdef Pack* p = k.shed_from
    if after != NULL:
        p = after.newer
    else:
        while p != NULL and atomic_load(&p.claim) == CL_SENT:
            p = p.newer
        k.shed_from = p
    while p != NULL and atomic_load(&p.claim) != CL_FREE:
        p = p.newer                     # it is being written or settled at this moment
    return p


cdef void accounting_drop(Accounting* k, Pack* p, int code, int64_t now_us) noexcept nogil:
    """Enter the result of a sealed pack that the caller has claimed and gives up.

    Locality: any thread.
    Locks: lock is held.
    """
    cdef PackResult* v = p.pack_result
    dp_assert(atomic_load(&p.claim) == CL_DROPPED, "a pack that is given up was claimed: claim=%ld, seq=%u",
              p.claim, p.seq)
    p.latency_us = now_us - p.opened_us
    k.in_flight -= p.count
    relaxed_add(&k.in_flight_packs, -1)
    k.settled_packs += 1
    k.dropped += p.count
    p.shed = relaxed_load(&p.memory)    # its executor may be framing it at this moment
    atomic_add(&k.shed_bytes, p.shed)
    atomic_add(&k.shed_charge, <int64_t>p.charge)
    _count_code(k, code, p.count)
    _unlink(k, p)
    if v != NULL:
        v.outcome = OUT_DROPPED
        v.code = code
        v.seq = p.seq
        v.latency_us = p.latency_us
        v.settled_us = now_us
        atomic_store(&v.done, 1)
        _collect(k, v)
    atomic_add(&k.released_messages, p.count)
    atomic_add(&k.released, <int64_t>p.charge)


cdef void accounting_put_away(Accounting* k, Pack* p) noexcept nogil:
    """Note that the last reference to a pack that was given up is gone.  Locality: any thread.  Locks: lock is held."""
    dp_assert(p.shed <= atomic_load(&k.shed_bytes), "shed <= shed_bytes: shed=%ld, shed_bytes=%ld",
              p.shed, k.shed_bytes)
    atomic_add(&k.shed_bytes, -p.shed)
    atomic_add(&k.shed_charge, -<int64_t>p.charge)
    p.shed = 0


cdef void accounting_refuse(Accounting* k, int64_t messages, int code) noexcept nogil:
    """Count messages that were accepted and dropped in one call, and never charged.

    Locality: any thread.
    Locks: the batcher's is held; takes lock.
    """
    pthread_mutex_lock(&k.lock)
    k.dropped += messages
    _count_code(k, code, messages)
    atomic_add(&k.released_messages, messages)
    pthread_mutex_unlock(&k.lock)


cdef int64_t accounting_mark(Accounting* k) noexcept nogil:
    """Return the largest serial of a pack sealed so far.

    Locality: any thread.
    Locks: takes lock.
    """
    cdef int64_t mark
    pthread_mutex_lock(&k.lock)
    mark = k.sealed_packs
    pthread_mutex_unlock(&k.lock)
    return mark


cdef void _sleep(Accounting* k, pthread_cond_t* at, int64_t* waiters, int64_t deadline_us) noexcept nogil:
    cdef timespec t
    t.tv_sec = deadline_us // 1000000
    t.tv_nsec = (deadline_us % 1000000) * 1000
    waiters[0] += 1
    pthread_cond_timedwait(at, &k.lock, &t)
    waiters[0] -= 1


cdef bint accounting_wait_mark(Accounting* k, int64_t mark, int64_t deadline_us) noexcept nogil:
    """Wait until all packs up to the serial ``mark`` are settled; False at the deadline.

    Locality: any thread.
    Locks: takes lock.
    """
    cdef bint settled
    pthread_mutex_lock(&k.lock)
    while k.oldest != NULL and k.oldest.serial <= mark and clock_us() < deadline_us:
        k.least_mark = mark if k.mark_waiters == 0 else min(k.least_mark, mark)
        k.mark_waiters += 1
        _sleep(k, &k.changed, &k.waiters, deadline_us)
        k.mark_waiters -= 1
    settled = k.oldest == NULL or k.oldest.serial > mark
    pthread_mutex_unlock(&k.lock)
    return settled


cdef bint accounting_idle(Accounting* k) noexcept nogil:
    """Tell whether every sealed pack is settled.  Locality: any thread.  Locks: takes lock."""
    cdef bint idle
    pthread_mutex_lock(&k.lock)
    idle = k.in_flight_packs == 0
    pthread_mutex_unlock(&k.lock)
    return idle


cdef int64_t accounting_lost(Accounting* k) noexcept nogil:
    """Return how many messages were neither delivered nor sent.  Locality: any thread.  Locks: takes lock."""
    cdef int64_t lost
    pthread_mutex_lock(&k.lock)
    lost = k.failed + k.expired + k.dropped
    pthread_mutex_unlock(&k.lock)
    return lost


cdef bint accounting_wait_room(Accounting* k, int64_t seen, int64_t deadline_us) noexcept nogil:
    """Wait until ``turns`` is not ``seen`` any more: there may be room; False at the deadline.

    Locality: application thread.
    Locks: takes lock.
    """
    cdef bint changed
    pthread_mutex_lock(&k.lock)
    atomic_store(&k.awaiting, 1)        # before ``turns`` is read: a thread that changes ``turns`` reads this after it
    while atomic_load(&k.turns) == seen and clock_us() < deadline_us:
        _sleep(k, &k.changed, &k.waiters, deadline_us)
        atomic_store(&k.awaiting, 1)
    changed = atomic_load(&k.turns) != seen
    pthread_mutex_unlock(&k.lock)
    return changed


cdef bint _poll_result(const PackResult* v, int64_t deadline_us) noexcept nogil:
    """Look until ``v`` is final, without sleeping; threads that want the core get it between two looks."""
    while not atomic_load(&v.done):
        if clock_us() >= deadline_us:
            return False
        sched_yield()
    return True


cdef bint accounting_wait_result(Accounting* k, PackResult* v, int64_t deadline_us) noexcept nogil:
    """Wait until ``v`` is final; False at the deadline.  Locality: any thread.  Locks: takes lock."""
    cdef int cond = _cond_of(v)
    cdef bint done
    if k.busy_poll_us and _poll_result(v, min(deadline_us, clock_us() + k.busy_poll_us)):
        return True
    pthread_mutex_lock(&k.lock)
    while not atomic_load(&v.done) and clock_us() < deadline_us:
        _sleep(k, &k.result_conds[cond], &k.result_waiters[cond], deadline_us)
    done = atomic_load(&v.done) != 0
    pthread_mutex_unlock(&k.lock)
    return done


cdef void accounting_wake(Accounting* k) noexcept nogil:
    """Wake event loops, and waiting threads when the lock is released, and let waiting senders try again.

    Who waits for a serial sleeps until it is reached: with one message in each pack, the thread would otherwise wake up
    for each of them.  So does who waits for a result (``_collect``).
    Locality: executor; a sender that gives up packs.  Locks: lock is held by ``accounting_hold``; takes the queues'.
    """
    atomic_add(&k.turns, 1)
    atomic_store(&k.awaiting, 0)
    k.rings = k.waiters > k.mark_waiters or (
        k.mark_waiters > 0 and (k.oldest == NULL or k.oldest.serial > k.least_mark))
    if k.due != NULL:
        waits_ring(&k.due)
    if k.loop_waits != NULL:
        waits_ring_due(&k.loop_waits, k.oldest.serial - 1 if k.oldest != NULL else k.sealed_packs)


cdef bint accounting_await_result(Accounting* k, LoopWait* w) noexcept nogil:
    """Wake the loop of ``w`` when its pack is settled; False, and ``w`` stays the caller's, if it is settled already.

    Locality: any thread.  Locks: takes lock.
    """
    cdef bint pending
    pthread_mutex_lock(&k.lock)
    pending = atomic_load(&w.pack_result.done) == 0
    if pending:
        w.next = <LoopWait*>w.pack_result.loop_waits
        w.pack_result.loop_waits = w
    pthread_mutex_unlock(&k.lock)
    return pending


cdef bint _await(Accounting* k, LoopWait* w, bint pending) noexcept nogil:
    """Add a wait of the accounting if ``pending``, and release the lock, which the caller has taken."""
    if pending:
        w.next = k.loop_waits
        k.loop_waits = w
    pthread_mutex_unlock(&k.lock)
    return pending


cdef bint accounting_await_room(Accounting* k, LoopWait* w, int64_t seen) noexcept nogil:
    """Wake the loop of ``w`` when ``turns`` is not ``seen``; False, and ``w`` stays the caller's, if it is so already.

    Locality: any thread.  Locks: takes lock.
    """
    pthread_mutex_lock(&k.lock)
    atomic_store(&k.awaiting, 1)
    return _await(k, w, atomic_load(&k.turns) == seen)


cdef bint accounting_await_mark(Accounting* k, LoopWait* w) noexcept nogil:
    """Wake the loop of ``w`` when all packs up to its mark are settled; False if they are: ``w`` stays the caller's.

    Locality: any thread.  Locks: takes lock.
    """
    pthread_mutex_lock(&k.lock)
    return _await(k, w, k.oldest != NULL and k.oldest.serial <= w.mark)


cdef void accounting_counts(Accounting* k, AccountingCounts* out) noexcept nogil:
    """Copy all counts, read at one moment.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&k.lock)
    out.in_flight = k.in_flight
    out.in_flight_packs = k.in_flight_packs
    out.delivered = k.delivered
    out.sent = k.sent
    out.failed = k.failed
    out.expired = k.expired
    out.dropped = k.dropped
    out.maybe_delivered = k.maybe_delivered
    out.delivered_bytes = k.delivered_bytes
    out.settled_packs = k.settled_packs
    out.resent = k.resent
    out.released = atomic_load(&k.released)
    memcpy(out.codes, k.codes, sizeof(k.codes))
    memcpy(out.code_counts, k.code_counts, sizeof(k.code_counts))
    out.n_codes = k.n_codes
    memcpy(&out.latency, &k.latency, sizeof(Hist))
    pthread_mutex_unlock(&k.lock)


cdef void accounting_latency(Accounting* k, Hist* out) noexcept nogil:
    """Copy the histogram of latencies.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&k.lock)
    memcpy(out, &k.latency, sizeof(Hist))
    pthread_mutex_unlock(&k.lock)


cdef int accounting_watch(Accounting* k, PackResult* v) noexcept nogil:
    """Ask for one more call when ``v`` is final; a WatchState.  Locality: GIL.  Locks: takes lock."""
    cdef bint done
    cdef int found = WATCH_MORE
    pthread_mutex_lock(&k.lock)
    done = atomic_load(&v.done) != 0
    if done and not v.watched:
        found = WATCH_LATE
    else:
        v.watches += 1
        if not v.watched:
            v.watched = True
            found = WATCH_FIRST
        elif done:
            found = WATCH_QUEUED
    pthread_mutex_unlock(&k.lock)
    return found


cdef int accounting_unwatch(Accounting* k, PackResult* v) noexcept nogil:
    """Return how many calls were asked for; from here on `accounting_watch` finds WATCH_LATE, as ``v`` is final.

    Locality: the dispatcher, GIL.  Locks: takes lock.
    """
    cdef int watches
    pthread_mutex_lock(&k.lock)
    v.watched = False
    watches = v.watches
    v.watches = 0
    pthread_mutex_unlock(&k.lock)
    return watches
