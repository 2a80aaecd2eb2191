"""Group commit: many threads submit entries, one thread appends all waiting entries as one commit.

A store that waits for nothing is also appended to by the thread that submits, while nobody else is in the store.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t

from dataproxy._core.server.entries cimport Entry, EntryDone, StoreOps
from dataproxy._core.plat.thread cimport pthread_cond_t, pthread_mutex_t


cdef enum CommitterConst:
    COMMITTER_ORIGINS = 64          # server loops that can wait for room at once
    COMMITTER_NOTICES = 2           # parts of a hub that want to know of entries


ctypedef struct CommitterLimits:
    size_t queue_bytes      # entries taken and not yet handed back; over it submit returns ST_FULL
    size_t commit_bytes     # bytes of one commit
    int64_t retain_every_ms


# A chain was appended, and can be read; called by who appended it, before it is handed back.
ctypedef void (*EntryNotice)(void* context, const Entry* chain) noexcept nogil


ctypedef struct Committer:
    # Constant while the loop runs.
    const StoreOps* ops
    void* store
    EntryDone done
    CommitterLimits limits
    EntryNotice noticed[COMMITTER_NOTICES]      # NULL: nobody more wants to know
    void* notice_context[COMMITTER_NOTICES]
    # Guarded by mutex (the GIL is never taken while it is held).
    pthread_mutex_t mutex
    pthread_cond_t cond
    Entry* head
    Entry* tail
    size_t held_bytes       # of entries taken and not yet handed back
    void* waiting[COMMITTER_ORIGINS]    # origins that were refused with ST_FULL
    int waiting_count
    bint busy               # a thread is in the store
    bint wanted             # the committing thread waits for it
    bint stopping
    # Statistics, relaxed atomics.
    int64_t commits
    int64_t entries
    int64_t refused         # entries handed back with an error
    int64_t queued_bytes
    int64_t running         # 1 while committer_run runs


cdef int committer_init(Committer* c, const StoreOps* ops, void* store, EntryDone done,
                        const CommitterLimits* limits) noexcept nogil
cdef void committer_free(Committer* c) noexcept nogil
# Submit a chain, from any thread: ST_OK; ST_FULL or ST_CLOSED, then the caller keeps the chain.  After ST_FULL,
# done(origin, NULL) is called once when there is room; `origin` is that of the first entry.
cdef int committer_submit(Committer* c, Entry* chain) noexcept nogil
# Commit a chain at once, on the submitting thread: false if the store may wait for a disk, or is not free; then nothing
# has happened.  The caller keeps the chain, whose entries have their results.
cdef bint committer_commit(Committer* c, Entry* chain) noexcept nogil
cdef bint committer_step(Committer* c, int64_t until_us) noexcept nogil      # the loop's step, for one thread
cdef void committer_run(Committer* c) noexcept nogil
cdef void committer_stop(Committer* c) noexcept nogil
