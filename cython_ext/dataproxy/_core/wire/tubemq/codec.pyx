"""The table of functions with which a producer speaks to TubeMQ's brokers, and with which a hub is one.

Locality: any thread.  Locks: none.
"""

from libc.string cimport memset

from dataproxy._core.wire.tubemq.reply cimport read_reply, reply_delimit
from dataproxy._core.wire.tubemq.request cimport (
    describe_message, request_frame, request_place, request_room, request_undo,
)
from dataproxy._core.wire.tubemq.serve cimport (
    misaddress_answer, refuse_sent, request_delimit, serve_request, tell_nothing, tell_place,
)


cdef WireOps OPS

memset(&OPS, 0, sizeof(WireOps))        # what is not named below is NULL
OPS.name = b"tubemq"
OPS.head_room = 0
OPS.in_turn = False
OPS.shaken = False
OPS.spread = 1
OPS.any_order = True
OPS.delimit = reply_delimit
OPS.delimit_on = request_delimit
OPS.parse_reply = read_reply
OPS.family = describe_message
OPS.tail_room = request_room
OPS.frame = request_frame
OPS.restore = request_undo
OPS.place = request_place
OPS.serve = serve_request
OPS.refuse = refuse_sent
OPS.tell_known = tell_nothing
OPS.tell_stored = tell_place
OPS.misaddress = misaddress_answer


cdef const WireOps* tubemq_ops() noexcept nogil:
    """Return the table; it lives as long as the process."""
    return &OPS
