"""Accepting side of a door: its watch over the listeners, and new connections."""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.hub.doorstate cimport Door


cdef void accept_ready(Door* d, uint64_t tag) noexcept nogil       # a listening socket of this tag has connections
cdef void accept_resume(Door* d) noexcept nogil
cdef void accept_pause(Door* d, int64_t again_us) noexcept nogil    # again_us 0: for good
cdef void accept_follow(Door* d) noexcept nogil     # listeners were shut, opened or killed
