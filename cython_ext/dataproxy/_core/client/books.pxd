"""The books: what was accepted, and what became of it."""

from libc.stdint cimport int64_t

from dataproxy._core.base.hist cimport Hist
from dataproxy._core.base.pack cimport Pack, Verdict
from dataproxy._core.client.loopqueue cimport LoopWait
from dataproxy._core.plat.thread cimport pthread_cond_t, pthread_mutex_t

cdef enum:
    CODES = 64              # distinct error codes that are counted apart


ctypedef struct Books:
    pthread_mutex_t lock
    pthread_cond_t changed      # a pack was settled, or the producer closed
    # Everything below is guarded by lock.
    int64_t waiters
    LoopWait* loop_waits        # event loops that wait for room or for a serial
    LoopWait* due               # waits of packs settled since the last wake, in that order
    LoopWait* last_due          # valid while there is a due
    int64_t in_flight           # messages sealed and not settled
    int64_t in_flight_packs     # senders read it without the lock, as an estimate
    int64_t delivered
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
    Hist latency                # microseconds from the first append of the pack, weighted by messages
    # Read without the lock by the batcher: atomic.
    int64_t released            # bytes given back to the buffer limit
    int64_t released_messages
    int64_t turns               # grows whenever there may be room for waiting senders: bytes, memory or results
    int64_t awaiting            # 1 while senders may wait for a change of ``turns``
    int64_t shed_bytes          # memory of packs that were given up and not yet put away by their executors


cdef void books_open(Books* k) noexcept nogil
cdef void books_close(Books* k) noexcept nogil
cdef void books_sealed(Books* k, Pack* p) noexcept nogil
cdef void verdict_fill(Verdict* v, const Pack* p, int64_t latency) noexcept nogil
cdef void books_enter(Books* k, Pack* p) noexcept nogil
cdef void books_settle(Books* k, Pack* p, int64_t now_us) noexcept nogil
cdef void books_turn(Books* k) noexcept nogil
cdef Pack* books_unsent(Books* k, const Pack* after) noexcept nogil
cdef void books_drop(Books* k, Pack* p, int code, int64_t now_us) noexcept nogil
cdef void books_put_away(Books* k, Pack* p) noexcept nogil
cdef void books_refuse(Books* k, int64_t messages, int code) noexcept nogil
cdef int64_t books_mark(Books* k) noexcept nogil
cdef bint books_wait_mark(Books* k, int64_t mark, int64_t deadline_us) noexcept nogil
cdef bint books_idle(Books* k) noexcept nogil
cdef int64_t books_lost(Books* k) noexcept nogil
cdef bint books_wait_room(Books* k, int64_t seen, int64_t deadline_us) noexcept nogil
cdef bint books_wait_verdict(Books* k, Verdict* v, int64_t deadline_us) noexcept nogil
cdef void books_wake(Books* k) noexcept nogil
cdef bint books_await_verdict(Books* k, LoopWait* w) noexcept nogil
cdef bint books_await_room(Books* k, LoopWait* w, int64_t seen) noexcept nogil
cdef bint books_await_mark(Books* k, LoopWait* w) noexcept nogil
