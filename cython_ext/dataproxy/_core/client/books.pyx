"""Counts of every message's fate, and the waits for it.

``accepted`` and ``open`` live with the batcher under its lock; everything after the seal lives here.  A
message is moved from one to the other with both locks held, so that at any moment, exactly,
``accepted = open + in_flight + delivered + failed + expired``.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset, strncpy
from posix.time cimport CLOCK_MONOTONIC, timespec

from dataproxy._core.base.hist cimport hist_add
from dataproxy._core.base.pack cimport OUT_DELIVERED, OUT_EXPIRED, Pack, Verdict
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, atomic_store
from dataproxy._core.plat.clock cimport now_us as clock_us
from dataproxy._core.plat.thread cimport (
    pthread_cond_broadcast, pthread_cond_destroy, pthread_cond_init, pthread_cond_timedwait, pthread_condattr_destroy,
    pthread_condattr_init, pthread_condattr_setclock, pthread_condattr_t, pthread_mutex_destroy, pthread_mutex_init,
    pthread_mutex_lock, pthread_mutex_unlock,
)


cdef void books_open(Books* k) noexcept nogil:
    """Open empty books.  Locality: the producer's creator.  Locks: none."""
    cdef pthread_condattr_t attr
    memset(k, 0, sizeof(Books))
    pthread_mutex_init(&k.lock, NULL)
    pthread_condattr_init(&attr)
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC)
    pthread_cond_init(&k.changed, &attr)
    pthread_condattr_destroy(&attr)


cdef void books_close(Books* k) noexcept nogil:
    """Release the lock and the condition.  Locality: the last user.  Locks: none."""
    pthread_cond_destroy(&k.changed)
    pthread_mutex_destroy(&k.lock)


cdef void books_sealed(Books* k, Pack* p) noexcept nogil:
    """Count a pack that leaves the batcher.  Locality: any thread.  Locks: batcher's held; takes lock."""
    pthread_mutex_lock(&k.lock)
    k.in_flight += p.count
    k.in_flight_packs += 1
    p.generation = k.newest_generation
    k.by_generation[p.generation % GENERATIONS] += 1
    pthread_mutex_unlock(&k.lock)


cdef void _count_code(Books* k, Pack* p) noexcept nogil:
    cdef int i
    for i in range(k.n_codes):
        if k.codes[i] == p.code:
            k.code_counts[i] += p.count
            return
    if k.n_codes < CODES:
        k.codes[k.n_codes] = p.code
        k.code_counts[k.n_codes] = p.count
        k.n_codes += 1
    else:
        k.code_counts[CODES - 1] += p.count     # more kinds than slots: the last one gathers the rest


cdef void _pronounce(Pack* p, int64_t latency) noexcept nogil:
    """Write the verdict that Deliveries read."""
    cdef Verdict* v = p.verdict
    v.outcome = p.outcome
    v.code = p.code
    v.attempts = p.attempts
    v.maybe_delivered = p.outcome != OUT_DELIVERED and p.open_attempts > 0
    v.seq = p.seq
    v.latency_us = latency
    memcpy(v.node, p.node, sizeof(v.node))
    if p.error_text != NULL:
        strncpy(v.text, p.error_text, sizeof(v.text) - 1)
    atomic_store(&v.done, 1)


cdef void books_settle(Books* k, Pack* p, int64_t now_us) noexcept nogil:
    """Enter the final result of one pack.  Locality: executor.  Locks: lock is held by the caller."""
    cdef int64_t latency = now_us - p.opened_us
    k.in_flight -= p.count
    k.in_flight_packs -= 1
    k.settled_packs += 1
    if p.attempts > 1:
        k.resent += p.attempts - 1
    if p.outcome == OUT_DELIVERED:
        k.delivered += p.count
        k.delivered_bytes += <int64_t>p.charge
        hist_add(&k.latency, latency, p.count)
    elif p.outcome == OUT_EXPIRED:
        k.expired += p.count
        _count_code(k, p)
    else:
        k.failed += p.count
        _count_code(k, p)
    k.by_generation[p.generation % GENERATIONS] -= 1
    while k.oldest_generation < k.newest_generation and k.by_generation[k.oldest_generation % GENERATIONS] == 0:
        k.oldest_generation += 1
    if p.verdict != NULL:
        _pronounce(p, latency)
    atomic_add(&k.released_messages, p.count)
    atomic_add(&k.released, <int64_t>p.charge)


cdef int64_t books_new_generation(Books* k) noexcept nogil:
    """Begin a generation; return the one that ended (all sealed so far are in it or before it).

    Locality: any thread.  Locks: batcher's held; takes lock.  With too many unfinished ones the newest
    goes on, so that a flush may wait for a little more than it must.
    """
    cdef int64_t ended
    pthread_mutex_lock(&k.lock)
    ended = k.newest_generation
    if k.by_generation[ended % GENERATIONS] == 0:
        ended -= 1              # nothing was sealed since the last one: it serves again
    elif k.newest_generation - k.oldest_generation < GENERATIONS - 1:
        k.newest_generation += 1
    while k.oldest_generation < k.newest_generation and k.by_generation[k.oldest_generation % GENERATIONS] == 0:
        k.oldest_generation += 1
    pthread_mutex_unlock(&k.lock)
    return ended


cdef void _wait(Books* k, int64_t deadline_us) noexcept nogil:
    cdef timespec t
    t.tv_sec = deadline_us // 1000000
    t.tv_nsec = (deadline_us % 1000000) * 1000
    k.waiters += 1
    pthread_cond_timedwait(&k.changed, &k.lock, &t)
    k.waiters -= 1


cdef bint books_wait_generation(Books* k, int64_t generation, int64_t deadline_us) noexcept nogil:
    """Wait until all packs up to ``generation`` are settled; False at the deadline.

    Locality: application thread.
    Locks: takes lock.
    """
    cdef bint settled
    pthread_mutex_lock(&k.lock)
    while k.oldest_generation <= generation and k.in_flight_packs > 0 and clock_us() < deadline_us:
        if generation == k.newest_generation and generation - k.oldest_generation < GENERATIONS - 1:
            k.newest_generation += 1        # there was no room for it when the wait began
            continue
        _wait(k, deadline_us)
    settled = k.oldest_generation > generation or k.in_flight_packs == 0
    pthread_mutex_unlock(&k.lock)
    return settled


cdef bint books_idle(Books* k) noexcept nogil:
    """Tell whether nothing is sealed and unsettled.  Locality: any thread.  Locks: takes lock."""
    cdef bint idle
    pthread_mutex_lock(&k.lock)
    idle = k.in_flight_packs == 0
    pthread_mutex_unlock(&k.lock)
    return idle


cdef bint books_wait_room(Books* k, int64_t seen, int64_t deadline_us) noexcept nogil:
    """Wait until something was released since ``seen``; False at the deadline.

    Locality: application thread.
    Locks: takes lock.
    """
    cdef bint changed
    pthread_mutex_lock(&k.lock)
    while atomic_load(&k.released) == seen and clock_us() < deadline_us:
        _wait(k, deadline_us)
    changed = atomic_load(&k.released) != seen
    pthread_mutex_unlock(&k.lock)
    return changed


cdef bint books_wait_verdict(Books* k, Verdict* v, int64_t deadline_us) noexcept nogil:
    """Wait until ``v`` is final; False at the deadline.  Locality: any thread.  Locks: takes lock."""
    cdef bint done
    pthread_mutex_lock(&k.lock)
    while not atomic_load(&v.done) and clock_us() < deadline_us:
        _wait(k, deadline_us)
    done = atomic_load(&v.done) != 0
    pthread_mutex_unlock(&k.lock)
    return done


cdef void books_wake(Books* k) noexcept nogil:
    """Wake every waiter, if there is one.  Locality: executor.  Locks: lock is held by the caller."""
    if k.waiters > 0:
        pthread_cond_broadcast(&k.changed)
