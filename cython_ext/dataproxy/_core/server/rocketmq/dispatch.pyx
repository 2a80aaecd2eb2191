"""Requests go to those who answer them: messages and pulls to this loop, all others to the hub's thread.

Locality: server loop.  Locks: takes CallQueue.mutex, and Remoting.mutex for messages and pulls.
"""

from dataproxy._core.plat.atomic cimport relaxed_add
from dataproxy._core.server.rocketmq.lines cimport Line, command_ask, line_of
from dataproxy._core.server.rocketmq.pulls cimport pull_begin
from dataproxy._core.server.rocketmq.remoting cimport Remoting
from dataproxy._core.server.rocketmq.sends cimport send_begin
from dataproxy._core.server.session cimport CLOSE_MEMORY
from dataproxy._core.server.state cimport end_session
from dataproxy._core.wire.rocketmq.serve cimport COMMAND_ANSWER, COMMAND_PULL, COMMAND_SEND


cdef void command_begin(ServerLoop* d, Session* s, const Request* r) noexcept nogil:
    """Give a request that was just read to who answers it."""
    cdef Line* line = line_of(d, s)
    if line == NULL:
        end_session(d, s, CLOSE_MEMORY)
    elif r.call_kind == COMMAND_PULL:
        pull_begin(d, s, r)
    elif r.call_kind == COMMAND_SEND:
        send_begin(d, s, r)
    elif r.call_kind == COMMAND_ANSWER and line.asked == 0:
        relaxed_add(&(<Remoting*>d.shared.remoting).stray, 1)
    else:
        line.asked -= r.call_kind == COMMAND_ANSWER
        command_ask(d, s, r)
