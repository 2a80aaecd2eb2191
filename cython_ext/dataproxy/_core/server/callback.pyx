"""Answers to calls on their way back, and what the thread that makes them wants of a connection.

Locality: server loop.  Locks: none.
"""

from dataproxy._core.plat.atomic cimport relaxed_add
from dataproxy._core.server.answers cimport call_pay
from dataproxy._core.server.calls cimport ROLE_END, ROLE_ORDER, ROLE_OWED, ROLE_WAIT, Call, call_free
from dataproxy._core.server.rocketmq.lines cimport line_order
from dataproxy._core.server.rocketmq.pulls cimport call_hold
from dataproxy._core.server.session cimport CLOSE_ANSWERED, CLOSE_REPLIES, Session, table_find
from dataproxy._core.server.state cimport ServerLoop, close_session, end_session

cdef void calls_settle(ServerLoop* d, Call* chain) noexcept nogil:
    """Answer calls of control that are back, and carry out orders."""
    cdef Call* call
    cdef Session* s
    while chain != NULL:
        call = chain
        chain = call.next
        s = table_find(&d.table, call.session)
        if s == NULL:
            relaxed_add(&d.counters.unanswered, call.role == ROLE_OWED)
        elif call.role == ROLE_ORDER:
            line_order(d, s, call)
        elif call.role == ROLE_END:
            if call.kind:           # at once
                close_session(d, s, CLOSE_REPLIES)
            else:
                end_session(d, s, CLOSE_ANSWERED)
        elif call.role == ROLE_WAIT:
            call_hold(d, s, call)
            continue                # it is not answered yet
        else:
            call_pay(d, s, call.answer.p, call.answer.n)
        call_free(call)
