"""One entry of the completion queue stands for all dropped messages of a stream until the dispatcher takes it.

So if a callback does not return, dropped messages take no more memory, however many there are.  Ids given by the
caller have to be kept.  They are in an entry of their own, in the form that pack_keep_ids makes, up to a limit.
Beyond the limit a message is reported with an id that was made for it.  In this module "lock" is ``Completions.lock``.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from dataproxy._core.pack.pack cimport (
    OUT_DROPPED, Pack, PackList, PackResult, list_push, list_remove, pack_room, pack_result_new, pack_result_release,
)
from dataproxy._core.pack.settled cimport settled_mark
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.base.timers cimport timer_init
from dataproxy._core.producer.results.completions cimport completions_count, completions_give_back, completions_shed
from dataproxy._core.producer.ingest.ids cimport ID_ROOM, PackIds, ids_next
from dataproxy._core.producer.accumulate.streams cimport Stream, stream_hold
from dataproxy._core.conn.connection cimport LC_DROPPED
from dataproxy._core.plat.atomic cimport atomic_add, atomic_store
from dataproxy._core.plat.bits cimport line_alloc
from dataproxy._core.plat.thread cimport pthread_cond_signal, pthread_mutex_lock, pthread_mutex_unlock

cdef enum:
    OWN_IDS_BYTES = 1048576     # of one entry


cdef PackResult* refusal(const char* pack_id) noexcept nogil:
    """Return the final result of messages that were dropped on arrival, or NULL without memory.

    Locality: any thread.
    Locks: none.
    """
    cdef PackResult* v = pack_result_new()
    if v != NULL:
        memcpy(v.id, pack_id, ID_ROOM)
        v.outcome = OUT_DROPPED
        v.code = LC_DROPPED
        atomic_store(&v.done, 1)
    return v


cdef Pack* _entry(Completions* c, PackIds* ids, Stream* s, int64_t now, bint with_ids) noexcept nogil:
    cdef Pack* p = s.refused[with_ids]
    if p != NULL:
        return p
    p = <Pack*>line_alloc(sizeof(Pack))         # as the pool's: it may end among the spare ones
    if p == NULL:
        return NULL
    memset(p, 0, sizeof(Pack))
    timer_init(&p.timer, 0, p)
    p.stream = s
    settled_mark(p, OUT_DROPPED, LC_DROPPED)    # the hook is not told: these messages were never sealed nor counted
    p.conn = -1
    p.report = True
    p.own_ids = with_ids
    p.opened_us = now
    p.id_n = ids_next(ids, p.id)
    s.refused[with_ids] = p
    list_push(&c.packs, p)
    pthread_cond_signal(&c.ready)
    return p


cdef void _free_entry(Pack* p) noexcept nogil:
    if p.pack_result != NULL:
        pack_result_release(p.pack_result)
    free(p.buf)
    free(p)


cdef int _note_id(Pack* p, Slice own_id) noexcept nogil:
    cdef uint8_t* to
    if pack_room(p, 1 + own_id.n) != ST_OK:
        return ST_NO_MEMORY
    to = p.buf + p.body_n
    to[0] = <uint8_t>own_id.n
    memcpy(to + 1, own_id.p, own_id.n)
    p.body_n += 1 + own_id.n
    return ST_OK


cdef int refusals_add(
    Completions* c, PackIds* ids, Stream* s, int64_t messages, Slice own_id, int64_t now, PackResult** pack_result,
    uint32_t* index,
) noexcept nogil:
    """Queue a report of messages that were dropped on arrival; ST_OK or ST_NO_MEMORY.

    Locality: any thread.  Locks: the batcher's is held; takes lock, then the pool's.  ``own_id``: of a single message.
    ``result``, if not NULL, gets a reference and ``index`` the first message's place.
    """
    cdef Pack* p
    cdef int status = ST_NO_MEMORY
    cdef bint with_id = own_id.n > 0
    cdef PackList spent
    memset(&spent, 0, sizeof(PackList))
    pthread_mutex_lock(&c.lock)
    if with_id and s.refused[1] != NULL and s.refused[1].body_n + own_id.n > OWN_IDS_BYTES:
        with_id = False
    p = _entry(c, ids, s, now, with_id)
    if p != NULL and pack_result != NULL and p.pack_result == NULL:
        p.pack_result = refusal(p.id)
    if p != NULL and (pack_result == NULL or p.pack_result != NULL) and (not with_id or _note_id(p, own_id) == ST_OK):
        if pack_result != NULL:
            atomic_add(&p.pack_result.refs, 1)
            pack_result[0] = p.pack_result
            index[0] = p.count
        if p.count == 0:
            stream_hold(s)                  # until the dispatcher gives the entry back
        p.count += <uint32_t>messages
        status = ST_OK
        completions_count(c, p)
        completions_shed(c, 0, &spent)
    elif p != NULL and p.count == 0:
        s.refused[with_id] = NULL           # an entry must report at least one message
        list_remove(&c.packs, p)
        _free_entry(p)
    pthread_mutex_unlock(&c.lock)
    completions_give_back(c, &spent)
    return status


cdef void refusals_detach(Completions* c, Pack* p) noexcept nogil:
    """Add no more messages to ``p``, which was taken out of the queue.  Locality: dispatcher.  Locks: takes lock."""
    cdef Stream* s = <Stream*>p.stream
    cdef int kind
    pthread_mutex_lock(&c.lock)
    for kind in range(2):
        if s.refused[kind] == p:
            s.refused[kind] = NULL
    pthread_mutex_unlock(&c.lock)
