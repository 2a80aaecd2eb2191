"""Legal state changes of a connection, as a table; ``pool.connection_enter`` is the only writer of a state.

              to  IDLE  CONNECTING  ACTIVE  BACKOFF  CLOSED
    from IDLE      -        x         -        -        x      an endpoint was given
    CONNECTING     x        -         x        x        x      connected; refused or timed out
    ACTIVE         x        -         -        x        x      lost
    BACKOFF        x        x         -        -        x      the wait is over
    CLOSED         -        -         -        -        -

Locality: any thread.  Locks: none.
"""

cdef int[25] ALLOWED = [
    0, 1, 0, 0, 1,
    1, 0, 1, 1, 1,
    1, 0, 0, 1, 1,
    1, 1, 0, 0, 1,
    0, 0, 0, 0, 0,
]


cdef bint connection_change_allowed(int from_state, int to_state) noexcept nogil:
    """Tell whether a connection may go from one state to the other."""
    if not (0 <= from_state < 5 and 0 <= to_state < 5):
        return False
    return ALLOWED[from_state * 5 + to_state] != 0


cdef const char* connection_state_name(int state) noexcept nogil:
    """Return the name shown in statistics."""
    if state == CS_IDLE:
        return "idle"
    if state == CS_CONNECTING:
        return "connecting"
    if state == CS_ACTIVE:
        return "active"
    if state == CS_BACKOFF:
        return "backoff"
    return "closed"
