"""Leftovers: the bodies of messages that were not delivered, kept natively until somebody asks for them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from dataproxy._core.base.pack cimport Pack, Verdict
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.client.streams cimport Stream
from dataproxy._core.plat.thread cimport pthread_mutex_t


ctypedef struct Leftover:   # what remains of one pack
    Leftover* next
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
    Verdict* verdict        # holds a reference


ctypedef struct Leftovers:
    int64_t limit           # constant; 0 keeps nothing
    pthread_mutex_t lock
    # Guarded by lock.
    Leftover* first
    Leftover* last
    int64_t charged         # bytes of what is kept
    int64_t not_kept        # messages that came when there was no room


cdef void leftovers_open(Leftovers* l) noexcept nogil
cdef void leftovers_close(Leftovers* l) noexcept nogil
cdef void leftovers_keep(Leftovers* l, Pack* p, int64_t now_us) noexcept nogil
cdef void leftovers_missed(Leftovers* l, int64_t messages) noexcept nogil
cdef Leftover* leftovers_take(Leftovers* l) noexcept nogil
cdef void leftovers_put_back(Leftovers* l, Leftover* x) noexcept nogil
cdef void leftovers_spent(Leftovers* l, Leftover* x) noexcept nogil
cdef void leftovers_counts(Leftovers* l, int64_t* charged, int64_t* not_kept) noexcept nogil
cdef int leftover_open(Leftover* x) noexcept nogil
cdef bint leftover_next(Leftover* x, Slice* body, Slice* attrs) noexcept nogil
