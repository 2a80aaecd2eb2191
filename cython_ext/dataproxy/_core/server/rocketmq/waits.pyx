"""The desk of a server loop for pulls that wait: making, linking and releasing waits costs the same for any number.

Locality: server loop.  Locks: none.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport buf_free
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.arrivals cimport arrivals_watch
from dataproxy._core.server.calls cimport calls_drop
from dataproxy._core.server.rocketmq.lines cimport Line, Wait
from dataproxy._core.server.rocketmq.remoting cimport Remoting
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.server.store.visits cimport visit_free, visit_init


cdef Pulls* pulls_of(ServerLoop* d) noexcept nogil:
    """Return the loop's desk."""
    cdef Pulls* f = <Pulls*>d.pulls
    if f == NULL:
        f = <Pulls*>calloc(1, sizeof(Pulls))
        if f == NULL:
            return NULL
        visit_init(&f.visit)
        f.tick = d.now_us // TICK_US
        d.pulls = <void*>f
    return f


cdef void pulls_free(ServerLoop* d) noexcept nogil:
    """Release the desk and what waits there."""
    cdef Pulls* f = <Pulls*>d.pulls
    cdef int i
    if f == NULL:
        return
    for i in range(<int>TICKS):
        while f.ends[i] != NULL:
            wait_free(d, f.ends[i])
    visit_free(&f.visit)
    buf_free(&f.tags)
    buf_free(&f.streams)
    buf_free(&f.odd)
    buf_free(&f.command)
    buf_free(&f.properties)
    free(f)
    d.pulls = NULL


cdef Wait* wait_new(ServerLoop* d, Line* line, uint64_t session, Slice request, int64_t due_us) noexcept nogil:
    """Make a wait that is in no list yet."""
    cdef Pulls* f = pulls_of(d)
    cdef Wait* w
    if f == NULL or f.waits >= LOOP_WAITS or line.waits >= SESSION_WAITS or request.n > WAIT_MOST:
        return NULL
    w = <Wait*>malloc(sizeof(Wait) + request.n)
    if w == NULL:
        return NULL
    memset(w, 0, sizeof(Wait))
    if request.n:
        memcpy(w + 1, request.p, request.n)
    w.n = request.n
    w.line = line
    w.session = session
    w.due_us = min(due_us, d.now_us + <int64_t>WAIT_LONGEST_US)
    return w


cdef void wait_link(ServerLoop* d, Wait* w, int bucket) noexcept nogil:
    """Put a wait into its lists."""
    cdef Pulls* f = <Pulls*>d.pulls
    w.bucket = bucket
    w.slot = <int>(max(w.due_us // TICK_US, f.tick + 1) % TICKS)
    w.tick.next = f.ends[w.slot]
    if w.tick.next != NULL:
        w.tick.next.tick.prev = w
    f.ends[w.slot] = w
    w.peers.next = f.buckets[bucket]
    if w.peers.next != NULL:
        w.peers.next.peers.prev = w
    f.buckets[bucket] = w
    w.own.next = w.line.first_wait
    if w.own.next != NULL:
        w.own.next.own.prev = w
    w.line.first_wait = w
    w.line.waits += 1
    f.waits += 1
    arrivals_watch(&(<Remoting*>d.shared.remoting).news, bucket, d.number, 1)
    if d.pull_due_us == 0 or w.due_us < d.pull_due_us:
        d.pull_due_us = w.due_us


cdef void wait_free(ServerLoop* d, Wait* w) noexcept nogil:
    """Take a wait out of its lists, and release it; a call that it still has is dropped."""
    cdef Pulls* f = <Pulls*>d.pulls
    cdef Remoting* r = <Remoting*>d.shared.remoting
    if w.tick.prev != NULL:
        w.tick.prev.tick.next = w.tick.next
    else:
        f.ends[w.slot] = w.tick.next
    if w.tick.next != NULL:
        w.tick.next.tick.prev = w.tick.prev
    if w.peers.prev != NULL:
        w.peers.prev.peers.next = w.peers.next
    else:
        f.buckets[w.bucket] = w.peers.next
    if w.peers.next != NULL:
        w.peers.next.peers.prev = w.peers.prev
    if w.own.prev != NULL:
        w.own.prev.own.next = w.own.next
    else:
        w.line.first_wait = w.own.next
    if w.own.next != NULL:
        w.own.next.own.prev = w.own.prev
    w.line.waits -= 1
    f.waits -= 1
    arrivals_watch(&r.news, w.bucket, d.number, -1)
    if w.call != NULL:
        calls_drop(&r.queue, w.call)
    free(w)


cdef Wait* wait_find(const Line* line, uint64_t mark) noexcept nogil:
    """Find what waits on a connection for the same queue and group; NULL: nothing does."""
    cdef Wait* w = line.first_wait
    while w != NULL and (w.mark != mark or w.call != NULL):
        w = w.own.next
    return w


cdef void waits_forget(ServerLoop* d, Session* s) noexcept nogil:
    """Release what a closed connection waits for."""
    cdef Line* line = <Line*>s.line
    while line != NULL and line.first_wait != NULL:
        wait_free(d, line.first_wait)


cdef void waits_due(ServerLoop* d) noexcept nogil:
    """Set when the loop has to look at its waits again."""
    cdef Pulls* f = <Pulls*>d.pulls
    cdef int64_t tick = f.tick + 1
    d.pull_due_us = 0
    if f.waits == 0:
        return
    if f.again:
        d.pull_due_us = d.now_us
        return
    while f.ends[tick % TICKS] == NULL:
        tick += 1
    d.pull_due_us = tick * TICK_US
