"""Order by key: the hash of a key, and what happens in the batcher when a key queue's pack has its result."""

from libc.stdint cimport uint8_t, uint32_t

from dataproxy._core.pack.pack cimport PackList
from dataproxy._core.producer.accumulate.state cimport Batcher

cdef enum:
    KEY_MAX = 1024          # bytes of a key


cdef uint32_t key_hash(const uint8_t* p, size_t n) noexcept nogil
cdef void order_settled(Batcher* b, const PackList* packs) noexcept nogil
cdef int row_bucket(const uint8_t* p, size_t n, int buckets) noexcept nogil
cdef object no_ordering()
cdef int key_bucket(object key, int buckets) except -1
