"""Answers of one connection are sent in the order of its requests, whatever each of them waits for.

A request that goes to the store is answered after its commit; a heartbeat or a refusal could be answered at once.
The reference server answers in order, and clients rely on that, most of all clients that do not read sequence numbers.
So every request gets a place when it is judged, and an answer that is known too early waits in the session for the
answers before it.
Commits come back in order, so answers wait only because of heartbeats and refusals.
Clients of a wire that answers in any order match an answer to its request by its number: there nothing waits.

Locality: server loop.  Locks: none, except where a function says otherwise.
"""

from libc.stddef cimport size_t

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.server.state cimport end_session, is_compat, mark_dirty
from dataproxy._core.server.faults.misbehaviour cimport misbehave_reply
from dataproxy._core.server.session cimport (
    CLOSE_MEMORY, Answer, answer_free, session_keep, session_next, session_reply, session_unsent,
)
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load, relaxed_store

cdef enum:
    CALL_OWED = 512             # bytes of an answer to a call, for the bound of those that a connection has to come
    OWED = 4                    # times reply_bytes: limit for the answers of entries that are at the store


cdef int64_t answer_place(Session* s) noexcept nogil:
    """Return the place of the request that was just judged."""
    s.places += 1
    return s.places


cdef bint answers_abound(const ServerLoop* d, const Session* s) noexcept nogil:
    """Tell whether a session has more answers to come than the limits permit."""
    return session_unsent(s) + s.waiting_bytes > d.shared.reply_bytes or s.owed_bytes > OWED * d.shared.reply_bytes


cdef bint answers_subside(const ServerLoop* d, const Session* s) noexcept nogil:
    """Tell whether there is room for answers again.  With compat, a peer with too many unread answers is closed."""
    cdef size_t most = d.shared.reply_bytes // 2
    cdef size_t unread = d.shared.reply_bytes if is_compat(d, s) else most
    return session_unsent(s) + s.waiting_bytes <= unread and s.owed_bytes <= OWED * most


cdef int answer_give(ServerLoop* d, Session* s, int64_t place, Slice reply, const FaultWhat* what) noexcept nogil:
    """Send the answer of one request as soon as every earlier request has its own.

    A fault changes the answer when its turn comes; later answers do not wait for a delay that the fault causes.
    Locks: takes FaultTable.mutex where ``what`` is given.
    """
    cdef Answer* answer
    cdef int status
    if s.wire.any_order:
        return _send(d, s, reply, what)
    if place != s.answered + 1:
        return _keep(d, s, place, reply, what)
    status = _send(d, s, reply, what)
    s.answered = place
    while status == ST_OK:
        answer = session_next(s)
        if answer == NULL:
            break
        _count_kept(d, -<int64_t>(sizeof(Answer) + answer.n))
        status = _send(d, s, slice_of(<const char*>(answer + 1), answer.n), answer.fault)
        s.answered = answer.place
        answer_free(answer)
    return status


cdef int _keep(ServerLoop* d, Session* s, int64_t place, Slice reply, const FaultWhat* what) noexcept nogil:
    """Keep an answer until its turn: it waits for the store, too."""
    cdef size_t before = s.waiting_bytes
    cdef int status = session_keep(s, place, reply, what)
    _count_kept(d, <int64_t>(s.waiting_bytes - before))
    return status


cdef void _count_kept(ServerLoop* d, int64_t bytes) noexcept nogil:
    """Add ``bytes`` to the size of the answers that are kept."""
    relaxed_store(&d.queued_bytes, relaxed_load(&d.queued_bytes) + bytes)


cdef int _send(ServerLoop* d, Session* s, Slice reply, const FaultWhat* what) noexcept nogil:
    """Queue an answer for the peer.  Locks: takes FaultTable.mutex where ``what`` is given."""
    if reply.n == 0:
        return ST_OK
    if what != NULL:
        return misbehave_reply(d, s, what, reply)
    relaxed_add(&d.counters.replies, 1)
    mark_dirty(d, s)
    return session_reply(s, reply)


cdef void call_owe(ServerLoop* d, Session* s) noexcept nogil:
    """Note that a session has an answer to come."""
    s.pending += 1
    s.owed_bytes += CALL_OWED


cdef void call_forgive(Session* s) noexcept nogil:
    """Note that a session has an answer less to come."""
    s.pending -= 1
    s.owed_bytes -= CALL_OWED


cdef void call_pay(ServerLoop* d, Session* s, const void* frame, size_t n) noexcept nogil:
    """Give a session an answer that it was owed."""
    call_forgive(s)
    mark_dirty(d, s)
    if answer_give(d, s, answer_place(s), slice_of(frame, n), NULL) != ST_OK:
        end_session(d, s, CLOSE_MEMORY)
