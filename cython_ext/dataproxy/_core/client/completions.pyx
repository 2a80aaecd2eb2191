"""Completion queue: executors put, the dispatcher takes everything at once and then takes the GIL."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset, strncpy
from posix.time cimport CLOCK_MONOTONIC, timespec

from dataproxy._core.base.pack cimport Pack, PackList, list_pop, list_push
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.clock cimport now_us
from dataproxy._core.plat.thread cimport (
    pthread_cond_broadcast, pthread_cond_destroy, pthread_cond_init, pthread_cond_signal, pthread_cond_timedwait,
    pthread_condattr_destroy, pthread_condattr_init, pthread_condattr_setclock, pthread_condattr_t,
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)


cdef int completions_open(Completions* c) noexcept nogil:
    """Make an empty queue; ST_OK or ST_NO_MEMORY.  Locality: the producer's creator.  Locks: none."""
    cdef pthread_condattr_t attr
    memset(c, 0, sizeof(Completions))
    c.events = <Event*>calloc(EVENT_ROOM, sizeof(Event))
    c.taken = <Event*>calloc(EVENT_ROOM, sizeof(Event))
    pthread_mutex_init(&c.lock, NULL)
    pthread_condattr_init(&attr)
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC)
    pthread_cond_init(&c.ready, &attr)
    pthread_condattr_destroy(&attr)
    return ST_OK if c.events != NULL and c.taken != NULL else ST_NO_MEMORY


cdef void completions_close(Completions* c) noexcept nogil:
    """Release the queue; its packs were taken.  Locality: the last user.  Locks: none."""
    free(c.events)
    free(c.taken)
    pthread_cond_destroy(&c.ready)
    pthread_mutex_destroy(&c.lock)


cdef void completions_put(Completions* c, PackList* packs) noexcept nogil:
    """Hand over settled packs.  Locality: executor.  Locks: takes lock."""
    cdef Pack* p
    pthread_mutex_lock(&c.lock)
    p = list_pop(packs)
    while p != NULL:
        list_push(&c.packs, p)
        p = list_pop(packs)
    pthread_cond_signal(&c.ready)
    pthread_mutex_unlock(&c.lock)


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


cdef bint completions_take(
    Completions* c, PackList* packs, Event** events, int* n, int64_t* lost, int64_t deadline_us,
) noexcept nogil:
    """Wait for something and take it all; False when the queue has ended and is empty.

    Locality: dispatcher, without the GIL.  Locks: takes lock.  ``events`` stay as they are until the next call.
    """
    cdef timespec t
    cdef bint going
    t.tv_sec = deadline_us // 1000000
    t.tv_nsec = (deadline_us % 1000000) * 1000
    pthread_mutex_lock(&c.lock)
    while c.packs.head == NULL and c.n_events == 0 and not c.poked and not c.closed and now_us() < deadline_us:
        pthread_cond_timedwait(&c.ready, &c.lock, &t)
    packs[0] = c.packs
    memset(&c.packs, 0, sizeof(PackList))
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
    """Have the dispatcher look for what Python left.  Locality: any thread.  Locks: takes lock."""
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
