"""The queue of calls of control.

Locality: any thread, except where a function says otherwise.  Locks: takes CallQueue.mutex, but for init and free.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from posix.time cimport CLOCK_MONOTONIC, timespec

from dataproxy._core.base.buf cimport buf_free, buf_init
from dataproxy._core.base.status cimport ST_CLOSED, ST_FULL, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.atomic cimport relaxed_add
from dataproxy._core.plat.thread cimport (
    pthread_cond_broadcast, pthread_cond_destroy, pthread_cond_init, pthread_cond_signal, pthread_cond_timedwait,
    pthread_condattr_destroy, pthread_condattr_init, pthread_condattr_setclock, pthread_condattr_t,
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)


cdef int calls_init(CallQueue* q, CallDone done, size_t most_calls, size_t most_bytes) noexcept nogil:
    """Make an empty queue; ST_OK or ST_NO_MEMORY.  Locality: owner."""
    cdef pthread_condattr_t attr
    cdef int failed
    memset(q, 0, sizeof(CallQueue))
    q.done = done
    q.most_calls = most_calls
    q.most_bytes = most_bytes
    pthread_condattr_init(&attr)
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC)
    failed = pthread_mutex_init(&q.mutex, NULL)
    if failed == 0:
        failed = pthread_cond_init(&q.cond, &attr)
    pthread_condattr_destroy(&attr)
    return ST_NO_MEMORY if failed else ST_OK


cdef void calls_free(CallQueue* q) noexcept nogil:
    """Release everything.  Locality: owner, when nobody else uses the queue."""
    cdef Caller* caller
    cdef int i
    call_free_chain(q.head)
    q.head = q.tail = NULL
    for i in range(<int>CALLERS):
        while q.callers[i] != NULL:
            caller = q.callers[i]
            q.callers[i] = caller.next
            free(caller)
    pthread_cond_destroy(&q.cond)
    pthread_mutex_destroy(&q.mutex)


cdef Call* call_new(const Call* parts) noexcept nogil:
    """Copy a call with its texts.  Locks: none."""
    cdef Call* call = <Call*>malloc(sizeof(Call) + parts.peer.n + parts.request.n)
    cdef uint8_t* at = <uint8_t*>(call + 1)
    if call == NULL:
        return NULL
    call[0] = parts[0]
    call.next = NULL
    call.counted = False
    buf_init(&call.answer)
    call.peer.p = at
    if parts.peer.n:
        memcpy(at, parts.peer.p, parts.peer.n)
    call.request.p = at + parts.peer.n
    if parts.request.n:
        memcpy(at + parts.peer.n, parts.request.p, parts.request.n)
    return call


cdef void call_free(Call* call) noexcept nogil:
    """Release a call.  Locality: owner.  Locks: none."""
    buf_free(&call.answer)
    free(call)


cdef void call_free_chain(Call* chain) noexcept nogil:
    """Release every call of a chain.  Locality: owner.  Locks: none."""
    cdef Call* following
    while chain != NULL:
        following = chain.next
        call_free(chain)
        chain = following


cdef inline size_t _footprint(const Call* call) noexcept nogil:
    return sizeof(Call) + call.peer.n + call.request.n


cdef inline bint _fits(size_t own, size_t all_, size_t more, size_t most) noexcept nogil:
    """Tell whether an address may have so much more: at most half of what the others leave, so all others find room."""
    return 2 * (own + more) <= most - (all_ - own)


cdef Caller** _caller(CallQueue* q, uint64_t name) noexcept nogil:
    """Return where the caller with a name hangs, or would; the mutex is held."""
    cdef Caller** at = &q.callers[(name ^ name >> 16 ^ name >> 32) % <uint64_t>CALLERS]
    while at[0] != NULL and at[0].name != name:
        at = &at[0].next
    return at


cdef int _admit(CallQueue* q, const Call* call) noexcept nogil:
    """Charge a call to its address: ST_OK, ST_FULL or ST_CLOSED; the mutex is held."""
    cdef Caller** at = _caller(q, call.name)
    cdef size_t bytes = _footprint(call)
    if q.stopped:
        return ST_CLOSED
    if at[0] == NULL:
        if not _fits(0, q.calls, 1, q.most_calls) or not _fits(0, q.bytes, bytes, q.most_bytes):
            return ST_FULL
        at[0] = <Caller*>calloc(1, sizeof(Caller))
        if at[0] == NULL:
            return ST_FULL
        at[0].name = call.name
    elif (not _fits(at[0].calls, q.calls, 1, q.most_calls)
            or not _fits(at[0].bytes, q.bytes, bytes, q.most_bytes)):
        return ST_FULL
    at[0].calls += 1
    at[0].bytes += bytes
    q.calls += 1
    q.bytes += bytes
    return ST_OK


cdef inline void _append(CallQueue* q, Call* call) noexcept nogil:
    """Append a call; the mutex is held."""
    call.next = NULL            # one that has waited may have stood in a chain
    if q.head == NULL:
        q.head = call
    else:
        q.tail.next = call
    q.tail = call
    pthread_cond_signal(&q.cond)


cdef void calls_tell(CallQueue* q, Call* call) noexcept nogil:
    """Put news behind the calls that came before them."""
    pthread_mutex_lock(&q.mutex)
    _append(q, call)
    pthread_mutex_unlock(&q.mutex)


cdef int calls_put(CallQueue* q, Call* call) noexcept nogil:
    """Put a call behind the others."""
    cdef int status
    pthread_mutex_lock(&q.mutex)
    status = _admit(q, call)
    if status == ST_OK:
        call.counted = True
        _append(q, call)
    pthread_mutex_unlock(&q.mutex)
    relaxed_add(&q.taken if status == ST_OK else &q.refused, 1)
    return status


cdef Call* calls_take(CallQueue* q, int64_t until_us) noexcept nogil:
    """Wait for a call and take it.  Calls that were put before a stop are still given out."""
    cdef Call* call
    cdef timespec deadline
    cdef bint late = False
    deadline.tv_sec = until_us // 1000000
    deadline.tv_nsec = until_us % 1000000 * 1000
    pthread_mutex_lock(&q.mutex)
    while q.head == NULL and not (q.woken or q.stopped or late):
        late = pthread_cond_timedwait(&q.cond, &q.mutex, &deadline) != 0
    q.woken = False
    call = q.head
    if call != NULL:
        q.head = call.next
        call.next = NULL
    pthread_mutex_unlock(&q.mutex)
    return call


cdef void _discharge(CallQueue* q, Call* call) noexcept nogil:
    """Take a call off the accounts."""
    cdef Caller** at
    cdef Caller* caller
    if not call.counted:
        return
    pthread_mutex_lock(&q.mutex)
    at = _caller(q, call.name)
    caller = at[0]
    caller.calls -= 1
    caller.bytes -= _footprint(call)
    q.calls -= 1
    q.bytes -= _footprint(call)
    if caller.calls == 0:
        at[0] = caller.next
        free(caller)
    pthread_mutex_unlock(&q.mutex)
    call.counted = False


cdef void calls_give(CallQueue* q, Call* call) noexcept nogil:
    """Take a call off the accounts, and hand it back to where it came from."""
    _discharge(q, call)
    q.done(call.origin, call)


cdef void calls_drop(CallQueue* q, Call* call) noexcept nogil:
    """Take a call off the accounts, and release it."""
    _discharge(q, call)
    call_free(call)


cdef void calls_wake(CallQueue* q) noexcept nogil:
    """Make the thread that takes calls return without waiting, once."""
    pthread_mutex_lock(&q.mutex)
    q.woken = True
    pthread_cond_signal(&q.cond)
    pthread_mutex_unlock(&q.mutex)


cdef void calls_stop(CallQueue* q) noexcept nogil:
    """Take no more calls."""
    pthread_mutex_lock(&q.mutex)
    q.stopped = True
    pthread_cond_broadcast(&q.cond)
    pthread_mutex_unlock(&q.mutex)
