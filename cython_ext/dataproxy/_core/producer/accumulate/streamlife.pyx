"""How long a stream lives: as long as something refers to it.

References are counted: those of handles, of packs from their opening until they are given back, of what
``undelivered()`` may still ask for, and of streams with attributes that share its key queues.  Staged messages and
calls that walk over many streams are not counted.  While there are any, no stream is freed.

Only the batcher's lock prevents others from finding a stream in the table.  A thread that gives back the last pack of
a stream may hold that lock already, or must not wait for it.  So no thread gives up the last reference: it is left on
a list, and the next holder of the lock checks that list.  A stream on it without any other reference is freed.
"""

from dataproxy._core.base.status cimport ST_OK
from dataproxy._core.producer.accumulate.staging cimport staging_empty
from dataproxy._core.producer.accumulate.state cimport Batcher
from dataproxy._core.producer.accumulate.streams cimport Stream, stream_release, streams_remove
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, atomic_swap
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock


cdef bint _was_last(Stream* s) noexcept nogil:
    """Give up the reference of the idle list; True when there is no other.  Locks: the batcher's is held."""
    return atomic_add(&s.users, -1) == 0


cdef void streams_reap(Batcher* b) noexcept nogil:
    """Free the streams that nothing refers to.  Locality: any thread.

    Locks: the batcher's is held; takes accounting.lock, then an inbox's, when staged messages seal a pack.
    """
    cdef Stream* s
    cdef Stream* following
    while b.walks == 0 and atomic_load(&b.streams.idle) != 0:
        if b.staged.n and staging_empty(b) != ST_OK:
            return
        s = <Stream*>atomic_swap(&b.streams.idle, 0)
        while s != NULL:
            following = s.next_idle
            if _was_last(s):
                if s.bare != NULL and s.bare != s:
                    stream_release(&b.streams, s.bare)
                streams_remove(&b.streams, s)
            s = following


cdef void streams_tidy(Batcher* b) noexcept nogil:
    """Free the streams that nothing refers to.  Locality: any thread.  Locks: takes the batcher's if there is one."""
    if atomic_load(&b.streams.idle) != 0:
        pthread_mutex_lock(&b.lock)
        streams_reap(b)
        pthread_mutex_unlock(&b.lock)


cdef void streams_walk(Batcher* b) noexcept nogil:
    """Free no stream until ``streams_walked``: the caller uses many streams without a reference to each.

    Locality: any thread.  Locks: takes the batcher's.
    """
    pthread_mutex_lock(&b.lock)
    b.walks += 1
    pthread_mutex_unlock(&b.lock)


cdef void streams_walked(Batcher* b) noexcept nogil:
    """End what ``streams_walk`` began.  Locality: any thread.  Locks: takes the batcher's."""
    pthread_mutex_lock(&b.lock)
    b.walks -= 1
    streams_reap(b)
    pthread_mutex_unlock(&b.lock)
