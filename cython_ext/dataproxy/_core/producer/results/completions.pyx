"""Completion queue: executors put packs in; the dispatcher takes some of them and only then takes the GIL.

The memory of what waits here is bounded (docs/decisions/0012-memory.md): either senders are held back, or the oldest
reports are only counted and not made.  In this module "lock" is ``Completions.lock``.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset, strcmp, strncpy
from posix.time cimport CLOCK_MONOTONIC, timespec

from dataproxy._core.pack.pack cimport (
    OUT_EXPIRED, OUT_FAILED, OUT_MIXED, Pack, PackList, list_pop, list_push, list_remove, pack_memory, pack_strip,
    pool_give,
)
from dataproxy._core.pack.parts cimport Part, Parts
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.producer.accumulate.streams cimport Stream, StreamTable, stream_release
from dataproxy._core.conn.connection cimport (
    LC_CLOSED, CE_CONNECT_FAILED, CE_CONNECTED, CE_DEAF, CE_DRAINED, CE_FRAMING, CE_HANDSHAKE, CE_LOST, CE_PROTOCOL,
    CE_SILENT,
)
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load
from dataproxy._core.plat.clock cimport now_us
from dataproxy._core.plat.thread cimport (
    pthread_cond_broadcast, pthread_cond_destroy, pthread_cond_init, pthread_cond_signal, pthread_cond_timedwait,
    pthread_condattr_destroy, pthread_condattr_init, pthread_condattr_setclock, pthread_condattr_t,
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)

cdef enum:
    NOT_OF_CONNECTIONS = 100    # kinds of trouble from here on are not events of connections (dataproxy/lasterror.py)


cdef int completions_open(
    Completions* c, PackPool* spares, StreamTable* streams, int64_t most, bint sheds,
) noexcept nogil:
    """Make an empty queue; ST_OK or ST_NO_MEMORY.  Locality: the producer's creator."""
    cdef pthread_condattr_t attr
    memset(c, 0, sizeof(Completions))
    c.spares = spares
    c.streams = streams
    c.most = most
    c.sheds = sheds
    c.events = <Event*>calloc(EVENT_ROOM, sizeof(Event))
    c.taken = <Event*>calloc(EVENT_ROOM, sizeof(Event))
    pthread_mutex_init(&c.lock, NULL)
    pthread_condattr_init(&attr)
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC)
    pthread_cond_init(&c.ready, &attr)
    pthread_condattr_destroy(&attr)
    return ST_OK if c.events != NULL and c.taken != NULL else ST_NO_MEMORY


cdef void completions_close(Completions* c) noexcept nogil:
    """Release the queue; its packs were taken.  Locality: the last user."""
    free(c.events)
    free(c.taken)
    pthread_cond_destroy(&c.ready)
    pthread_mutex_destroy(&c.lock)


cdef int64_t _takes(const Pack* p) noexcept nogil:
    """Return the memory of a settled pack in bytes; if it was split, with the results of its parts."""
    cdef int64_t n = pack_memory(p.cap)
    if p.parts != NULL:
        n += <int64_t>(sizeof(Parts) + p.parts.cap * sizeof(Part) + p.parts.texts.cap)
    return n


cdef void completions_count(Completions* c, Pack* p) noexcept nogil:
    """Count the memory that a waiting settled pack takes now.  Locality: its owner."""
    cdef int64_t now = _takes(p)
    atomic_add(&c.bytes, now - p.waits)
    p.waits = now


cdef void _untold(Completions* c, const Pack* p) noexcept nogil:
    """Count the messages of a pack whose report will not be made.  Locks: lock is held."""
    cdef uint32_t i
    if p.outcome != OUT_MIXED:
        c.untold[p.outcome] += p.count
        return
    for i in range(p.parts.n_done):
        c.untold[p.parts.done[i].outcome] += p.parts.done[i].n


cdef void completions_shed(Completions* c, int64_t more, PackList* spent) noexcept nogil:
    """If senders are not held back: count the oldest reports as not made until ``more`` bytes are within the bound.

    Locality: any thread.  Locks: lock is held.  Packs that nothing else needs go to ``spent``.
    """
    cdef Pack* p
    cdef int kind
    while c.sheds and atomic_load(&c.bytes) + more > c.most and c.packs.head != NULL:
        p = list_pop(&c.packs)
        if p.report:
            _untold(c, p)
            p.report = False
            for kind in range(2):
                if (<Stream*>p.stream).refused[kind] == p:      # the next refusal has an entry of its own
                    (<Stream*>p.stream).refused[kind] = NULL
        pack_strip(p)
        p.own_ids = False
        if p.watched:
            completions_count(c, p)
            list_push(&c.owed, p)
        else:
            atomic_add(&c.bytes, -p.waits)
            list_push(spent, p)


cdef void completions_put(Completions* c, PackList* packs) noexcept nogil:
    """Hand over settled packs.  Locality: executor.  Locks: takes lock, then the pool's."""
    cdef PackList spent
    cdef Pack* p
    memset(&spent, 0, sizeof(PackList))
    pthread_mutex_lock(&c.lock)
    p = list_pop(packs)
    while p != NULL:
        completions_shed(c, _takes(p) - p.waits, &spent)
        completions_count(c, p)
        list_push(&c.packs, p)
        p = list_pop(packs)
    completions_shed(c, 0, &spent)
    pthread_cond_signal(&c.ready)
    pthread_mutex_unlock(&c.lock)
    completions_give_back(c, &spent)


cdef bint completions_give_back(Completions* c, PackList* packs) noexcept nogil:
    """Give packs that nothing needs to the pool and release their streams; True if any `stream_release` was True.

    Locality: any thread.
    Locks: takes the pool's.  If a caller ignores the result, the dispatcher calls ``streams_tidy`` at its next turn.
    """
    cdef bint idle = False
    cdef Pack* p = list_pop(packs)
    while p != NULL:
        idle |= stream_release(c.streams, <Stream*>p.stream)
        pool_give(c.spares, p)
        p = list_pop(packs)
    return idle


cdef void completions_untold(Completions* c, int64_t* untold) noexcept nogil:
    """Read the counts of messages whose reports are not made, by Outcome.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&c.lock)
    memcpy(untold, c.untold, sizeof(c.untold))
    pthread_mutex_unlock(&c.lock)


cdef void _some(PackList* source, PackList* packs, int64_t* messages) noexcept nogil:
    """Move packs from ``source`` to ``packs``, at most as many as Python gets in one call.  Locks: lock is held."""
    cdef Pack* p = source.head
    while p != NULL and packs.n < PACKS_AT_ONCE and (packs.n == 0 or messages[0] + p.count <= MESSAGES_AT_ONCE):
        list_remove(source, p)
        list_push(packs, p)
        messages[0] += p.count
        p = source.head


cdef void completions_event(Completions* c, int kind, const char* label, int detail, Slice text) noexcept nogil:
    """Report an event for the log.  Locality: executor.  Locks: takes lock."""
    cdef Event* event
    cdef size_t n
    pthread_mutex_lock(&c.lock)
    if c.n_events < EVENT_ROOM:
        event = &c.events[c.n_events]
        event.kind = kind
        event.detail = detail
        strncpy(event.label, label, sizeof(event.label) - 1)
        n = text.n if text.n < sizeof(event.text) else sizeof(event.text) - 1
        if n > 0:
            memcpy(event.text, text.p, n)
        event.text[n] = 0
        c.n_events += 1
        pthread_cond_signal(&c.ready)
    else:
        c.lost_events += 1
    pthread_mutex_unlock(&c.lock)


cdef bint _is_trouble(int kind) noexcept nogil:
    """Tell whether an event gives a reason why messages are not delivered that their own results do not give."""
    return (
        kind == CE_CONNECT_FAILED or kind == CE_LOST or kind == CE_SILENT or kind == CE_PROTOCOL or kind == CE_DRAINED
        or kind == CE_DEAF or kind == CE_FRAMING or kind == CE_HANDSHAKE or kind >= NOT_OF_CONNECTIONS)


cdef void completions_trouble(
    Completions* c, int kind, const char* label, int detail, Slice text, int64_t now,
) noexcept nogil:
    """Keep an event of a connection if it is a failure; mark the failure as healed if the event ends it.

    Locality: executor; any thread.  Locks: takes lock.
    """
    cdef Trouble* trouble = &c.trouble
    cdef size_t n = min(text.n, sizeof(trouble.text) - 1)
    if kind != CE_CONNECTED and not _is_trouble(kind):
        return
    pthread_mutex_lock(&c.lock)
    if kind != CE_CONNECTED:
        trouble.kind = kind
        trouble.detail = detail
        trouble.healed = False
        trouble.at_us = now
        memset(trouble.label, 0, sizeof(trouble.label))
        strncpy(trouble.label, label, sizeof(trouble.label) - 1)
        if n > 0:
            memcpy(trouble.text, text.p, n)
        trouble.text[n] = 0
    elif strcmp(trouble.label, label) == 0 or trouble.label[0] == 0:
        trouble.healed = True
    pthread_mutex_unlock(&c.lock)


cdef void completions_last_trouble(Completions* c, Trouble* out) noexcept nogil:
    """Copy what went wrong last.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&c.lock)
    memcpy(out, &c.trouble, sizeof(Trouble))
    pthread_mutex_unlock(&c.lock)


cdef void completions_explain(Completions* c, Pack* p) noexcept nogil:
    """Put what went wrong last into the text of a pack that expired or failed, if no server has given a reason.

    It belongs to the pack if it came while the pack was on its way, or if its proxy was not reached since then.
    Locality: the owner of the pack.  Locks: takes lock.
    """
    if p.outcome != OUT_EXPIRED and p.outcome != OUT_FAILED:
        return
    if p.refused != 0 or p.code >= 0 or p.code < LC_CLOSED or p.error_text != NULL:
        return
    pthread_mutex_lock(&c.lock)
    if _belongs(&c.trouble, p):
        p.error_text = <char*>malloc(sizeof(Trouble))
        if p.error_text != NULL:
            snprintf(
                p.error_text, sizeof(Trouble), "%d\x1f%d\x1f%s\x1f%s",
                c.trouble.kind, c.trouble.detail, c.trouble.label, c.trouble.text)
    pthread_mutex_unlock(&c.lock)


cdef bint _belongs(const Trouble* trouble, const Pack* p) noexcept nogil:
    """Tell whether a trouble can be why ``p`` was not delivered.  Locks: lock is held."""
    if trouble.kind == 0:
        return False
    return trouble.at_us >= p.opened_us or (not trouble.healed and (
        trouble.kind == CE_CONNECT_FAILED or trouble.kind == CE_HANDSHAKE or trouble.kind >= NOT_OF_CONNECTIONS))


cdef bint _has_news(const Completions* c) noexcept nogil:
    """Tell whether there is something for the dispatcher.  Locks: lock is held."""
    return c.packs.head != NULL or c.owed.head != NULL or c.n_events > 0 or c.poked or c.closed


cdef bint completions_wait(Completions* c, int64_t deadline_us) noexcept nogil:
    """Wait for something to take, or for the end; False when there is neither at the deadline.

    Locality: dispatcher, without the GIL.  Locks: takes lock.
    """
    cdef timespec t
    cdef bint found
    t.tv_sec = deadline_us // 1000000
    t.tv_nsec = (deadline_us % 1000000) * 1000
    pthread_mutex_lock(&c.lock)
    while not _has_news(c) and now_us() < deadline_us:
        pthread_cond_timedwait(&c.ready, &c.lock, &t)
    found = _has_news(c)
    pthread_mutex_unlock(&c.lock)
    return found


cdef bint completions_take(
    Completions* c, PackList* packs, Event** events, int* n, int64_t* lost, int64_t deadline_us,
) noexcept nogil:
    """Wait for something and take it, at most PACKS_AT_ONCE packs; False when the queue has ended and is empty.

    Locality: dispatcher, without the GIL.  Locks: takes lock.  ``events`` stay as they are until the next call.
    """
    cdef int64_t messages = 0
    cdef timespec t
    cdef bint going
    t.tv_sec = deadline_us // 1000000
    t.tv_nsec = (deadline_us % 1000000) * 1000
    pthread_mutex_lock(&c.lock)
    memset(packs, 0, sizeof(PackList))
    while not _has_news(c) and now_us() < deadline_us:
        pthread_cond_timedwait(&c.ready, &c.lock, &t)
    _some(&c.owed, packs, &messages)
    _some(&c.packs, packs, &messages)
    n[0] = c.n_events
    events[0] = c.events
    c.events = c.taken
    c.taken = events[0]
    c.n_events = 0
    lost[0] = c.lost_events
    c.lost_events = 0
    going = not c.closed or packs.head != NULL or n[0] > 0 or c.poked
    c.poked = False
    pthread_mutex_unlock(&c.lock)
    return going


cdef void completions_poke(Completions* c) noexcept nogil:
    """Wake the dispatcher for work that Python code has left.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&c.lock)
    c.poked = True
    pthread_cond_signal(&c.ready)
    pthread_mutex_unlock(&c.lock)


cdef void completions_end(Completions* c) noexcept nogil:
    """Tell the dispatcher that nothing more will come.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&c.lock)
    c.closed = True
    pthread_cond_broadcast(&c.ready)
    pthread_mutex_unlock(&c.lock)
