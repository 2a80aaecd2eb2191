"""Messages that the hub's own thread stores.  They come back by the committer, and are told through the queue of calls.

Locality: the hub's thread, but where a function says otherwise.  Locks: takes Committer.mutex and CallQueue.mutex.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dataproxy._core.base.buf cimport Buf, buf_free, buf_put
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_STORE
from dataproxy._core.server.calls cimport ROLE_UNOWED, calls_tell
from dataproxy._core.server.committer cimport committer_submit
from dataproxy._core.server.entries cimport Entry, Middle, entry_free, entry_free_chain, entry_new
from dataproxy._core.server.rocketmq.remoting cimport KIND_STORED
from dataproxy._core.wire.rocketmq.entry cimport put_entry, stream_of


cdef Appending* appending_new(CallQueue* queue, uint64_t token) noexcept nogil:
    """Begin to collect messages."""
    cdef Appending* a = <Appending*>calloc(1, sizeof(Appending))
    if a == NULL:
        return NULL
    a.queue = queue
    a.news.role = ROLE_UNOWED
    a.news.kind = KIND_STORED
    a.news.connection = token
    return a


cdef void appending_free(Appending* a) noexcept nogil:
    """Release messages that were collected."""
    entry_free_chain(a.first)
    buf_free(&a.news.answer)
    free(a)


cdef int appending_add(
    Appending* a, const Committer* c, const StoredMessage* m, int64_t now_ms, Buf* scratch
) noexcept nogil:
    """Make the entry of a message."""
    cdef Appended unknown
    cdef Entry parts
    cdef Entry* entry
    cdef Middle middle
    cdef int status
    memset(&unknown, 0, sizeof(Appended))
    memset(&parts, 0, sizeof(Entry))
    parts.stream = stream_of(m.properties)
    scratch.n = 0
    status = put_entry(scratch, m, parts.stream, now_ms, &middle.at)
    if status != ST_OK:
        return status
    middle.bytes = m.body
    parts.origin = <void*>a
    parts.group = m.topic
    parts.partition = <uint32_t>m.queue
    parts.records = 1
    parts.data_time_ms = parts.receive_ms = now_ms
    parts.value = slice_of(scratch.p, scratch.n)
    parts.serial = a.left
    entry = entry_new(&parts, slice_of(NULL, 0), slice_of(NULL, 0), &middle, c.ops)
    if entry == NULL or buf_put(&a.news.answer, &unknown, sizeof(Appended)) != ST_OK:
        if entry != NULL:
            entry_free(entry)
        return ST_NO_MEMORY
    entry.back = _back
    if a.last == NULL:
        a.first = entry
    else:
        a.last.next = entry
    a.last = entry
    a.left += 1
    return ST_OK


cdef void appending_submit(Appending* a, Committer* c) noexcept nogil:
    """Send the messages to the store; what comes of them is told through the queue, also if the store is closed."""
    cdef Entry* chain = a.first
    cdef Entry* entry = chain
    a.first = a.last = NULL
    if chain == NULL:
        calls_tell(a.queue, &a.news)
        return
    if committer_submit(c, chain) == ST_OK:
        return
    while entry != NULL:
        entry.status = ST_STORE
        entry = entry.next
    _back(<void*>a, chain)


cdef void _back(void* origin, Entry* chain) noexcept nogil:
    """Note what came of some messages.  Locality: committing thread, or who could not send them."""
    cdef Appending* a = <Appending*>origin
    cdef Appended* found = <Appended*>a.news.answer.p
    cdef Entry* entry
    cdef uint32_t left = a.left
    while chain != NULL:
        entry = chain
        chain = entry.next
        found[entry.serial].status = entry.status
        found[entry.serial].offset = entry.offset
        found[entry.serial].log = entry.log
        left -= 1
        entry_free(entry)
    a.left = left
    if left == 0:
        calls_tell(a.queue, &a.news)
