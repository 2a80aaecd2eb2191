"""Answers of one connection leave in the order of its requests, whatever each of them waits for.

A request that the store has to take is answered after its commit, a heartbeat or a refusal could be answered at once.
The reference server answers each in turn, and clients count on it, those that do not read numbers most of all.  So
every request gets a place when it is judged, and an answer that is known too early waits in the session for those
before it.
Commits come back in order, so that without heartbeats and refusals nothing ever waits.
"""

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.hub.doorstate cimport mark_dirty
from dataproxy._core.hub.misbehaviour cimport misbehave_reply
from dataproxy._core.hub.session cimport (
    Answer, answer_free, session_keep, session_next, session_reply, session_unsent,
)
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load, relaxed_store

cdef enum:
    OWED = 4                    # answers at the store may be so many times what may be unread


cdef int64_t answer_place(Session* s) noexcept nogil:
    """Return the place of the request that was just judged.

    Locality: door loop.
    Locks: none.
    """
    s.places += 1
    return s.places


cdef bint answers_abound(const Door* d, const Session* s) noexcept nogil:
    """Tell whether a session has more answers to come than it may, whoever they wait for.

    Locality: door loop.
    Locks: none.
    """
    return session_unsent(s) + s.waiting_bytes > d.shared.reply_bytes or s.owed_bytes > OWED * d.shared.reply_bytes


cdef bint answers_subside(const Door* d, const Session* s) noexcept nogil:
    """Tell whether there is room for answers again.  In compat a peer that leaves too much unread is closed, not held.

    Locality: door loop.
    Locks: none.
    """
    cdef size_t most = d.shared.reply_bytes // 2
    cdef size_t unread = d.shared.reply_bytes if d.profile.compat else most
    return session_unsent(s) + s.waiting_bytes <= unread and s.owed_bytes <= OWED * most


cdef int answer_give(Door* d, Session* s, int64_t place, Slice reply, const FaultWhat* what) noexcept nogil:
    """Send the answer of one request, once every earlier request has its own.

    What a fault does to it happens when it is the answer's turn, and those behind it do not wait for that.
    Locality: door loop.
    Locks: takes FaultTable.mutex where ``what`` is given.
    """
    cdef Answer* answer
    cdef int status
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


cdef int _keep(Door* d, Session* s, int64_t place, Slice reply, const FaultWhat* what) noexcept nogil:
    """Keep an answer until its turn: it waits for the store, too.  Locality: door loop.  Locks: none."""
    cdef size_t before = s.waiting_bytes
    cdef int status = session_keep(s, place, reply, what)
    _count_kept(d, <int64_t>(s.waiting_bytes - before))
    return status


cdef void _count_kept(Door* d, int64_t bytes) noexcept nogil:
    """Add to what waits for the store.  Locality: door loop.  Locks: none."""
    relaxed_store(&d.queued_bytes, relaxed_load(&d.queued_bytes) + bytes)


cdef int _send(Door* d, Session* s, Slice reply, const FaultWhat* what) noexcept nogil:
    """Queue an answer for the peer.  Locality: door loop.  Locks: takes FaultTable.mutex where ``what`` is given."""
    if reply.n == 0:
        return ST_OK
    if what != NULL:
        return misbehave_reply(d, s, what, reply)
    relaxed_add(&d.counters.replies, 1)
    mark_dirty(d, s)
    return session_reply(s, reply)
