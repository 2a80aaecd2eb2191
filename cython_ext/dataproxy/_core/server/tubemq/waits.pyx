"""Requests that wait for messages: each ends with the first entry of its partition, or with its time.

A client may have fewer threads than partitions.  While one of its requests waits, a thread of it does too; so nothing
waits that is asked for the first time, and a wait ends early if the same connection does not ask for a partition which
is known to have messages.

Locality: server loop.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.plat.atomic cimport atomic_load
from dataproxy._core.server.arrivals cimport arrivals_watch
from dataproxy._core.server.session cimport HOLD_ENDING
from dataproxy._core.server.state cimport LOOP_RUNS
from dataproxy._core.server.tubemq.broker cimport TubeBroker


# ---- What a connection asks for.


cdef bint polls_begin(Session* s) noexcept nogil:
    """Begin to note what a connection asks for; False: no memory."""
    cdef Polls* polls = <Polls*>calloc(1, sizeof(Polls))
    if polls == NULL:
        return False
    polls.session = s.id
    s.polls = <void*>polls
    return True


cdef inline bint _has(const uint64_t* bits, int bucket) noexcept nogil:
    return bits[bucket >> 6] >> (bucket & 63) & 1


cdef inline void _set(uint64_t* bits, int bucket, bint value) noexcept nogil:
    cdef uint64_t one = <uint64_t>1 << (bucket & 63)
    bits[bucket >> 6] = bits[bucket >> 6] | one if value else bits[bucket >> 6] & ~one


cdef inline bint _any(const uint64_t* bits) noexcept nogil:
    return (bits[0] | bits[1] | bits[2] | bits[3]) != 0


cdef void polls_note(ServerLoop* d, Polls* p, int bucket, bint more) noexcept nogil:
    """Note what a request has found of its partition."""
    _set(p.behind, bucket, more)
    if more:
        p.behind_us = d.now_us
    if not _any(p.behind):
        p.late_us = 0
    elif p.late_us == 0:
        p.late_us = d.now_us + LATE_US
        if p.waits > 0:
            _look_again(d, p.late_us)


cdef void polls_forget(Polls* p, int bucket) noexcept nogil:
    """Forget a partition that the connection was told to leave alone: no wait is in its way."""
    _set(p.known, bucket, False)
    _set(p.behind, bucket, False)
    if not _any(p.behind):
        p.late_us = 0


# ---- One request.


cdef inline bint _may_wait(const ServerLoop* d, const Session* s, int64_t due_us) noexcept nogil:
    return due_us > d.now_us and not s.hold & HOLD_ENDING and atomic_load(&d.shared.phase) == LOOP_RUNS


cdef bint wait_add(ServerLoop* d, Waits* t, Session* s, const Wait* parts, Slice request) noexcept nogil:
    """Let a request wait; False: it is not to, and is answered now.

    ``parts``: its number, its bucket, and what it has seen.
    """
    cdef TubeBroker* b = <TubeBroker*>d.shared.broker
    cdef Polls* p = <Polls*>s.polls
    cdef bint known = _has(p.known, parts.bucket)
    cdef int64_t due_us = d.now_us + b.wait_us
    cdef Wait* w
    _set(p.known, parts.bucket, True)
    if (not known or p.waits >= SESSION_WAITS or t.waits >= LOOP_WAITS or request.n > WAIT_MOST
            or not _may_wait(d, s, due_us)):
        return False
    w = <Wait*>malloc(sizeof(Wait) + request.n)
    if w == NULL:
        return False
    w[0] = parts[0]
    memcpy(w + 1, request.p, request.n)
    w.n = request.n
    w.polls = p
    w.session = s.id
    w.due_us = due_us
    _link(d, t, p, w)
    _note(d, t, w)
    return True


cdef bint wait_renew(
    ServerLoop* d, Waits* t, const Session* s, Wait* w, const Standing* standing, int64_t arrived
) noexcept nogil:
    """Let a request that was asked again wait until its end; False: it is answered now."""
    if not _may_wait(d, s, w.due_us):
        return False
    w.standing = standing[0]
    w.arrived = arrived
    _note(d, t, w)
    return True


cdef void _note(ServerLoop* d, Waits* t, const Wait* w) noexcept nogil:
    """Look again at once if an entry came before anybody could know that it is waited for."""
    cdef TubeBroker* b = <TubeBroker*>d.shared.broker
    if atomic_load(&b.news.arrived[w.bucket]) != w.arrived:
        t.arrivals = -1
        _look_again(d, d.now_us)


cdef inline void _look_again(ServerLoop* d, int64_t at_us) noexcept nogil:
    """Look at what waits no later than this."""
    if d.fetch_due_us == 0 or at_us < d.fetch_due_us:
        d.fetch_due_us = at_us


cdef Slice wait_request(const Wait* w) noexcept nogil:
    """Return the bytes of the request."""
    return slice_of(<const uint8_t*>(w + 1), w.n)


cdef void _link(ServerLoop* d, Waits* t, Polls* p, Wait* w) noexcept nogil:
    """Add a wait, by its end."""
    cdef TubeBroker* b = <TubeBroker*>d.shared.broker
    w.prev = t.last
    while w.prev != NULL and w.prev.due_us > w.due_us:
        w.prev = w.prev.prev
    w.next = t.first if w.prev == NULL else w.prev.next
    if w.prev == NULL:
        t.first = w
    else:
        w.prev.next = w
    if w.next == NULL:
        t.last = w
    else:
        w.next.prev = w
    t.waits += 1
    _look_again(d, w.due_us)
    if p.late_us != 0:
        _look_again(d, p.late_us)
    if p.waits == 0:
        p.prev = NULL
        p.next = t.polls
        if t.polls != NULL:
            t.polls.prev = p
        t.polls = p
    p.waits += 1
    arrivals_watch(&b.news, w.bucket, d.number, 1)


cdef void wait_drop(ServerLoop* d, Waits* t, Wait* w) noexcept nogil:
    """Take a wait out, and release it."""
    cdef TubeBroker* b = <TubeBroker*>d.shared.broker
    cdef Polls* p = w.polls
    if w.prev == NULL:
        t.first = w.next
    else:
        w.prev.next = w.next
    if w.next == NULL:
        t.last = w.prev
    else:
        w.next.prev = w.prev
    t.waits -= 1
    p.waits -= 1
    if p.waits == 0:
        if p.prev == NULL:
            t.polls = p.next
        else:
            p.prev.next = p.next
        if p.next != NULL:
            p.next.prev = p.prev
    arrivals_watch(&b.news, w.bucket, d.number, -1)
    free(w)


# ---- All of them.


cdef void waits_follow(ServerLoop* d, Waits* t, WaitEnd end) noexcept nogil:
    """End requests whose partitions have got entries, that have waited for long enough, or that are in the way."""
    cdef TubeBroker* b = <TubeBroker*>d.shared.broker
    cdef int64_t arrivals
    if t.first == NULL:
        d.fetch_due_us = 0
        return
    arrivals = atomic_load(&b.news.changes)
    if arrivals != t.arrivals:
        t.arrivals = arrivals
        _follow_arrivals(d, b, t, end)
    while t.first != NULL and t.first.due_us <= d.now_us:
        end(d, t.first, True)
    _end_late(d, t, end)


cdef void _follow_arrivals(ServerLoop* d, TubeBroker* b, Waits* t, WaitEnd end) noexcept nogil:
    """Look again for whoever waits for a bucket that has got entries; note it for the connections that do not."""
    cdef uint64_t changed[BUCKET_WORDS]
    cdef Wait* w = t.first
    cdef Wait* following
    cdef Polls* p
    cdef int64_t arrived
    cdef int i
    memset(changed, 0, sizeof(changed))
    for i in range(<int>BUCKETS):
        arrived = atomic_load(&b.news.arrived[i])
        _set(changed, i, arrived != t.arrived[i])
        t.arrived[i] = arrived
    p = t.polls
    while p != NULL:
        _note_arrivals(d, p, changed)
        p = p.next
    while w != NULL:
        following = w.next
        if w.arrived < t.arrived[w.bucket]:     # one that has looked since then has seen more
            end(d, w, True)
        w = following


cdef void _note_arrivals(ServerLoop* d, Polls* p, const uint64_t* changed) noexcept nogil:
    """Note for a connection that partitions which it has asked for before have got entries."""
    cdef int i
    cdef bint some = False
    for i in range(<int>BUCKET_WORDS):
        some |= changed[i] & p.known[i] & ~p.behind[i]
        p.behind[i] |= changed[i] & p.known[i]
    if some:
        p.behind_us = d.now_us
        if p.late_us == 0:
            p.late_us = d.now_us + LATE_US


cdef void _end_late(ServerLoop* d, Waits* t, WaitEnd end) noexcept nogil:
    """End one wait of each connection that leaves messages of its partitions alone; set when this is due again."""
    cdef int64_t due = t.first.due_us if t.first != NULL else 0
    cdef Polls* p = t.polls
    cdef Polls* following
    cdef Wait* w
    while p != NULL:
        following = p.next
        if _any(p.behind) and d.now_us - p.behind_us > BEHIND_US:
            _forget_behind(p)
        if p.late_us != 0 and p.late_us <= d.now_us:
            w = t.first
            while w.session != p.session:
                w = w.next
            p.late_us = d.now_us + LATE_US
            end(d, w, False)
        if p.waits > 0 and p.late_us != 0 and p.late_us < due:
            due = p.late_us
        p = following
    if t.arrivals == -1:        # entries came while they were looked for
        due = d.now_us
    d.fetch_due_us = due if t.first != NULL else 0


cdef void _forget_behind(Polls* p) noexcept nogil:
    """Forget partitions that the connection leaves alone: they may be another consumer's now."""
    cdef int i
    for i in range(<int>BUCKET_WORDS):
        p.known[i] &= ~p.behind[i]
        p.behind[i] = 0
    p.late_us = 0


cdef void waits_end(ServerLoop* d, Waits* t, WaitEnd end) noexcept nogil:
    """End all."""
    while t.first != NULL:
        end(d, t.first, False)


cdef void waits_forget(ServerLoop* d, Waits* t, const Session* s) noexcept nogil:
    """Release what a closed connection waits for."""
    cdef Polls* p = <Polls*>s.polls
    cdef Wait* w = t.first
    cdef Wait* following
    while w != NULL and p != NULL and p.waits > 0:
        following = w.next
        if w.session == s.id:
            wait_drop(d, t, w)
        w = following


cdef void waits_free(Waits* t) noexcept nogil:
    """Release what waits."""
    cdef Wait* w
    while t.first != NULL:
        w = t.first
        t.first = w.next
        free(w)
