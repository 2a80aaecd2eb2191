"""What executors have for Python: settled packs that somebody asked about, and events for the log.

Locks: none.
"""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport Pack, PackList, PackPool
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.producer.accumulate.streams cimport StreamTable
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load
from dataproxy._core.plat.thread cimport pthread_cond_t, pthread_mutex_t

cdef enum:
    EVENT_ROOM = 512        # events kept while the dispatcher is busy; further ones are counted
    OUTCOMES = 6            # one more than the largest Outcome of a message
    WATCH_COST = 320        # bytes of a Watch, of the list that it is in, and of its own callback's arguments
    PACKS_AT_ONCE = 1024    # most packs that the dispatcher takes in one call
    MESSAGES_AT_ONCE = 16384    # and most messages in them


ctypedef struct Event:
    int kind                # conn.connection.ConnectionEvent
    int detail
    char label[64]
    char text[160]          # what the server said, cut; empty without one


ctypedef struct Trouble:    # what went wrong last with a connection
    int kind                # conn.connection.ConnectionEvent, or NOT_FOUND of dataproxy.lasterror; 0: no trouble
    int detail
    bint healed             # the same proxy was reached since then
    int64_t at_us
    char label[64]
    char text[160]


ctypedef struct Completions:
    # Constant.
    PackPool* spares
    StreamTable* streams
    int64_t most            # bytes that may wait for callbacks
    bint sheds              # beyond ``most`` the oldest reports are only counted, not made; otherwise senders wait
    pthread_mutex_t lock
    pthread_cond_t ready
    # Guarded by lock.
    PackList owed           # older than all others: no reports of them are made, but their own callbacks are called
    PackList packs
    int64_t untold[6]       # by Outcome: messages whose report was not made
    Event* events           # EVENT_ROOM of them
    Event* taken            # as many; only the dispatcher reads them, until its next call
    int n_events
    int64_t lost_events
    Trouble trouble
    bint poked              # Python code has left work for the dispatcher
    bint closed
    int64_t bytes           # atomic: memory of results that wait, here and with the dispatcher


cdef int completions_open(
    Completions* c, PackPool* spares, StreamTable* streams, int64_t most, bint sheds,
) noexcept nogil
cdef void completions_close(Completions* c) noexcept nogil
cdef void completions_put(Completions* c, PackList* packs) noexcept nogil
cdef void completions_count(Completions* c, Pack* p) noexcept nogil
cdef bint completions_give_back(Completions* c, PackList* packs) noexcept nogil
cdef void completions_shed(Completions* c, int64_t more, PackList* spent) noexcept nogil
cdef void completions_untold(Completions* c, int64_t* untold) noexcept nogil
cdef void completions_event(Completions* c, int kind, const char* label, int detail, Slice text) noexcept nogil
cdef void completions_trouble(
    Completions* c, int kind, const char* label, int detail, Slice text, int64_t now) noexcept nogil
cdef void completions_last_trouble(Completions* c, Trouble* out) noexcept nogil
cdef void completions_explain(Completions* c, Pack* p) noexcept nogil
cdef bint completions_wait(Completions* c, int64_t deadline_us) noexcept nogil
cdef bint completions_take(
    Completions* c, PackList* packs, Event** events, int* n, int64_t* lost, int64_t deadline_us,
) noexcept nogil
cdef void completions_poke(Completions* c) noexcept nogil
cdef void completions_end(Completions* c) noexcept nogil


cdef inline int64_t completions_add(Completions* c, int64_t n) noexcept nogil:
    """Count ``n`` bytes more of results that wait; return all of them.  Locality: any thread."""
    return atomic_add(&c.bytes, n)


cdef inline int64_t completions_bytes(const Completions* c) noexcept nogil:
    """Return the memory of results that wait, here and with the dispatcher.  Locality: any thread."""
    return atomic_load(&c.bytes)


cdef inline bint completions_crowd(const Completions* c, int64_t n) noexcept nogil:
    """Tell whether ``n`` bytes of waiting results are so many that senders may be held back.  Locality: any thread."""
    return n > c.most // 2
