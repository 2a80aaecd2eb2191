"""A server loop of the hub."""

from libc.stdint cimport int64_t

from dataproxy._core.server.state cimport TAG_WAKEUP, ServerLoop
from dataproxy._core.net.poller cimport PollEvent


cdef void loop_round(ServerLoop* d, PollEvent* events, int n) noexcept nogil     # now_us and wall_ms are set
cdef int64_t loop_timeout(ServerLoop* d) noexcept nogil
cdef int loop_run(ServerLoop* d) noexcept nogil       # until the hub stops; ST_OK or ST_SYSTEM
