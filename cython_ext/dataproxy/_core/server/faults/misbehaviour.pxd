"""Faults of a server loop, as the table of faults asks for them; called only while a fault is armed."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.server.faults.table cimport FaultWhat, Held
from dataproxy._core.server.session cimport Session


cdef enum FrameFate:
    FRAME_GOES_ON = 0           # with d.request as it is now
    FRAME_DONE = 1              # nothing more to do with it
    FRAME_STAYS = 2             # the session froze before it; it stays in the receive buffer


cdef void misbehave_connect(ServerLoop* d, Session* s) noexcept nogil
cdef int misbehave_frame(ServerLoop* d, Session* s, const uint8_t* p, size_t n, int64_t receive_ms,
                         FaultWhat* what) noexcept nogil
cdef void misbehave_after(ServerLoop* d, Session* s, const FaultWhat* what) noexcept nogil    # the frame was taken
cdef int misbehave_reply(ServerLoop* d, Session* s, const FaultWhat* what, Slice reply) noexcept nogil
cdef size_t misbehave_room(ServerLoop* d, Session* s, size_t room) noexcept nogil
cdef void misbehave_received(ServerLoop* d, Session* s) noexcept nogil
cdef int give_reply(ServerLoop* d, Session* s, Held* held) noexcept nogil     # frees the block
cdef int give_reversed(ServerLoop* d, Session* s) noexcept nogil
