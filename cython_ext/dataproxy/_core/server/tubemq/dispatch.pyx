"""Calls go to those who answer them: control to the queue of the hub's thread, data to the broker of this loop.

Locality: server loop.  Locks: takes CallQueue.mutex for calls of control.
"""

from libc.string cimport memset, strlen

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_FULL, ST_OK
from dataproxy._core.server.answers cimport answer_give, answer_place, call_forgive, call_owe
from dataproxy._core.server.calls cimport Call, call_free, call_new, calls_put
from dataproxy._core.server.session cimport CLOSE_MEMORY, session_source
from dataproxy._core.server.state cimport end_session
from dataproxy._core.server.tubemq.confirms cimport confirm_begin
from dataproxy._core.server.tubemq.fetches cimport fetch_begin
from dataproxy._core.wire.api cimport CALL_CONFIRM, CALL_CONTROL, CALL_FETCH
from dataproxy._core.wire.tubemq.answers cimport add_exception
from dataproxy._core.wire.tubemq.const cimport RPC_ERROR


cdef void call_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil:
    """Give a call that was just read to who answers it."""
    if r.call_kind == CALL_CONTROL and d.shared.calls != NULL:
        _ask(d, s, r)
    elif r.call_kind == CALL_FETCH and d.shared.broker != NULL:
        fetch_begin(d, s, r)
    elif r.call_kind == CALL_CONFIRM and d.shared.broker != NULL:
        confirm_begin(d, s, r)
    else:
        call_fail(d, s, r.serial, b"java.lang.Exception", b"Unsupported method in this service")


cdef void _ask(ServerLoop* d, Session* s, const Request* r) noexcept nogil:
    """Put a call of control into the queue.  One that has no room there is answered at once, as by a busy server."""
    cdef Call parts
    cdef Call* call
    cdef int status = ST_FULL
    memset(&parts, 0, sizeof(Call))
    parts.origin = <void*>d
    parts.session = s.id
    parts.name = s.holder.name
    parts.serial = r.serial
    parts.version = r.version
    parts.service = r.service
    parts.method = r.method
    parts.peer = session_source(s)
    parts.request = r.call
    call = call_new(&parts)
    if call == NULL:
        end_session(d, s, CLOSE_MEMORY)
        return
    call_owe(d, s)      # before the thread can answer
    status = calls_put(d.shared.calls, call)
    if status == ST_OK:
        return
    call_free(call)
    call_forgive(s)
    if status == ST_FULL:
        call_fail(d, s, r.serial, b"org.apache.inlong.tubemq.corerpc.exception.OverflowException",
                  b"too many requests of this address wait for an answer")
    else:
        call_fail(d, s, r.serial, b"org.apache.inlong.tubemq.corerpc.exception.ServerNotReadyException",
                  b"the server stops")


cdef void call_fail(ServerLoop* d, Session* s, uint32_t serial, const char* name, const char* words) noexcept nogil:
    """Answer a call, which nobody owes, with an exception."""
    cdef Buf* out = &d.request.reply
    out.n = 0
    if (add_exception(out, serial, RPC_ERROR, slice_of(name, strlen(name)), slice_of(words, strlen(words))) != ST_OK
            or answer_give(d, s, answer_place(s), slice_of(out.p, out.n), NULL) != ST_OK):
        end_session(d, s, CLOSE_MEMORY)
