"""Lists between the threads of a consumer, and the waits for them.

The fetching thread hands packs to the application and events to the thread that drives the member; both hand commands
to the fetching thread.  A pack is counted when it can be taken, and once more when it has its outcome, both under the
lock: so the tally balances at any moment.

Locks: each function takes ``lock``, except where it says otherwise.  No other lock is held, and the GIL is not.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from posix.time cimport CLOCK_MONOTONIC, timespec

from dataproxy._core.base.blocks cimport block_free
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.consumer.tubepack cimport PO_HELD, TubePack, tubepack_let_go
from dataproxy._core.net.poller cimport wakeup_close, wakeup_open, wakeup_signal
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport atomic_load, atomic_store
from dataproxy._core.plat.thread cimport (
    pthread_cond_broadcast, pthread_cond_destroy, pthread_cond_init, pthread_cond_timedwait,
    pthread_condattr_destroy, pthread_condattr_init, pthread_condattr_setclock, pthread_condattr_t,
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)


cdef int exchange_open(Exchange* x) noexcept nogil:
    """Make an empty exchange; ST_OK or ST_SYSTEM.  Locality: its creator.  Locks: none."""
    cdef pthread_condattr_t attr
    cdef int status
    memset(x, 0, sizeof(Exchange))
    x.aio.fd = -1
    pthread_mutex_init(&x.lock, NULL)
    pthread_condattr_init(&attr)
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC)
    pthread_cond_init(&x.ready, &attr)
    pthread_cond_init(&x.driven, &attr)
    pthread_condattr_destroy(&attr)
    status = wakeup_open(&x.loop)
    return wakeup_open(&x.aio) if status == ST_OK else status


cdef void command_free(Command* c) noexcept nogil:
    """Release a command and what it owns.  Locality: its owner.  Locks: none."""
    tubepack_let_go(c.pack)
    free(c.rules)
    free(c.filters)
    free(c.data)
    free(c)


cdef void event_free(Event* e) noexcept nogil:
    """Release an event and what it owns.  Locality: its owner.  Locks: none."""
    block_free(e.block)
    free(e)


cdef void exchange_close(Exchange* x) noexcept nogil:
    """Release everything that was handed over and not taken.  Locality: the last user.  Locks: none."""
    cdef Command* c = x.first_command
    cdef Command* next_command
    cdef Event* e = x.first_event
    cdef Event* next_event
    cdef TubePack* p = x.first_ready
    cdef TubePack* next_pack
    while c != NULL:
        next_command = c.next
        command_free(c)
        c = next_command
    while e != NULL:
        next_event = e.next
        event_free(e)
        e = next_event
    while p != NULL:
        next_pack = p.next
        tubepack_let_go(p)
        p = next_pack
    wakeup_close(&x.loop)
    wakeup_close(&x.aio)
    pthread_cond_destroy(&x.ready)
    pthread_cond_destroy(&x.driven)
    pthread_mutex_destroy(&x.lock)


cdef void exchange_post(Exchange* x, Command* c) noexcept nogil:
    """Hand a command to the fetching thread, which is woken.  Locality: any thread."""
    c.next = NULL
    pthread_mutex_lock(&x.lock)
    if x.last_command == NULL:
        x.first_command = c
    else:
        x.last_command.next = c
    x.last_command = c
    pthread_mutex_unlock(&x.lock)
    wakeup_signal(&x.loop)


cdef void exchange_stop(Exchange* x) noexcept nogil:
    """Let the fetching thread end.  Locality: any thread."""
    pthread_mutex_lock(&x.lock)
    x.stop_asked = True
    pthread_mutex_unlock(&x.lock)
    wakeup_signal(&x.loop)


cdef Command* exchange_commands(Exchange* x, bint* stop) noexcept nogil:
    """Take all commands, the oldest first.  Locality: the fetching thread."""
    cdef Command* c
    pthread_mutex_lock(&x.lock)
    c = x.first_command
    x.first_command = x.last_command = NULL
    stop[0] = x.stop_asked
    pthread_mutex_unlock(&x.lock)
    return c


cdef TubePack* exchange_take(Exchange* x, int64_t now_us) noexcept nogil:
    """Take the oldest pack, with the list's use of it; NULL: there is none now.  Locality: the application."""
    cdef TubePack* p
    pthread_mutex_lock(&x.lock)
    p = x.first_ready
    if p != NULL:
        x.first_ready = p.next
        if p.next == NULL:
            x.last_ready = NULL
        x.n_ready -= 1
        p.next = NULL
        p.taken = True
        p.taken_us = now_us
    pthread_mutex_unlock(&x.lock)
    return p


cdef void _until(int64_t until_us, timespec* out) noexcept nogil:
    out.tv_sec = until_us // 1000000
    out.tv_nsec = (until_us % 1000000) * 1000


cdef bint exchange_wait_ready(Exchange* x, const TubePack* settled, int64_t until_us) noexcept nogil:
    """Wait until a pack can be taken, or ``settled`` has its outcome; False: the time is over, or nothing will come.

    Locality: the application.
    """
    cdef timespec until
    cdef bint found = False, ended = False, late = False
    _until(until_us, &until)
    pthread_mutex_lock(&x.lock)
    while True:
        ended = x.ended
        found = x.first_ready != NULL if settled == NULL else atomic_load(&settled.outcome) != PO_HELD
        if found or ended or late:
            break
        late = pthread_cond_timedwait(&x.ready, &x.lock, &until) != 0
    pthread_mutex_unlock(&x.lock)
    return found


cdef void exchange_end(Exchange* x) noexcept nogil:
    """Wake everybody who waits for packs: no more will come.  Locality: any thread."""
    pthread_mutex_lock(&x.lock)
    x.ended = True
    pthread_cond_broadcast(&x.ready)
    pthread_mutex_unlock(&x.lock)
    if x.awaited:
        wakeup_signal(&x.aio)


cdef Event* exchange_events(Exchange* x) noexcept nogil:
    """Take all events, the oldest first.  Locality: the driver."""
    cdef Event* e
    pthread_mutex_lock(&x.lock)
    e = x.first_event
    x.first_event = x.last_event = NULL
    pthread_mutex_unlock(&x.lock)
    return e


cdef bint exchange_wait_events(Exchange* x, int64_t until_us) noexcept nogil:
    """Wait for events or a call, at most until then; False: there was no memory for one.  Locality: the driver."""
    cdef timespec until
    cdef bint whole
    _until(until_us, &until)
    pthread_mutex_lock(&x.lock)
    while x.first_event == NULL and not x.called and not x.missed:
        if pthread_cond_timedwait(&x.driven, &x.lock, &until) != 0:
            break
    x.called = False
    whole = not x.missed
    pthread_mutex_unlock(&x.lock)
    return whole


cdef void exchange_call(Exchange* x) noexcept nogil:
    """Let the driver look up from its wait.  Locality: any thread."""
    pthread_mutex_lock(&x.lock)
    x.called = True
    pthread_cond_broadcast(&x.driven)
    pthread_mutex_unlock(&x.lock)


cdef int _miss_event(Exchange* x) noexcept nogil:
    """Let the driver know that there was no memory for an event; returns ST_NO_MEMORY."""
    pthread_mutex_lock(&x.lock)
    x.missed = True
    pthread_cond_broadcast(&x.driven)
    pthread_mutex_unlock(&x.lock)
    return ST_NO_MEMORY


cdef void _append_event(Exchange* x, Event* e) noexcept nogil:
    pthread_mutex_lock(&x.lock)
    if x.last_event == NULL:
        x.first_event = e
    else:
        x.last_event.next = e
    x.last_event = e
    pthread_cond_broadcast(&x.driven)
    pthread_mutex_unlock(&x.lock)


cdef int exchange_tell(
    Exchange* x, int kind, int64_t number, int32_t code, int32_t detail, Slice first, Slice second,
) noexcept nogil:
    """Hand an event to the driver, with copies of bytes; ST_OK or ST_NO_MEMORY.  Locality: the fetching thread."""
    cdef Event* e = <Event*>malloc(sizeof(Event) + first.n + second.n)
    if e == NULL:
        return _miss_event(x)
    memset(e, 0, sizeof(Event))
    e.kind, e.number, e.code, e.detail = kind, number, code, detail
    e.data = <uint8_t*>e + sizeof(Event)
    e.n, e.cut = first.n + second.n, first.n
    if first.n:
        memcpy(e.data, first.p, first.n)
    if second.n:
        memcpy(e.data + first.n, second.p, second.n)
    _append_event(x, e)
    return ST_OK


cdef int exchange_hand(
    Exchange* x, int kind, int64_t number, int32_t code, Slice data, uint8_t* block,
) noexcept nogil:
    """Hand an event to the driver, with a block in which its bytes lie; ST_OK or ST_NO_MEMORY.

    Locality: the fetching thread.
    """
    cdef Event* e = <Event*>calloc(1, sizeof(Event))
    if e == NULL:
        return _miss_event(x)
    e.kind, e.number, e.code = kind, number, code
    e.data, e.n, e.cut, e.block = <uint8_t*>data.p, data.n, data.n, block
    _append_event(x, e)
    return ST_OK


cdef void _count_fetched(Exchange* x, const TubePack* p) noexcept nogil:
    """Count a pack that came.  Locks: the caller has ``lock``."""
    x.tally.packs[<int>PO_HELD] += 1
    x.tally.messages[<int>PO_HELD] += p.n
    x.tally.bytes += p.bytes


cdef void exchange_passed(Exchange* x, const TubePack* p) noexcept nogil:
    """Count a pack that the application never meets.  Locality: the fetching thread."""
    pthread_mutex_lock(&x.lock)
    _count_fetched(x, p)
    pthread_mutex_unlock(&x.lock)


cdef void exchange_fetched(Exchange* x, TubePack* p) noexcept nogil:
    """Let the application take a pack, of which the list takes one use.  Locality: the fetching thread."""
    p.next = NULL
    pthread_mutex_lock(&x.lock)
    if x.last_ready == NULL:
        x.first_ready = p
    else:
        x.last_ready.next = p
    x.last_ready = p
    x.n_ready += 1
    _count_fetched(x, p)
    pthread_cond_broadcast(&x.ready)
    pthread_mutex_unlock(&x.lock)
    if x.awaited:
        wakeup_signal(&x.aio)


cdef bint exchange_withdraw(Exchange* x, TubePack* p) noexcept nogil:
    """Take a pack back, with the list's use of it; False: the application has it.  Locality: the fetching thread."""
    cdef TubePack* before = NULL
    cdef TubePack* at
    pthread_mutex_lock(&x.lock)
    if p.taken:
        pthread_mutex_unlock(&x.lock)
        return False
    at = x.first_ready
    while at != p:
        before = at
        at = at.next
    if before == NULL:
        x.first_ready = p.next
    else:
        before.next = p.next
    if x.last_ready == p:
        x.last_ready = before
    x.n_ready -= 1
    pthread_mutex_unlock(&x.lock)
    tubepack_let_go(p)
    return True


cdef int64_t exchange_taken(Exchange* x, const TubePack* p) noexcept nogil:
    """Return when the application took a pack; -1: it has not yet.  Locality: the fetching thread."""
    cdef int64_t when
    pthread_mutex_lock(&x.lock)
    when = p.taken_us if p.taken else -1
    pthread_mutex_unlock(&x.lock)
    return when


cdef void exchange_count(
    Exchange* x, int64_t broken, int64_t filtered, int64_t empty, int64_t refused,
) noexcept nogil:
    """Count messages that are not given out, and answers without a pack.  Locality: the fetching thread."""
    pthread_mutex_lock(&x.lock)
    x.tally.broken += broken
    x.tally.filtered += filtered
    x.tally.empty += empty
    x.tally.refused += refused
    pthread_mutex_unlock(&x.lock)


cdef void exchange_tally(Exchange* x, Tally* out) noexcept nogil:
    """Copy the counts of one moment.  Locality: any thread."""
    pthread_mutex_lock(&x.lock)
    memcpy(out, &x.tally, sizeof(Tally))
    pthread_mutex_unlock(&x.lock)


cdef void exchange_settle(Exchange* x, TubePack* p, int outcome, int64_t code) noexcept nogil:
    """Give a pack its outcome, and end the fetching thread's use of it.  Locality: the fetching thread."""
    dp_assert(atomic_load(&p.outcome) == PO_HELD and outcome != PO_HELD,
              "a pack has one outcome: it has %ld, and gets %d", atomic_load(&p.outcome), outcome)
    pthread_mutex_lock(&x.lock)
    p.code = code
    atomic_store(&p.outcome, outcome)
    x.tally.packs[outcome] += 1
    x.tally.messages[outcome] += p.n
    pthread_cond_broadcast(&x.ready)
    pthread_mutex_unlock(&x.lock)
    if x.awaited:
        wakeup_signal(&x.aio)
    tubepack_let_go(p)
