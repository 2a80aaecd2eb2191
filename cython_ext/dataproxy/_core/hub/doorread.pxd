"""Reading side of a door: bytes to frames, frames to entries and immediate replies."""

from dataproxy._core.hub.doorstate cimport Door
from dataproxy._core.hub.session cimport Session


cdef enum:
    READ_CHUNK = 262144     # least room of one read
    READ_ROUND = 1048576    # most bytes of one connection in one round


cdef void door_read(Door* d, Session* s) noexcept nogil
cdef void door_reread(Door* d, Session* s) noexcept nogil       # what was received before the session froze
