"""Messages of streams that servers do not know (yet) take at most a quarter of the buffer.

So they cannot fill it for other streams, however long they wait (conn/unknown).  Counted are sealed packs (their
charges, in ``Batcher.unknown_bytes``) and what open packs hold (``Batcher.unknown_open``).  When there is no more room
in the quarter, a message of such a stream finds the buffer full, and ``on_full`` says what happens.  With
``drop_oldest`` this message is dropped: what waits was sent already, and is never given up.

The quick ways of appending do not look at this.  They use ``Stream.plain``, so an unknown stream has no such pack, or
stage the message, so nothing is staged when the quarter is nearly used up.  Each other append comes to
``openpack_for``, which looks.
"""

from libc.stdint cimport uint64_t

from dataproxy._core.net.executor cimport executor_ask_yield
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock
from dataproxy._core.producer.accumulate.openpacks cimport openpack_seal, openpacks_unlock
from dataproxy._core.plat.atomic cimport atomic_load
from dataproxy._core.producer.accumulate.share cimport UNKNOWN_SHARE, unknown_gate, unknown_left
from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.producer.accumulate.staging cimport staging_empty


cdef void _seal_all(Batcher* b, Stream* s) noexcept nogil:
    """Seal the open packs of a stream: none of them was opened under the rules that hold from now on.

    Locks: the batcher's is held; takes accounting.lock, then an inbox's.
    """
    cdef Stream* owner = s.bare
    cdef Pack* p
    cdef int i
    if s.plain != NULL:
        openpack_seal(b, s.plain)
    while s.n_others:
        openpack_seal(b, s.others[0])
    for i in range(owner.n_key_queues if owner != NULL else 0):
        p = owner.key_queues[i].open if owner.key_queues[i] != NULL else NULL
        if p != NULL and p.stream == s:
            openpack_seal(b, p)


cdef void unknown_yield(Batcher* b, const Stream* s) noexcept nogil:
    """Let unknown streams give up what they hold beyond their share: a message of ``s`` finds the buffer full.

    They can hold more if messages were accepted before the first refusal came.
    Locality: any thread.  Locks: the batcher's is held; takes the executors'.
    """
    cdef int i
    if b.unknown_streams == 0 or s.is_unknown or atomic_load(&b.unknown_bytes) <= b.limit_bytes // UNKNOWN_SHARE:
        return
    for i in range(b.n_executors):
        executor_ask_yield(b.executors[i])
        b.wakes |= <uint64_t>1 << i


cdef void unknown_look(Batcher* b, Stream* s) noexcept nogil:
    """Mark a stream as unknown if packs wait because of it, or as known if none does.

    Locality: executor.  Locks: takes the batcher's; accounting.lock and an inbox's when it seals.
    """
    cdef bint unknown
    pthread_mutex_lock(&b.lock)
    unknown = atomic_load(&s.unknown.packs) > 0     # the last who comes here sees the last change
    if unknown != s.is_unknown:
        if unknown:
            staging_empty(b)
        s.is_unknown = unknown
        b.unknown_streams += 1 if unknown else -1
        _seal_all(b, s)
        unknown_gate(b)
    openpacks_unlock(b)


cdef bint unknown_full(Batcher* b) noexcept nogil:
    """Tell whether unknown streams have used up their share.  Locality: any thread.  Locks: takes the batcher's."""
    cdef bint full
    pthread_mutex_lock(&b.lock)
    full = b.unknown_streams > 0 and unknown_left(b) < b.limit_bytes // (8 * UNKNOWN_SHARE)
    pthread_mutex_unlock(&b.lock)
    return full
