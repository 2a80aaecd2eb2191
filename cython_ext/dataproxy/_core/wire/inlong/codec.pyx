"""The table of functions that is the InLong DataProxy wire.

Locality: any thread.  Locks: none.
"""

from dataproxy._core.wire.inlong.answer cimport refuse_reply, tell_known
from dataproxy._core.wire.inlong.decode cimport find_frame, read_reply
from dataproxy._core.wire.inlong.encode cimport (
    FRAME_HEAD_ROOM, describe_family, frame_around, frame_tail_room, put_heartbeat,
)
from dataproxy._core.wire.inlong.identity cimport read_stored_ids, write_without
from dataproxy._core.wire.inlong.misaddress cimport misaddress_reply
from dataproxy._core.wire.inlong.items cimport name_items
from dataproxy._core.wire.inlong.server cimport serve_frame


cdef WireOps OPS

OPS.name = b"inlong"
OPS.head_room = FRAME_HEAD_ROOM
OPS.in_turn = False
OPS.spread = 1
OPS.delimit = find_frame
OPS.parse_reply = read_reply
OPS.family = describe_family
OPS.heartbeat = put_heartbeat
OPS.shaken = False
OPS.tail_room = frame_tail_room
OPS.arrange = NULL
OPS.frame = frame_around
OPS.restore = NULL
OPS.address = NULL
OPS.place = NULL
OPS.name_items = name_items
OPS.serve = serve_frame
OPS.refuse = refuse_reply
OPS.tell_known = tell_known
OPS.stored_ids = read_stored_ids
OPS.without = write_without
OPS.misaddress = misaddress_reply


cdef const WireOps* inlong_ops() noexcept nogil:
    """Return the table; it lives as long as the process."""
    return &OPS
