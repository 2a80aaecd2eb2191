"""Requests go from a connection to the thread that answers them, and requests of the hub's own to a connection.

The thread knows a connection by a number: its place in the table of a server loop, with the table's count of uses and
the number of the loop.  A connection of which the thread has had a call tells its end, behind all its calls: the block
for that is there from the first call on.

Locality: server loop.  Locks: takes CallQueue.mutex.
"""

from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_init
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_FULL, ST_OK
from dataproxy._core.server.answers cimport answer_give, answer_place, call_forgive, call_owe
from dataproxy._core.server.calls cimport (
    ROLE_OWED, ROLE_UNOWED, Call, call_free, call_new, calls_put, calls_tell,
)
from dataproxy._core.server.rocketmq.remoting cimport KIND_ANSWER, KIND_CLOSED, KIND_REQUEST, Remoting
from dataproxy._core.server.session cimport CLOSE_MEMORY, CLOSE_REPLIES, Session, session_reply, session_unsent
from dataproxy._core.server.state cimport close_session, count_code, end_session, mark_dirty
from dataproxy._core.wire.rocketmq.const cimport (
    ANSWER_SERVICE_NOT_AVAILABLE, ANSWER_SYSTEM_BUSY, FLAG_ONE_WAY,
)
from dataproxy._core.wire.rocketmq.serve cimport COMMAND_ANSWER, put_refusal

cdef enum:
    LOOP_BITS = 6               # of a connection's number, below the table's count of uses ...
    SLOT_BITS = 26              # ... and above its place there


cdef uint64_t line_number(const ServerLoop* d, const Session* s) noexcept nogil:
    """Return the number of a connection."""
    return s.id >> 32 << 32 | <uint64_t>d.number << SLOT_BITS | s.id & ((<uint64_t>1 << SLOT_BITS) - 1)


cdef Line* line_of(ServerLoop* d, Session* s) noexcept nogil:
    """Return what is known of a session."""
    cdef Line* line = <Line*>s.line
    if line != NULL:
        return line
    line = <Line*>calloc(1, sizeof(Line))
    if line == NULL:
        return NULL
    memcpy(line.peer, s.source, s.source_n)
    line.farewell.peer = slice_of(line.peer, s.source_n)
    line.farewell.role = ROLE_UNOWED
    line.farewell.kind = KIND_CLOSED
    line.farewell.origin = <void*>d
    line.farewell.session = s.id
    line.farewell.connection = line_number(d, s)
    line.farewell.near, line.farewell.far = s.near, s.far
    buf_init(&line.farewell.answer)
    s.line = <void*>line
    return line


cdef void command_ask(ServerLoop* d, Session* s, const Request* r) noexcept nogil:
    """Put a request, or an answer, into the queue.  A request that has no room there is answered at once."""
    cdef Remoting* remoting = <Remoting*>d.shared.remoting
    cdef Line* line = <Line*>s.line
    cdef Call parts
    cdef Call* call
    cdef int status
    memset(&parts, 0, sizeof(Call))
    parts.role = ROLE_UNOWED if r.call_kind == COMMAND_ANSWER or r.version & FLAG_ONE_WAY else ROLE_OWED
    parts.kind = KIND_ANSWER if r.call_kind == COMMAND_ANSWER else KIND_REQUEST
    parts.origin = <void*>d
    parts.session = s.id
    parts.connection = line.farewell.connection
    parts.near, parts.far = s.near, s.far
    parts.name = s.holder.name
    parts.serial = r.serial
    parts.version = r.version
    parts.service = r.service
    parts.method = r.method
    parts.peer = slice_of(s.source, s.source_n)
    parts.request = r.call
    call = call_new(&parts)
    if call == NULL:
        end_session(d, s, CLOSE_MEMORY)
        return
    if parts.role == ROLE_OWED:
        call_owe(d, s)          # before the thread can answer
    line.known = True
    status = calls_put(&remoting.queue, call)
    if status == ST_OK:
        return
    call_free(call)
    if parts.role != ROLE_OWED:
        return
    call_forgive(s)
    if status == ST_FULL:
        command_refuse(d, s, r.service, <int32_t>r.serial, ANSWER_SYSTEM_BUSY,
                       b"too many requests of this address wait for an answer")
    else:
        command_refuse(d, s, r.service, <int32_t>r.serial, ANSWER_SERVICE_NOT_AVAILABLE, b"the hub stops")


cdef void command_refuse(
    ServerLoop* d, Session* s, int form, int32_t opaque, int32_t code, const char* words
) noexcept nogil:
    """Answer a request, which nobody owes, with a code."""
    cdef Buf* out = &d.request.reply
    out.n = 0
    count_code(d, code)
    if (put_refusal(out, form, opaque, code, words) != ST_OK
            or answer_give(d, s, answer_place(s), slice_of(out.p, out.n), NULL) != ST_OK):
        end_session(d, s, CLOSE_MEMORY)


cdef void line_order(ServerLoop* d, Session* s, Call* call) noexcept nogil:
    """Send a request of the hub's own.  A connection that does not read is closed, which the thread is told."""
    cdef Line* line = line_of(d, s)
    cdef Slice frame = slice_of(call.answer.p, call.answer.n)
    if line == NULL or session_unsent(s) > ORDERS_UNSENT:
        close_session(d, s, CLOSE_MEMORY if line == NULL else CLOSE_REPLIES)
        return
    line.asked += call.kind == KIND_ANSWER
    if session_reply(s, frame) != ST_OK:
        close_session(d, s, CLOSE_MEMORY)
        return
    mark_dirty(d, s)


cdef void line_close(ServerLoop* d, Session* s) noexcept nogil:
    """Release what a closed session has, without waits by now; the thread is told, if it knows of the connection."""
    cdef Line* line = <Line*>s.line
    if line == NULL:
        return
    s.line = NULL
    if line.known:
        calls_tell(&(<Remoting*>d.shared.remoting).queue, &line.farewell)
    else:
        free(line)
