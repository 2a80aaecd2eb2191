"""What executors have for Python: settled packs that somebody asked about, and events for the log."""

from libc.stdint cimport int64_t

from dataproxy._core.base.pack cimport Pack, PackList
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.plat.thread cimport pthread_cond_t, pthread_mutex_t

cdef enum:
    EVENT_ROOM = 512        # events kept while the dispatcher is busy; further ones are counted


ctypedef struct Event:
    int kind                # io.link.LinkEvent
    int detail
    char label[64]
    char text[160]          # what the server said, cut; empty without one


ctypedef struct Completions:
    pthread_mutex_t lock
    pthread_cond_t ready
    # Guarded by lock.
    PackList packs
    Event* events           # EVENT_ROOM of them
    Event* taken            # as many, for the dispatcher alone until it comes again
    int n_events
    int64_t lost_events
    bint poked              # Python left something for the dispatcher
    bint closed


cdef int completions_open(Completions* c) noexcept nogil
cdef void completions_close(Completions* c) noexcept nogil
cdef void completions_put(Completions* c, PackList* packs) noexcept nogil
cdef void completions_event(Completions* c, int kind, const char* label, int detail, Slice text) noexcept nogil
cdef bint completions_take(
    Completions* c, PackList* packs, Event** events, int* n, int64_t* lost, int64_t deadline_us,
) noexcept nogil
cdef void completions_poke(Completions* c) noexcept nogil
cdef void completions_end(Completions* c) noexcept nogil
