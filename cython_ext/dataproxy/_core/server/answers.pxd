"""Answers of one connection are sent in the order of its requests, whatever each of them waits for."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.server.faults.table cimport FaultWhat
from dataproxy._core.server.session cimport Session


cdef int64_t answer_place(Session* s) noexcept nogil       # of a request: its turn among the answers
cdef bint answers_abound(const ServerLoop* d, const Session* s) noexcept nogil    # read no more from the session
cdef bint answers_subside(const ServerLoop* d, const Session* s) noexcept nogil   # read it again
# For whoever answers a call later: it is owed to the session, which is not closed before in the ordinary course ...
cdef void call_owe(ServerLoop* d, Session* s) noexcept nogil
# ... until this is called: nobody answers it any more ...
cdef void call_forgive(Session* s) noexcept nogil
# ... or this, with the frame that answers it; empty: there is none.
cdef void call_pay(ServerLoop* d, Session* s, const void* frame, size_t n) noexcept nogil
# The answer of the request with this place is known: send it in its turn, now or later, and then the answers that
# waited for it.  An empty answer sends nothing.  ST_OK or ST_NO_MEMORY.
cdef int answer_give(ServerLoop* d, Session* s, int64_t place, Slice reply, const FaultWhat* what) noexcept nogil
