"""Entries from Python: their origin is a waiter on the caller's stack.

Locks: none, except where a function says otherwise.
"""

from libc.string cimport memset

from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_CLOSED, ST_FULL, ST_OK, status_name
from dataproxy._core.server.committer cimport Committer, committer_submit
from dataproxy._core.server.entries cimport (
    Entry, IdReader, Middle, entry_free, entry_free_chain, entry_new, ids_free, ids_init, ids_read,
)
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


cdef Entry* feed_chain(object entries, unsigned int partition, unsigned int records, long long data_time_ms,
                       long long receive_ms, bytes source, const HashKey* window_key, size_t room) except NULL:
    """Return a chain of entries made from (group, stream, InLongMsg bytes[, records]) tuples.

    ``window_key`` NULL: their ids are not read; ``room`` is what the store wants in front of a value.
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
        group_raw = group.encode()
        stream_raw = stream.encode()
        value_raw = value
        parts.group = slice_of(<const char*>group_raw, <size_t>len(group_raw))
        parts.stream = slice_of(<const char*>stream_raw, <size_t>len(stream_raw))
        parts.value = slice_of(<const char*>value_raw, <size_t>len(value_raw))
        if window_key != NULL:
            status = ids_read(&reader, &parts)
        entry = NULL
        if status == ST_OK:
            entry = entry_new(&parts, slice_of(<const char*>source, <size_t>len(source)), slice_of(NULL, 0),
                              &nothing, room)
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


cdef list feed_results(Entry* chain):
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


cdef Entry* feed_through(Committer* committer, Entry* chain) noexcept nogil:
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


cdef void feed_done(void* origin, Entry* chain) noexcept nogil:
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
