"""The accounting: what was accepted, and what became of it."""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.hist cimport Hist
from dataproxy._core.pack.pack cimport Pack, PackResult
from dataproxy._core.producer.aio.loopqueue cimport LoopWait
from dataproxy._core.plat.atomic cimport atomic_load
from dataproxy._core.plat.thread cimport (
    pthread_cond_broadcast, pthread_cond_t, pthread_mutex_lock, pthread_mutex_t, pthread_mutex_unlock,
)

cdef enum:
    CODES = 64              # distinct error codes that are counted apart
    RESULT_CONDS = 64       # conditions at which threads wait for results; a bit of `result_signals` each


cdef enum WatchState:       # what `accounting_watch` found
    WATCH_FIRST = 0         # the first call that is asked for: the result will bring the pack to the dispatcher
    WATCH_MORE = 1          # other calls were asked for before, and the result is not final
    WATCH_QUEUED = 2        # the same, and the pack waits for the dispatcher
    WATCH_LATE = 3          # the result is final, and the dispatcher will not call


ctypedef struct AccountingCounts:   # a copy of the counts of one moment
    int64_t in_flight
    int64_t in_flight_packs
    int64_t delivered
    int64_t sent
    int64_t failed
    int64_t expired
    int64_t dropped
    int64_t maybe_delivered
    int64_t delivered_bytes
    int64_t settled_packs
    int64_t resent
    int64_t released
    int64_t codes[64]
    int64_t code_counts[64]
    int n_codes
    Hist latency


ctypedef struct Accounting:
    int64_t busy_poll_us        # how long a wait for a result looks for it before it sleeps; constant
    pthread_mutex_t lock
    pthread_cond_t changed      # there may be room, or a serial was reached
    pthread_cond_t result_conds[64]     # a pack that others wait for was settled; by the address of its PackResult
    # Everything below is guarded by lock.
    int64_t result_waiters[64]  # threads at each of `result_conds`
    uint64_t result_signals     # those of `result_conds` that are signalled when the lock is released
    int64_t waiters             # threads at `changed`
    int64_t mark_waiters        # of them: those that wait for a serial
    int64_t least_mark          # with any of these: none of them waits for a lower one
    bint rings                  # `changed` is signalled when the lock is released
    LoopWait* loop_waits        # event loops that wait for room or for a serial
    LoopWait* due               # waits of packs settled since the last wake, in that order
    LoopWait* last_due          # valid while there is a due
    int64_t in_flight           # messages sealed and not settled
    int64_t in_flight_packs     # senders read it without the lock, as an estimate
    int64_t delivered
    int64_t sent                # written, and no answer was asked for
    int64_t failed
    int64_t expired
    int64_t dropped
    int64_t maybe_delivered     # failed and expired messages with an attempt that was written and never answered
    int64_t delivered_bytes     # charged bytes: bodies and their framing
    int64_t settled_packs
    int64_t resent              # attempts beyond the first, of settled packs
    Pack* oldest                # unsettled packs in the order of sealing
    Pack* newest
    Pack* shed_from             # all older ones were sent: where the search for one to give up begins
    int64_t sealed_packs        # serial of the newest ever sealed
    int64_t codes[64]
    int64_t code_counts[64]
    int n_codes
    Hist latency                # microseconds from the first append of the pack, of those delivered and sent
    # Read without the lock by the batcher: atomic.
    int64_t released            # bytes given back to the buffer limit
    int64_t released_messages
    int64_t turns               # grows whenever there may be room for waiting senders: bytes, memory or results
    int64_t awaiting            # 1 while senders may wait for a change of ``turns``
    int64_t shed_bytes          # memory of packs that were given up and not yet put away by their executors
    int64_t shed_charge         # charges of these packs: held bodies are not in their memory


cdef void accounting_open(Accounting* k) noexcept nogil
cdef void accounting_close(Accounting* k) noexcept nogil
cdef void accounting_sealed(Accounting* k, Pack* p) noexcept nogil
cdef void pack_result_fill(PackResult* v, const Pack* p, int64_t latency) noexcept nogil
cdef void accounting_enter(Accounting* k, Pack* p) noexcept nogil
cdef void accounting_settle(Accounting* k, Pack* p, int64_t now_us) noexcept nogil
cdef void accounting_turn(Accounting* k) noexcept nogil
cdef Pack* accounting_unsent(Accounting* k, const Pack* after) noexcept nogil
cdef void accounting_drop(Accounting* k, Pack* p, int code, int64_t now_us) noexcept nogil
cdef void accounting_put_away(Accounting* k, Pack* p) noexcept nogil
cdef void accounting_refuse(Accounting* k, int64_t messages, int code) noexcept nogil
cdef int64_t accounting_mark(Accounting* k) noexcept nogil
cdef bint accounting_wait_mark(Accounting* k, int64_t mark, int64_t deadline_us) noexcept nogil
cdef bint accounting_idle(Accounting* k) noexcept nogil
cdef int64_t accounting_lost(Accounting* k) noexcept nogil
cdef bint accounting_wait_room(Accounting* k, int64_t seen, int64_t deadline_us) noexcept nogil
cdef bint accounting_wait_result(Accounting* k, PackResult* v, int64_t deadline_us) noexcept nogil
cdef void accounting_wake(Accounting* k) noexcept nogil
cdef bint accounting_await_result(Accounting* k, LoopWait* w) noexcept nogil
cdef bint accounting_await_room(Accounting* k, LoopWait* w, int64_t seen) noexcept nogil
cdef bint accounting_await_mark(Accounting* k, LoopWait* w) noexcept nogil
cdef void accounting_counts(Accounting* k, AccountingCounts* out) noexcept nogil
cdef void accounting_latency(Accounting* k, Hist* out) noexcept nogil
cdef int accounting_watch(Accounting* k, PackResult* v) noexcept nogil
cdef int accounting_unwatch(Accounting* k, PackResult* v) noexcept nogil


cdef inline int64_t accounting_turns(const Accounting* k) noexcept nogil:
    """Return a number that grows whenever there may be room for waiting senders.  Locality: any.  Locks: none."""
    return atomic_load(&k.turns)


cdef inline void accounting_hold(Accounting* k) noexcept nogil:
    """Take lock, for several calls that need it.  Locality: any thread.  Locks: takes lock."""
    pthread_mutex_lock(&k.lock)


cdef inline void accounting_let_go(Accounting* k) noexcept nogil:
    """Release lock after ``accounting_hold``, then wake threads, which find it free.

    Locality: the same thread.  Locks: releases lock.  No wake-up is lost: a thread that begins to wait after the
    release has seen what changed.
    """
    cdef bint rings = k.rings
    cdef uint64_t result_signals = k.result_signals
    cdef int i = 0
    k.rings = False
    k.result_signals = 0
    pthread_mutex_unlock(&k.lock)
    if rings:
        pthread_cond_broadcast(&k.changed)
    while result_signals:
        if result_signals & 1:
            pthread_cond_broadcast(&k.result_conds[i])
        result_signals >>= 1
        i += 1
