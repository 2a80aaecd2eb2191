"""The loop of one hub door."""

from dataproxy._core.hub.doorstate cimport Door


cdef int door_run(Door* d) noexcept nogil       # until the hub stops; ST_OK or ST_SYSTEM
