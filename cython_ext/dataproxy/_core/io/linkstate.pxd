"""States of a client connection ("link") and the legal changes between them."""

from libc.stdint cimport int64_t


cdef enum LinkState:
    LS_IDLE = 0         # has no endpoint (its proxy left the list)
    LS_CONNECTING = 1   # a connect is under way
    LS_ACTIVE = 2       # takes frames
    LS_BACKOFF = 3      # waits for its next connect
    LS_CLOSED = 4       # final: the pool is closing


cdef bint link_change_allowed(int from_state, int to_state) noexcept nogil
cdef const char* link_state_name(int state) noexcept nogil
