"""The accounting: what was accepted, and what became of it."""

from libc.stdint cimport int64_t

from dataproxy._core.base.hist cimport Hist
from dataproxy._core.pack.pack cimport Pack, PackResult
from dataproxy._core.producer.aio.loopqueue cimport LoopWait
from dataproxy._core.plat.thread cimport pthread_cond_t, pthread_mutex_t

cdef enum:
    CODES = 64              # distinct error codes that are counted apart


ctypedef struct Accounting:
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
