"""Streams that a record batch names for the first time.

Names that every wire can carry as they are, the usual ones, are accepted here, without the GIL.  All others are left to
``Producer.stream``, which knows the rules and the texts of their errors.

Locality: any thread.  Locks: as the functions say.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.producer.accumulate.batcher cimport Batcher
from dataproxy._core.producer.accumulate.openpacks cimport openpack_room, openpack_stream
from dataproxy._core.producer.accumulate.streamlife cimport streams_leave
from dataproxy._core.producer.accumulate.streams cimport Stream, stream_hold, streams_text_size

cdef enum:
    USUAL_MAX = 256         # bytes; the longest name (dataproxy/producer/names.py)


cdef bint _usual(Slice name) noexcept nogil:
    """Tell whether a name is of printable ASCII without blanks, & and =, and not too long."""
    cdef size_t i
    if name.n == 0 or name.n > USUAL_MAX:
        return False
    for i in range(name.n):
        if name.p[i] <= 32 or name.p[i] >= 127 or name.p[i] == 38 or name.p[i] == 61:
            return False
    return True


cdef Stream* newstreams_make(Batcher* b, NewStreams* made, Slice group, Slice stream) noexcept nogil:
    """Add a stream without attributes and note it in ``made``; NULL for names that Python has to judge.

    NULL also without memory, or if no body fits a frame with these names.  Locks: the batcher's is held.
    """
    cdef Slice none = slice_of(NULL, 0)
    cdef Stream** grown
    cdef Stream* s
    cdef int64_t cap
    if not _usual(group) or not _usual(stream) or openpack_room(b, streams_text_size(group, stream, none)) == 0:
        return NULL
    if made.n == made.cap:
        cap = made.cap * 2 if made.cap else 64
        grown = <Stream**>realloc(made.items, <size_t>cap * sizeof(Stream*))
        if grown == NULL:
            return NULL
        made.items = grown
        made.cap = cap
    s = openpack_stream(b, group, stream, none)
    if s != NULL:
        stream_hold(s)
        made.items[made.n] = s
        made.n += 1
    return s


cdef void newstreams_leave(Batcher* b, NewStreams* made) noexcept nogil:
    """Give back the references; call ``streams_tidy`` or ``streams_walked`` afterwards."""
    while made.n > 0:
        made.n -= 1
        streams_leave(b, made.items[made.n])


cdef void newstreams_free(NewStreams* made) noexcept nogil:
    """Release the list, which refers to nothing any more."""
    free(made.items)
