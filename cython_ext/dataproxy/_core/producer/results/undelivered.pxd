"""UndeliveredBuffer: the bodies of messages that were not delivered, kept natively until somebody asks for them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.pack.pack cimport Pack, PackResult
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.producer.accumulate.streams cimport Stream
from dataproxy._core.plat.thread cimport pthread_mutex_t
from dataproxy._core.wire.api cimport WireOps


ctypedef struct UndeliveredPack:   # what remains of one pack
    UndeliveredPack* next
    uint8_t* buf
    size_t at               # next item in buf
    size_t end
    bint compressed         # the items are one snappy block
    int items               # ItemForm
    uint32_t index          # of the next message in the pack
    uint32_t count
    int64_t data_time_ms
    int64_t charge
    Stream* stream          # a reference
    PackResult* pack_result  # holds a reference


ctypedef struct UndeliveredBuffer:
    int64_t limit           # constant; 0 keeps nothing
    const WireOps* wire     # constant
    pthread_mutex_t lock
    # Guarded by lock.
    UndeliveredPack* first
    UndeliveredPack* last
    int64_t charged         # bytes of what is kept
    int64_t not_kept        # messages that came when there was no room


cdef void undelivered_open(UndeliveredBuffer* l, int64_t limit, const WireOps* wire) noexcept nogil
cdef void undelivered_close(UndeliveredBuffer* l) noexcept nogil
cdef void undelivered_keep(UndeliveredBuffer* l, Pack* p, int64_t now_us) noexcept nogil
cdef void undelivered_missed(UndeliveredBuffer* l, int64_t messages) noexcept nogil
cdef UndeliveredPack* undelivered_take(UndeliveredBuffer* l) noexcept nogil
cdef void undelivered_put_back(UndeliveredBuffer* l, UndeliveredPack* x) noexcept nogil
cdef void undelivered_spent(UndeliveredBuffer* l, UndeliveredPack* x) noexcept nogil
cdef void undelivered_counts(UndeliveredBuffer* l, int64_t* charged, int64_t* not_kept) noexcept nogil
cdef int undelivered_pack_open(UndeliveredPack* x) noexcept nogil
cdef bint undelivered_pack_next(UndeliveredPack* x, Slice* body, Slice* attrs) noexcept nogil
