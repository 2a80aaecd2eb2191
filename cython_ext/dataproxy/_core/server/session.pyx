"""Connections of one server loop: a table with generations, the idle order, buffered replies.

Locks: none.
"""

from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove

from dataproxy._core.base.buf cimport buf_free, buf_put_slice
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_WANT_READ, ST_WANT_WRITE
from dataproxy._core.server.faults.table cimport faultsession_free
from dataproxy._core.net.poller cimport POLL_READ, POLL_WRITE, poller_set
from dataproxy._core.net.recvbuf cimport recvbuf_free, recvbuf_init
from dataproxy._core.net.transport cimport transport_init, transport_tcp
from dataproxy._core.plat.assertion cimport dp_assert
from dataproxy._core.plat.socket cimport SIOCOUTQ, ioctl, iovec

cdef enum:
    OUTPUT_KEEP = 4096      # a larger reply buffer is given back once it is written
    DISCARD_CHUNK = 32768
    DISCARD_READS = 32


cdef void table_init(SessionTable* t) noexcept nogil:
    """Make an empty table.

    Locality: server loop.
    """
    t.slots = NULL
    t.generations = NULL
    t.vacant = NULL
    t.vacant_n = 0
    t.size = 0
    t.room = 0
    t.count = 0
    t.idle_first = NULL
    t.idle_last = NULL


cdef void table_free(SessionTable* t) noexcept nogil:
    """Close and free every session and the table.

    Locality: server loop, or its owner after the loop has ended.
    """
    cdef uint32_t i
    for i in range(t.size):
        if t.slots[i] != NULL:
            session_free(t.slots[i])
    free(t.slots)
    free(t.generations)
    free(t.vacant)
    table_init(t)


cdef int _grow(SessionTable* t) noexcept nogil:
    """Double the slots.  Locality: server loop."""
    cdef uint32_t room = t.room * 2 if t.room > 0 else 64
    cdef void* p
    p = realloc(t.slots, room * sizeof(Session*))
    if p == NULL:
        return ST_NO_MEMORY
    t.slots = <Session**>p
    p = realloc(t.generations, room * sizeof(uint32_t))
    if p == NULL:
        return ST_NO_MEMORY
    t.generations = <uint32_t*>p
    p = realloc(t.vacant, room * sizeof(uint32_t))
    if p == NULL:
        return ST_NO_MEMORY
    t.vacant = <uint32_t*>p
    t.room = room
    return ST_OK


cdef Session* table_add(SessionTable* t, size_t receive_limit) noexcept nogil:
    """Make a session with an id that was never used before.

    Locality: server loop.
    """
    cdef Session* s
    cdef uint32_t slot
    if t.vacant_n == 0 and t.size == t.room and _grow(t) != ST_OK:
        return NULL
    s = <Session*>calloc(1, sizeof(Session))
    if s == NULL:
        return NULL
    if t.vacant_n > 0:
        t.vacant_n -= 1
        slot = t.vacant[t.vacant_n]
    else:
        slot = t.size
        t.size += 1
        t.generations[slot] = 1
    s.id = (<uint64_t>t.generations[slot] << 32) | slot
    transport_init(&s.transport, transport_tcp())
    recvbuf_init(&s.received, receive_limit)
    t.slots[slot] = s
    t.count += 1
    dp_assert(t.count + t.vacant_n == t.size, "count + vacant_n == size: count=%ld, vacant_n=%u, size=%u",
              t.count, t.vacant_n, t.size)
    _append_idle(t, s)
    return s


cdef Session* table_find(SessionTable* t, uint64_t id) noexcept nogil:
    """Return the session with this id if it is still open.

    Locality: server loop.
    """
    cdef uint32_t slot = <uint32_t>(id & 0xFFFFFFFFU)
    if slot >= t.size or t.slots[slot] == NULL or t.slots[slot].id != id:
        return NULL
    return t.slots[slot]


cdef void table_remove(SessionTable* t, Session* s) noexcept nogil:
    """Take a session out; its id is not found any more.

    Locality: server loop.
    """
    cdef uint32_t slot = <uint32_t>(s.id & 0xFFFFFFFFU)
    dp_assert(t.slots[slot] == s, "a session is taken out of the table once: id=%lu", s.id)
    t.slots[slot] = NULL
    t.generations[slot] += 1
    if t.generations[slot] == 0:
        t.generations[slot] = 1
    t.vacant[t.vacant_n] = slot
    t.vacant_n += 1
    t.count -= 1
    dp_assert(t.count + t.vacant_n == t.size, "count + vacant_n == size: count=%ld, vacant_n=%u, size=%u",
              t.count, t.vacant_n, t.size)
    _remove_idle(t, s)


cdef void table_touch(SessionTable* t, Session* s, int64_t now_us) noexcept nogil:
    """Restart the idle time of a session.

    Locality: server loop.
    """
    s.active_us = now_us
    if t.idle_last != s:
        _remove_idle(t, s)
        _append_idle(t, s)


cdef void _append_idle(SessionTable* t, Session* s) noexcept nogil:
    """Make the session the most recent one.  Locality: server loop."""
    s.idle_prev = t.idle_last
    s.idle_next = NULL
    if t.idle_last != NULL:
        t.idle_last.idle_next = s
    else:
        t.idle_first = s
    t.idle_last = s


cdef void _remove_idle(SessionTable* t, Session* s) noexcept nogil:
    """Take the session out of the idle order.  Locality: server loop."""
    if s.idle_prev != NULL:
        s.idle_prev.idle_next = s.idle_next
    else:
        t.idle_first = s.idle_next
    if s.idle_next != NULL:
        s.idle_next.idle_prev = s.idle_prev
    else:
        t.idle_last = s.idle_prev


cdef void session_free(Session* s) noexcept nogil:
    """Close the socket and free everything.

    Locality: server loop, or its owner after the loop has ended.
    """
    cdef Answer* answer
    s.transport.ops.close(&s.transport)
    recvbuf_free(&s.received)
    while s.waiting != NULL:
        answer = s.waiting
        s.waiting = answer.next
        answer_free(answer)
    buf_free(&s.output)
    free(s.polls)
    free(s.line)
    faultsession_free(s.faults)
    free(s)


cdef Slice session_source(Session* s) noexcept nogil:
    """Return the peer's numeric address.

    Locality: server loop.
    """
    return slice_of(s.source, s.source_n)


cdef int session_reply(Session* s, Slice reply) noexcept nogil:
    """Append one reply to what will be written.

    Locality: server loop.
    """
    return buf_put_slice(&s.output, reply)


cdef int session_keep(Session* s, int64_t place, Slice reply, const FaultWhat* what) noexcept nogil:
    """Keep an answer until the requests before its own have theirs.

    Locality: server loop.
    """
    cdef Answer** at = &s.waiting
    cdef Answer* answer = <Answer*>malloc(sizeof(Answer) + reply.n)
    if answer == NULL:
        return ST_NO_MEMORY
    answer.place = place
    answer.fault = NULL
    answer.n = reply.n
    if reply.n > 0:
        memcpy(answer + 1, reply.p, reply.n)
    if what != NULL:
        answer.fault = <FaultWhat*>malloc(sizeof(FaultWhat))
        if answer.fault == NULL:
            free(answer)
            return ST_NO_MEMORY
        answer.fault[0] = what[0]
    if s.waiting_last != NULL and s.waiting_last.place < place:
        at = &s.waiting_last.next       # requests are judged in their order, so this is the rule
    while at[0] != NULL and at[0].place < place:
        at = &at[0].next
    answer.next = at[0]
    at[0] = answer
    if answer.next == NULL:
        s.waiting_last = answer
    s.waiting_bytes += sizeof(Answer) + reply.n
    return ST_OK


cdef Answer* session_next(Session* s) noexcept nogil:
    """Take out the kept answer that follows the last one given, if it is there.

    Locality: server loop.
    """
    cdef Answer* answer = s.waiting
    if answer == NULL or answer.place != s.answered + 1:
        return NULL
    s.waiting = answer.next
    if s.waiting == NULL:
        s.waiting_last = NULL
    dp_assert(s.waiting_bytes >= sizeof(Answer) + answer.n, "waiting_bytes covers the answer: waiting_bytes=%zu, n=%zu",
              s.waiting_bytes, answer.n)
    s.waiting_bytes -= sizeof(Answer) + answer.n
    return answer


cdef void answer_free(Answer* answer) noexcept nogil:
    """Release a kept answer.  Locality: server loop, or its owner after the loop has ended."""
    free(answer.fault)
    free(answer)


cdef size_t session_unsent(const Session* s) noexcept nogil:
    """Return the reply bytes that the peer has not taken.

    Locality: server loop.
    """
    return s.output.n - s.output_start + s.transport.unsent


cdef int session_flush(Session* s, size_t* sent) noexcept nogil:
    """Write replies until all are gone or the socket is full.

    Locality: server loop.
    """
    cdef iovec part
    cdef size_t taken = 0
    cdef int status
    sent[0] = 0
    while s.output_start < s.output.n or s.transport.unsent > 0:
        part.iov_base = s.output.p + s.output_start
        part.iov_len = s.output.n - s.output_start
        status = ST_OK
        if s.faults != NULL:
            status = _hamper(s, &part)
        if status == ST_OK:
            status = s.transport.ops.send(&s.transport, &part, 1 if part.iov_len > 0 else 0, &taken)
        if status != ST_OK:
            _compact(s)
            return status
        s.output_start += taken
        sent[0] += taken
        dp_assert(s.output_start <= s.output.n, "what is written is in the buffer: output_start=%zu, n=%zu",
                  s.output_start, s.output.n)
    s.output_start = 0
    s.output.n = 0
    if s.output.cap > OUTPUT_KEEP:
        buf_free(&s.output)
    return ST_OK


cdef int _hamper(Session* s, iovec* part) noexcept nogil:
    """Reduce a write to what a fault permits: nothing, or one byte.  Locality: server loop."""
    if s.faults.mute:
        return ST_WANT_WRITE
    if s.faults.single > 0:
        s.faults.single -= 1
        part.iov_len = 1
    return ST_OK


cdef void _compact(Session* s) noexcept nogil:
    """Move unwritten replies to the start of the buffer, if most of it holds written ones.

    Locality: server loop.
    """
    cdef size_t left = s.output.n - s.output_start
    if s.output_start > left:
        memmove(s.output.p, s.output.p + s.output_start, left)
        s.output.n = left
        s.output_start = 0


cdef int session_linger(Session* s) noexcept nogil:
    """End our side of the stream.  Closing at once could reset it, and replies on their way would be lost.

    Locality: server loop.
    """
    s.lingers = True
    return s.transport.ops.end(&s.transport)


cdef bint session_delivered(const Session* s) noexcept nogil:
    """Tell whether everything written has reached the peer's machine.

    Locality: server loop.
    """
    cdef int waiting = 0
    return ioctl(s.transport.fd, SIOCOUTQ, &waiting) != 0 or waiting == 0


cdef int session_discard(Session* s) noexcept nogil:
    """Discard bytes that the peer has sent, up to a bound for each call; ST_OK, ST_EOF or ST_SYSTEM.

    Locality: server loop.
    """
    cdef uint8_t scrap[DISCARD_CHUNK]
    cdef size_t got = 0
    cdef int status
    cdef int _i
    for _i in range(DISCARD_READS):
        status = s.transport.ops.recv(&s.transport, scrap, DISCARD_CHUNK, &got)
        if status == ST_WANT_READ or status == ST_WANT_WRITE:
            return ST_OK
        if status != ST_OK:
            return status
    return ST_OK


cdef int session_watch(Session* s, Poller* p) noexcept nogil:
    """Tell the poller what the session waits for, if that changed.

    Locality: server loop.
    """
    cdef int interest = 0
    cdef int status
    if s.hold == 0 or s.lingers:
        interest |= POLL_READ
    if session_unsent(s) > 0 and not (s.faults != NULL and s.faults.mute):
        interest |= POLL_WRITE
    if interest & POLL_READ and s.transport.more:
        interest |= POLL_WRITE      # what can be read is here already, and the socket says nothing about it
    if interest == s.interest:
        return ST_OK
    status = poller_set(p, &s.transport, <void*>s.id, interest)
    if status == ST_OK:
        s.interest = interest
    return status
