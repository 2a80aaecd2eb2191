"""The list of the bodies that a pack holds by reference."""

from libc.stdlib cimport realloc

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK


cdef enum:
    FIRST_ROOM = 8          # bodies


cdef int held_reserve(Held** held) noexcept nogil:
    """Make room for another body; ST_OK or ST_NO_MEMORY.  ``held`` may point to NULL: no body yet."""
    cdef Held* h = held[0]
    cdef uint32_t room = FIRST_ROOM if h == NULL else 2 * h.room
    if h != NULL and h.n < h.room:
        return ST_OK
    h = <Held*>realloc(h, sizeof(Held) + room * sizeof(HeldBody))
    if h == NULL:
        return ST_NO_MEMORY
    if held[0] == NULL:
        h.next = NULL
        h.n = 0
        h.gaps = 0
        h.bytes = 0
    h.room = room
    held[0] = h
    return ST_OK
