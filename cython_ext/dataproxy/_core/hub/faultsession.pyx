"""Make and release the state of faults for a connection.

Locks: none.
"""

from libc.stdlib cimport calloc, free, malloc


cdef SessionFaults* faultsession_new() noexcept nogil:
    """Return a state without any fault.

    Locality: door loop.
    """
    return <SessionFaults*>calloc(1, sizeof(SessionFaults))


cdef void faultsession_free(SessionFaults* f) noexcept nogil:
    """Release the state and the replies it holds; NULL is allowed.

    Locality: door loop, or its owner after the loop has ended.
    """
    if f == NULL:
        return
    held_free_all(f.reversed)
    free(f.tally)
    free(f)


cdef Held* held_new(size_t n) noexcept nogil:
    """Return a block with room for ``n`` bytes.

    Locality: any thread.
    """
    cdef Held* held = <Held*>malloc(sizeof(Held) + n)
    if held != NULL:
        held.next = NULL
        held.session = 0
        held.due_us = 0
        held.single = False
        held.n = n
    return held


cdef uint8_t* held_bytes(Held* held) noexcept nogil:
    """Return the place of the bytes.  Locality: any thread."""
    return <uint8_t*>held + sizeof(Held)


cdef void held_insert(Held** list, Held* held) noexcept nogil:
    """Put a block into a list that is ordered by time.

    Locality: owner of the list.
    """
    while list[0] != NULL and list[0].due_us <= held.due_us:
        list = &list[0].next
    held.next = list[0]
    list[0] = held


cdef void held_free_all(Held* held) noexcept nogil:
    """Release a list.  Locality: owner of the list."""
    cdef Held* following
    while held != NULL:
        following = held.next
        free(held)
        held = following
