"""Streams of the rows of a record batch, with those that it names for the first time.

Names that every wire can carry as they are, the usual ones, are accepted here, without the GIL.  All others are left to
``Producer.stream``, which knows the rules and the texts of their errors.

Locality: any thread.  Locks: as the functions say.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, realloc

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.plat.bits cimport prefetch
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock
from dataproxy._core.producer.accumulate.state cimport Batcher
from dataproxy._core.producer.accumulate.openpacks cimport openpack_room, openpack_stream
from dataproxy._core.producer.accumulate.streamlife cimport streams_leave
from dataproxy._core.producer.accumulate.streams cimport (
    Stream, stream_hold, streams_fetch, streams_find, streams_find_hashed, streams_hash, streams_text_size,
)

cdef enum:
    USUAL_MAX = 256         # bytes; the longest name (dataproxy/producer/ingest/names.py)


cdef bint _usual(Slice name) noexcept nogil:
    """Tell whether a name is of printable ASCII without blanks, & and =, and not too long."""
    cdef size_t i
    if name.n == 0 or name.n > USUAL_MAX:
        return False
    for i in range(name.n):
        if name.p[i] <= 32 or name.p[i] >= 127 or name.p[i] == 38 or name.p[i] == 61:
            return False
    return True


cdef Stream* _make(Batcher* b, NewStreams* made, Slice group, Slice stream) noexcept nogil:
    """Add a stream without attributes and note it in ``made``; NULL for names that Python has to judge.

    NULL also without memory, if no body fits a frame with these names, or if nobody has asked for the group's cluster
    yet.  Locks: the batcher's is held.
    """
    cdef Slice none = slice_of(NULL, 0)
    cdef Stream** grown
    cdef Stream* s
    cdef int64_t cap
    if not _usual(group) or not _usual(stream) or openpack_room(b, streams_text_size(group, stream, none), 2) == 0:
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


cdef void newstreams_find(
    Batcher* b, NewStreams* made, const StreamNames* names, int n, Stream** out,
) noexcept nogil:
    """Find or make the streams of up to NAMES_MOST rows: first all slots, then all streams, so that loads overlap.

    ``out`` holds NULL for a row with null names, or with names that Python has to judge.  Locks: takes the batcher's.
    """
    cdef uint64_t hashes[NAMES_MOST]
    cdef Slice none = slice_of(NULL, 0)
    cdef Stream* s = NULL
    cdef int k
    for k in range(n):
        if names[k].kind == NAMES_NEW:
            hashes[k] = streams_hash(names[k].group, names[k].stream, none)
    pthread_mutex_lock(&b.lock)
    for k in range(n):
        if names[k].kind == NAMES_NEW:
            prefetch(&b.streams.slots[hashes[k] & b.streams.mask])
    for k in range(n):
        if names[k].kind == NAMES_NEW:
            streams_fetch(b.streams.slots[hashes[k] & b.streams.mask])
    for k in range(n):
        if names[k].kind == NAMES_NEW:
            s = streams_find_hashed(&b.streams, hashes[k], names[k].group, names[k].stream, none)
            if s == NULL:
                s = _make(b, made, names[k].group, names[k].stream)
        out[k] = NULL if names[k].kind == NAMES_NULL else s
    pthread_mutex_unlock(&b.lock)


cdef Stream* newstreams_again(Batcher* b, Slice group, Slice stream) noexcept nogil:
    """Find a stream that another thread may have added in the meantime, or NULL.  Locks: takes the batcher's."""
    cdef Stream* found
    pthread_mutex_lock(&b.lock)
    found = streams_find(&b.streams, group, stream, slice_of(NULL, 0))
    pthread_mutex_unlock(&b.lock)
    return found


cdef void newstreams_leave(Batcher* b, NewStreams* made) noexcept nogil:
    """Give back the references; call ``streams_tidy`` or ``streams_walked`` afterwards."""
    while made.n > 0:
        made.n -= 1
        streams_leave(b, made.items[made.n])


cdef void newstreams_free(NewStreams* made) noexcept nogil:
    """Release the list, which refers to nothing any more."""
    free(made.items)
