"""Open packs of a batcher: one for each kind of message of a stream, or one for a key queue."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.pack.pack cimport Pack, PackResult
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.plat.thread cimport pthread_mutex_unlock
from dataproxy._core.producer.accumulate.item cimport item_placed
from dataproxy._core.producer.accumulate.state cimport Batcher, Extras
from dataproxy._core.producer.accumulate.streams cimport Stream


cdef Stream* openpack_stream(Batcher* b, Slice group, Slice stream, Slice attrs) noexcept nogil
cdef size_t openpack_room(const Batcher* b, size_t text_n, size_t pairs) noexcept nogil
cdef void openpack_limit_stream(Batcher* b, Stream* s) noexcept nogil
cdef void openpack_limit_all(Batcher* b) noexcept nogil
cdef void openpack_limit(const Batcher* b, Pack* p) noexcept nogil
cdef int64_t openpack_least(const Batcher* b, const Stream* s, size_t need) noexcept nogil
cdef int openpack_for(
    Batcher* b, Stream* s, const Extras* extras, size_t need, size_t room, bint with_attrs, Pack** out) noexcept nogil
cdef int openpack_grow(Batcher* b, Pack* p, size_t need, int exempt) noexcept nogil
cdef int openpack_claim(Pack* p, PackResult** pack_result, uint32_t* index) noexcept nogil
cdef void openpack_seal(Batcher* b, Pack* p) noexcept nogil
cdef void openpack_undo(Batcher* b, Pack* p) noexcept nogil
cdef void openpack_seal_old(Batcher* b, Pack* p) noexcept nogil
cdef void openpacks_wake(Batcher* b) noexcept nogil


cdef inline void openpacks_unlock(Batcher* b) noexcept nogil:
    """Release the batcher's lock after packs may have been opened or sealed.  Locality: any.  Locks: releases lock."""
    if b.wakes:
        openpacks_wake(b)
    else:
        pthread_mutex_unlock(&b.lock)


cdef inline void openpack_placed(Batcher* b, Pack* p, size_t need, size_t room) noexcept nogil:
    """Count an item of ``need`` bytes, ``room`` of them in the pack; seal the pack if another such item would not fit.

    Locality: any thread.  Locks: the batcher's is held.
    """
    item_placed(p, room)
    if p.body_n + need > p.most or p.count >= b.batch_messages:
        openpack_seal(b, p)
