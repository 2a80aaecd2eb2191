"""The table of functions that is the HTTP report.

What is stored is the same as for the other dialects, so ids and their removal are too.

Locality: any thread.  Locks: none.
"""

from dataproxy._core.wire.inlong.http.answer cimport keep_address, refuse_answer, tell_nothing
from dataproxy._core.wire.inlong.http.decode cimport read_answer
from dataproxy._core.wire.inlong.http.encode cimport (
    REQUEST_HEAD_ROOM, describe_lines, name_nothing, put_host, put_ping, request_around, request_tail_room,
)
from dataproxy._core.wire.inlong.http.form cimport decode_in_place
from dataproxy._core.wire.inlong.http.head cimport http_delimit
from dataproxy._core.wire.inlong.http.server cimport serve_request
from dataproxy._core.wire.inlong.identity cimport read_stored_ids, write_without


cdef WireOps OPS

OPS.name = b"http"
OPS.head_room = REQUEST_HEAD_ROOM
OPS.in_turn = True
OPS.shaken = False
OPS.spread = 3
OPS.delimit = http_delimit
OPS.parse_reply = read_answer
OPS.family = describe_lines
OPS.heartbeat = put_ping
OPS.tail_room = request_tail_room
OPS.arrange = NULL
OPS.frame = request_around
OPS.restore = decode_in_place
OPS.address = put_host
OPS.place = NULL
OPS.name_items = name_nothing
OPS.serve = serve_request
OPS.refuse = refuse_answer
OPS.tell_known = tell_nothing
OPS.stored_ids = read_stored_ids
OPS.without = write_without
OPS.misaddress = keep_address


cdef const WireOps* http_ops() noexcept nogil:
    """Return the table; it lives as long as the process."""
    return &OPS
