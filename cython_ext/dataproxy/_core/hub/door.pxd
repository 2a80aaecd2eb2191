"""The loop of one hub door."""

from libc.stdint cimport int64_t

from dataproxy._core.hub.doorstate cimport Door
from dataproxy._core.io.poller cimport PollEvent


cdef enum:
    TAG_WAKEUP = 1              # below every session id
    TAG_LISTENER = 2


cdef void door_round(Door* d, PollEvent* events, int n) noexcept nogil     # now_us and wall_ms are set
cdef int64_t door_timeout(Door* d) noexcept nogil
cdef int door_run(Door* d) noexcept nogil       # until the hub stops; ST_OK or ST_SYSTEM
