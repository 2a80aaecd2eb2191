"""Execution of faults: frozen sessions, closed connections, wrong, late and missing replies.

Locality: server loop.  Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.server.state cimport end_session, mark_dirty, refuse_request
from dataproxy._core.server.faults.table cimport (
    DO_CLOSE, DO_COPIES, DO_CORRUPT, DO_DELAY, DO_FOREIGN, DO_FREEZE, DO_GARBAGE, DO_LOAD, DO_NO_REPLY, DO_REFUSE,
    DO_REVERSE, DO_SLICE, NUMBER_NEXT, NUMBER_OTHER, NUMBER_PREVIOUS, NUMBER_SETTLED, POINT_CONNECT, POINT_DATA,
    POINT_HEARTBEAT, SIDE_READ, SIDE_WRITE, STAGE_AFTER_STORE, STAGE_BEFORE_STORE, FaultEvent, faults_has,
    faults_judge, faults_note, faults_other, faults_rate, faults_reached, faults_room, faultsession_new, held_bytes,
    held_insert, held_new,
)
from dataproxy._core.server.session cimport (
    CLOSE_FAULT, CLOSE_MEMORY, HOLD_FROZEN, HOLD_SLOW, session_reply, session_unsent,
)
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.atomic cimport relaxed_add
from dataproxy._core.plat.socket cimport SO_LINGER, SOL_SOCKET, linger, setsockopt
from dataproxy._core.wire.api cimport EV_ACK, REQ_CALL, REQ_CLOSE, Request, ServerProfile, WireEvent

cdef enum:
    SLOW_STEPS = 100            # reads in a second of a slow connection
    SECOND_US = 1000000
    FAR_AWAY = 0x40000000       # no client has so many requests open


cdef bint _event(Session* s, FaultEvent* event, Slice group, Slice stream) noexcept nogil:
    """Describe what happens at a connection; false without memory."""
    if s.faults == NULL:
        s.faults = faultsession_new()
        if s.faults == NULL:
            return False
    event.listener = s.listener
    event.connection = s.number
    event.group = group
    event.stream = stream
    event.tally = &s.faults.tally
    return True


cdef void _freeze(ServerLoop* d, Session* s, const FaultWhat* what) noexcept nogil:
    """Stop reading a session, or writing to it, until the rule is taken out."""
    s.faults.frozen_by = what.frozen_by
    if what.side & SIDE_READ:
        s.hold |= HOLD_FROZEN
    if what.side & SIDE_WRITE:
        s.faults.mute = True
    mark_dirty(d, s)


cdef void _close(ServerLoop* d, Session* s, bint resets) noexcept nogil:
    """Close a session once everything before this moment is answered."""
    cdef linger at_once
    if resets and not s.faults.resets:
        s.faults.resets = True
        at_once.l_onoff = 1
        at_once.l_linger = 0
        setsockopt(s.transport.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(linger))
    end_session(d, s, CLOSE_FAULT)


cdef void misbehave_connect(ServerLoop* d, Session* s) noexcept nogil:
    """Act on a connection that was just accepted.

    Locks: takes FaultTable.mutex.
    """
    cdef FaultEvent event
    cdef FaultWhat what
    if not _event(s, &event, slice_of(NULL, 0), slice_of(NULL, 0)):
        return
    if not faults_judge(d.shared.faults, POINT_CONNECT, &event, &what):
        return
    if what.actions & DO_FREEZE:
        _freeze(d, s, &what)
    if what.actions & DO_CLOSE:
        _close(d, s, what.reset)


cdef int misbehave_frame(ServerLoop* d, Session* s, const uint8_t* p, size_t n, int64_t receive_ms,
                         FaultWhat* what) noexcept nogil:
    """Act on a whole frame that ``d.request`` has judged; may change that judgement.

    Locks: takes FaultTable.mutex.
    """
    cdef Request* r = &d.request
    cdef bint heartbeat = r.heartbeat
    cdef FaultEvent event
    cdef uint32_t number = 0
    cdef int status = ST_OK
    what.actions = 0
    if r.action == REQ_CLOSE or r.action == REQ_CALL or not _event(s, &event, r.group, r.stream):
        return FRAME_GOES_ON
    if not heartbeat and _number_of(s, slice_of(r.reply.p, r.reply.n), &number):
        faults_note(d.shared.faults, &event, number)
    if s.faults.judged:
        s.faults.judged = False
        return FRAME_GOES_ON
    if not faults_judge(d.shared.faults, POINT_HEARTBEAT if heartbeat else POINT_DATA, &event, what):
        return FRAME_GOES_ON
    if what.actions & DO_FREEZE:
        _freeze(d, s, what)
        if what.side & SIDE_READ:
            s.faults.judged = True
            return FRAME_STAYS
    if what.actions & DO_CLOSE and what.stage == STAGE_BEFORE_STORE:
        _close(d, s, what.reset)
        return FRAME_DONE
    if what.actions & DO_REFUSE and r.code == 0 and not heartbeat:
        status = _refuse(d, s, p, n, receive_ms, what)
    elif what.actions & DO_LOAD and heartbeat:
        status = _serve_again(d, s, p, n, receive_ms, 0, what.load)
    if status != ST_OK:
        end_session(d, s, CLOSE_MEMORY)
        return FRAME_DONE
    if what.actions & DO_CLOSE and what.stage == STAGE_AFTER_STORE:
        what.actions |= DO_NO_REPLY
    return FRAME_GOES_ON


cdef int _serve_again(
    ServerLoop* d, const Session* s, const uint8_t* p, size_t n, int64_t receive_ms, int code, int load,
) noexcept nogil:
    """Judge the frame as a proxy in another state does."""
    cdef ServerProfile profile = d.profile
    profile.service_code = code
    profile.load = load
    d.request.reply.n = 0
    d.request.entry.n = 0
    return s.wire.serve(&profile, p, n, receive_ms, &d.request)


cdef int _refuse(
    ServerLoop* d, const Session* s, const uint8_t* p, size_t n, int64_t receive_ms, const FaultWhat* what,
) noexcept nogil:
    """Turn the result into a refusal: without a text as of a proxy in that state, with one as of a full queue."""
    if what.text_n == 0:
        return _serve_again(d, s, p, n, receive_ms, what.code, d.profile.load)
    return refuse_request(d, s, what.code, what.text)


cdef void misbehave_after(ServerLoop* d, Session* s, const FaultWhat* what) noexcept nogil:
    """Close behind a frame that was taken, where a rule says so."""
    if what.actions & DO_CLOSE:
        _close(d, s, what.reset)


cdef int misbehave_reply(ServerLoop* d, Session* s, const FaultWhat* what, Slice reply) noexcept nogil:
    """Send a reply as the rules want it: ST_OK or ST_NO_MEMORY.

    Locks: takes FaultTable.mutex.
    """
    cdef size_t garbage = what.garbage_n if what.actions & DO_GARBAGE else 0
    cdef int copies = what.copies if what.actions & DO_COPIES else 1
    cdef uint8_t* at
    cdef Held* held
    cdef uint32_t number = 0
    cdef int _i
    if what.actions & DO_NO_REPLY or reply.n == 0:
        return ST_OK
    held = held_new(<size_t>copies * (garbage + reply.n))
    if held == NULL:
        return ST_NO_MEMORY
    held.session = s.id
    held.single = (what.actions & DO_SLICE) != 0
    at = held_bytes(held)
    for _i in range(copies):
        if garbage > 0:
            memcpy(at, what.garbage, garbage)
        at += garbage
        memcpy(at, reply.p, reply.n)
        _spoil(d, s, what, at, reply.n)
        at += reply.n
    if s.faults != NULL and _number_of(s, reply, &number):
        s.faults.answered = True
        s.faults.answered_number = number
    # Replies collected for a removed rule would never be sent.
    if what.actions & DO_REVERSE and faults_has(d.shared.faults, what.reversed_by):
        s.pending += 1
        held.next = s.faults.reversed
        s.faults.reversed = held
        s.faults.reversed_count += 1
        s.faults.reversed_by = what.reversed_by
        return give_reversed(d, s) if s.faults.reversed_count >= what.batch else ST_OK
    if what.actions & DO_DELAY:
        s.pending += 1
        held.due_us = d.now_us + what.delay_us
        held_insert(&d.delayed, held)
        return ST_OK
    return give_reply(d, s, held)


cdef bint _number_of(const Session* s, Slice reply, uint32_t* number) noexcept nogil:
    """Read which request a reply answers; false when it does not say."""
    cdef WireEvent answer
    if reply.n == 0 or s.wire.parse_reply(reply.p, reply.n, &answer) != ST_OK:
        return False
    number[0] = answer.seq
    return answer.kind == EV_ACK and answer.has_seq


cdef void _foreign(ServerLoop* d, Session* s, int which, uint8_t* reply, size_t n) noexcept nogil:
    """Make a reply answer another request; if there is no other request, the reply stays unchanged.

    Locks: takes FaultTable.mutex.
    """
    cdef FaultEvent event
    cdef uint32_t number = 0
    cdef uint32_t own = 0
    if not _number_of(s, slice_of(reply, n), &own) or not _event(s, &event, slice_of(NULL, 0), slice_of(NULL, 0)):
        return
    number = own ^ <uint32_t>FAR_AWAY
    if which == NUMBER_NEXT:
        number = own + 1
    elif which == NUMBER_PREVIOUS:
        number = own - 1
    elif which == NUMBER_OTHER and not faults_other(d.shared.faults, &event, &number):
        return
    elif which == NUMBER_SETTLED:
        number = s.faults.answered_number if s.faults.answered else own
    s.wire.misaddress(reply, n, number)


cdef void _spoil(ServerLoop* d, Session* s, const FaultWhat* what, uint8_t* reply, size_t n) noexcept nogil:
    """Change the bytes of a reply in place.  Locks: takes FaultTable.mutex."""
    cdef int64_t at = what.corrupt_at
    if what.actions & DO_FOREIGN:
        _foreign(d, s, what.number, reply, n)
    if what.actions & DO_CORRUPT:
        at = at if at >= 0 else at + <int64_t>n
        if 0 <= at < <int64_t>n:
            reply[at] ^= what.mask


cdef int give_reply(ServerLoop* d, Session* s, Held* held) noexcept nogil:
    """Queue a reply for the peer and free its block: ST_OK or ST_NO_MEMORY."""
    cdef int status = session_reply(s, slice_of(held_bytes(held), held.n))
    if status == ST_OK:
        relaxed_add(&d.counters.replies, 1)
        if held.single:
            s.faults.single = session_unsent(s)
        mark_dirty(d, s)
    free(held)
    return status


cdef int give_reversed(ServerLoop* d, Session* s) noexcept nogil:
    """Queue the collected replies, the newest first: ST_OK or ST_NO_MEMORY."""
    cdef Held* held
    cdef int status = ST_OK
    while s.faults.reversed != NULL:
        held = s.faults.reversed
        s.faults.reversed = held.next
        dp_assert(s.pending > 0, "a reply that is let go was held back: pending=%ld", s.pending)
        s.pending -= 1
        if give_reply(d, s, held) != ST_OK:
            status = ST_NO_MEMORY
    s.faults.reversed_count = 0
    s.faults.reversed_by = 0
    return status


cdef size_t misbehave_room(ServerLoop* d, Session* s, size_t room) noexcept nogil:
    """Return how much of ``room`` may be read now; a slow connection is not read again for a while.

    Locks: takes FaultTable.mutex.
    """
    cdef FaultEvent event
    cdef Held* pause
    cdef int64_t most
    cdef int64_t rate
    if not _event(s, &event, slice_of(NULL, 0), slice_of(NULL, 0)):
        return room
    most = faults_room(d.shared.faults, &event, s.received_bytes)
    if most >= 0 and <size_t>most < room:
        room = <size_t>most
    rate = faults_rate(d.shared.faults, &event)
    pause = held_new(0) if rate > 0 else NULL
    if pause == NULL:
        return room
    pause.session = s.id
    most = rate // SLOW_STEPS if rate > SLOW_STEPS else 1
    pause.due_us = d.now_us + most * SECOND_US // rate
    held_insert(&d.delayed, pause)
    s.hold |= HOLD_SLOW
    mark_dirty(d, s)
    return <size_t>most if <size_t>most < room else room


cdef void misbehave_received(ServerLoop* d, Session* s) noexcept nogil:
    """Act on the bytes that a connection has received by now.

    Locks: takes FaultTable.mutex.
    """
    cdef FaultEvent event
    cdef FaultWhat what
    if s.closed or not _event(s, &event, slice_of(NULL, 0), slice_of(NULL, 0)):
        return
    if not faults_reached(d.shared.faults, &event, s.received_bytes, &what):
        return
    if what.actions & DO_FREEZE:
        _freeze(d, s, &what)
    if what.actions & DO_CLOSE:
        _close(d, s, what.reset)
