"""The loop of one hub door."""

from libc.stdint cimport int64_t

from dataproxy._core.server.state cimport TAG_WAKEUP, Door
from dataproxy._core.net.poller cimport PollEvent


cdef void door_round(Door* d, PollEvent* events, int n) noexcept nogil     # now_us and wall_ms are set
cdef int64_t door_timeout(Door* d) noexcept nogil
cdef int door_run(Door* d) noexcept nogil       # until the hub stops; ST_OK or ST_SYSTEM
