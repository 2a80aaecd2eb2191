"""The table of functions that is the V1 wire: protobuf packs, and V0 frames beside them on the same connection.

Locality: any thread.  Locks: none.
"""

from dataproxy._core.wire.inlong.encode cimport put_heartbeat
from dataproxy._core.wire.inlong.identity cimport read_stored_ids, write_without
from dataproxy._core.wire.inlong.items cimport name_items
from dataproxy._core.wire.inlongv1.decode cimport find_v1, read_v1_reply
from dataproxy._core.wire.inlongv1.encode cimport PACK_HEAD_ROOM, arrange_items, describe_v1, frame_v1, v1_tail_room
from dataproxy._core.wire.inlongv1.server cimport (
    misaddress_either, refuse_either, serve_either, tell_known_either,
)


cdef WireOps OPS

OPS.name = b"inlongv1"
OPS.head_room = PACK_HEAD_ROOM
OPS.delimit = find_v1
OPS.parse_reply = read_v1_reply
OPS.family = describe_v1
OPS.heartbeat = put_heartbeat
OPS.in_turn = False
OPS.shaken = True
OPS.spread = 1
OPS.tail_room = v1_tail_room
OPS.arrange = arrange_items
OPS.frame = frame_v1
OPS.restore = NULL
OPS.address = NULL
OPS.place = NULL
OPS.name_items = name_items         # refuses items that were arranged
OPS.serve = serve_either
OPS.refuse = refuse_either
OPS.tell_known = tell_known_either
OPS.stored_ids = read_stored_ids
OPS.without = write_without
OPS.misaddress = misaddress_either


cdef const WireOps* inlongv1_ops() noexcept nogil:
    """Return the table; it lives as long as the process."""
    return &OPS
