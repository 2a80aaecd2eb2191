"""Reading side of a server loop: bytes to frames, frames to entries and immediate replies."""

from libc.stdint cimport int64_t

from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.server.session cimport Session


cdef enum:
    READ_CHUNK = 262144     # least room of one read
    READ_ROUND = 1048576    # most bytes read from one connection in one round, if no other is ready
    READ_SHARED = 262144    # bytes of all other connections together for which one connection waits in a round
    READ_LEAST = 65536      # least bytes for each connection


cdef int64_t read_share(int ready) noexcept nogil               # most bytes of each of so many connections
cdef void loop_read(ServerLoop* d, Session* s) noexcept nogil
cdef void loop_reread(ServerLoop* d, Session* s) noexcept nogil       # what was received before the session froze
