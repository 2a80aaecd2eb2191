"""Entries of a store from Python: appended directly, or through its committer; and one step of its retention.

Locks: none, except where a function says otherwise.
"""

import time

from dataproxy.errors import ClosedError

from libc.stdint cimport int64_t
from libc.string cimport memset

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_CLOSED, ST_FULL, ST_OK, status_name
from dataproxy._core.server.committer cimport Committer, committer_commit, committer_submit
from dataproxy._core.server.entries cimport (
    Entry, IdReader, Middle, StoreOps, entry_free, entry_free_chain, entry_new, ids_free, ids_init, ids_read,
)
from dataproxy._core.server.store.clock cimport StoreClock
from dataproxy._core.server.store.core cimport StoreCore
from dataproxy._core.plat.thread cimport (
    pthread_cond_destroy,
    pthread_cond_init,
    pthread_cond_signal,
    pthread_cond_t,
    pthread_cond_wait,
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
)
from dataproxy._core.wire.inlong.codec cimport inlong_ops

ctypedef struct Waiter:
    pthread_mutex_t mutex
    pthread_cond_t cond
    Entry* head             # handed back, in order
    Entry* tail
    long pending            # entries not yet handed back
    bint room               # told that there is room

__all__ = ["append_at_once", "append_entries", "retain_once"]


def append_entries(StoreCore store not None, entries, *, unsigned int partition=0, unsigned int records=1,
                   int64_t data_time_ms=0, receive_ms=None, str source="127.0.0.1"):
    """Append (group, stream, InLongMsg bytes[, records]) tuples as one chain: [(offset, status name)].

    Through the committer when it runs, else directly; then ``receive_ms`` sets the store's own clock, too.
    Not beside a running server.
    Locks: takes the store's gate.
    """
    cdef Entry* chain
    cdef bint through = False
    _ensure_alone(store)
    chain = _chain(entries, partition, records, data_time_ms,
                   int(time.time() * 1000) if receive_ms is None else receive_ms, source.encode(),
                   store.window_key(), store._committer.ops)
    with store._gate:
        through = store._in_loop
        if through and store._committer.done != _done:  # read when the thread has entries: the first now
            store._committer.done = _done
        if not through:
            if receive_ms is not None:
                _set_clock(store, receive_ms)
            with nogil:
                store._committer.ops.append(store._committer.store, chain)
    if through:
        with nogil:
            chain = _through(&store._committer, chain)
    return _results(chain)


def append_at_once(StoreCore store not None, entries):
    """Commit (group, stream, InLongMsg bytes) tuples on this thread: [(offset, status name)], None if it may not.

    Not beside a running server.
    """
    cdef Entry* chain
    cdef bint done
    _ensure_alone(store)
    chain = _chain(entries, 0, 1, 0, int(time.time() * 1000), b"127.0.0.1", store.window_key(),
                   store._committer.ops)
    with nogil:
        done = committer_commit(&store._committer, chain)
    if not done:
        entry_free_chain(chain)
        return None
    return _results(chain)


def retain_once(StoreCore store not None, now_ms=None):
    """Drop one step of what is past the limits, at a time of the store's own clock if one is given.

    Returns the number of entries dropped.
    The committer must not run.
    Locks: takes the store's gate.
    """
    cdef int64_t dropped = 0
    store._ensure_open()
    with store._gate:
        if store._in_loop:
            raise ClosedError("the committer runs", hint="it applies the retention limits itself")
        if now_ms is not None:
            _set_clock(store, now_ms)
        with nogil:
            dropped = store._committer.ops.retain(store._committer.store)
    return dropped


cdef int _ensure_alone(StoreCore store) except -1:
    """Raise ClosedError for a store that is closed or has a server.  Locality: GIL."""
    store._ensure_open()
    if store._served:
        raise ClosedError("the store belongs to a running server", hint="send through the server")
    return 0


cdef int _set_clock(StoreCore store, int64_t now_ms) except -1:
    """Stop the store's own clock at a test's time.  Locality: GIL.  Locks: the caller holds the store's gate."""
    cdef StoreClock* clock = &store._memory.clock if store._has_memory else &store._store.clock
    clock.source = NULL
    clock.own_ms = now_ms
    return 0


cdef Entry* _chain(object entries, unsigned int partition, unsigned int records, long long data_time_ms,
                   long long receive_ms, bytes source, const HashKey* window_key, const StoreOps* ops) except NULL:
    """Return a chain of entries made from (group, stream, InLongMsg bytes[, records]) tuples.

    ``window_key`` NULL: their ids are not read; ``ops`` is the store they are for.
    Locality: GIL.
    """
    cdef Entry parts
    cdef Entry* head = NULL
    cdef Entry* tail = NULL
    cdef Entry* entry
    cdef bytes group_raw
    cdef bytes stream_raw
    cdef bytes value_raw
    cdef IdReader reader
    cdef Middle nothing
    cdef int status = ST_OK
    memset(&nothing, 0, sizeof(nothing))
    memset(&parts, 0, sizeof(parts))
    ids_init(&reader, inlong_ops(), window_key)
    parts.partition = partition
    parts.data_time_ms = data_time_ms
    parts.receive_ms = receive_ms
    for group, stream, value, *own in entries:
        parts.records = own[0] if own else records
        group_raw = group.encode("utf-8", "surrogateescape")
        stream_raw = stream.encode("utf-8", "surrogateescape")
        value_raw = value
        parts.group = slice_of(<const char*>group_raw, <size_t>len(group_raw))
        parts.stream = slice_of(<const char*>stream_raw, <size_t>len(stream_raw))
        parts.value = slice_of(<const char*>value_raw, <size_t>len(value_raw))
        if window_key != NULL:
            status = ids_read(&reader, &parts)
        entry = NULL
        if status == ST_OK:
            entry = entry_new(&parts, slice_of(<const char*>source, <size_t>len(source)), slice_of(NULL, 0),
                              &nothing, ops)
        if entry == NULL:
            ids_free(&reader)
            entry_free_chain(head)
            raise MemoryError
        if head == NULL:
            head = entry
        else:
            tail.next = entry
        tail = entry
    ids_free(&reader)
    if head == NULL:
        raise ValueError("no entries were given; give at least one")
    return head


cdef list _results(Entry* chain):
    """Return [(offset, status name)] and release the chain; "known" when all of an entry was there already.

    Locality: GIL.
    """
    cdef list found = []
    cdef Entry* entry
    while chain != NULL:
        entry = chain
        chain = entry.next
        if entry.status == ST_OK and entry.duplicates and entry.duplicates == entry.items:
            found.append((-1, "known"))
        else:
            found.append((entry.offset, status_name(entry.status).decode()))
        entry_free(entry)
    return found


cdef Entry* _through(Committer* committer, Entry* chain) noexcept nogil:
    """Submit a chain, wait until all of it came back, and return it; refused ones keep ST_CLOSED.

    Locality: any thread.
    Locks: takes the committer's mutex and its own.
    """
    cdef Waiter waiter
    cdef Entry* entry = chain
    cdef int status = ST_FULL
    memset(&waiter, 0, sizeof(waiter))
    pthread_mutex_init(&waiter.mutex, NULL)
    pthread_cond_init(&waiter.cond, NULL)
    while entry != NULL:
        entry.origin = &waiter
        entry.status = ST_CLOSED
        waiter.pending += 1
        entry = entry.next
    while status == ST_FULL:
        status = committer_submit(committer, chain)
        pthread_mutex_lock(&waiter.mutex)
        while not (waiter.room if status == ST_FULL else waiter.pending == 0 or status != ST_OK):
            pthread_cond_wait(&waiter.cond, &waiter.mutex)
        waiter.room = False
        pthread_mutex_unlock(&waiter.mutex)
    pthread_mutex_destroy(&waiter.mutex)
    pthread_cond_destroy(&waiter.cond)
    return waiter.head if status == ST_OK else chain


cdef void _done(void* origin, Entry* chain) noexcept nogil:
    """Take entries back for the waiter that is their origin.  Locality: committing thread.  Locks: takes its mutex."""
    cdef Waiter* waiter = <Waiter*>origin
    pthread_mutex_lock(&waiter.mutex)
    if chain == NULL:
        waiter.room = True
    elif waiter.head == NULL:
        waiter.head = chain
    else:
        waiter.tail.next = chain
    while chain != NULL:
        waiter.pending -= 1
        waiter.tail = chain
        chain = chain.next
    pthread_cond_signal(&waiter.cond)
    pthread_mutex_unlock(&waiter.mutex)
