"""Order by key.

A key belongs to one of ``key_buckets`` buckets, and each bucket of a (group, stream) is a key queue.  The messages of a
key queue go into packs of their own, and a pack is sent when the result of its predecessor is final
(``conn/keyqueues``).  While a key queue is busy, its open pack is not sealed for its age but goes on growing.  So a
slow proxy gets larger packs, and not more of them.

Locks: none, except where a function says otherwise.
"""

from cpython.buffer cimport PyBuffer_Release, PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint8_t, uint32_t

from dataproxy._core.pack.keyqueue cimport KeyQueue
from dataproxy._core.pack.pack cimport Pack, PackList
from dataproxy._core.producer.accumulate.state cimport Batcher
from dataproxy._core.producer.ingest.buffers cimport buffer_copy, buffer_open
from dataproxy._core.producer.accumulate.openpacks cimport openpack_seal, openpacks_unlock
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load
from dataproxy._core.plat.thread cimport pthread_mutex_lock

from dataproxy.errors import ConfigError
from dataproxy.problems import key_problem

__all__ = ["bucket_of"]


cdef uint32_t key_hash(const uint8_t* p, size_t n) noexcept nogil:
    """Return the 32-bit MurmurHash2 of ``n`` bytes with Kafka's seed.  Locality: any thread.

    Appleby's public-domain definition: words of four bytes, least significant first.
    """
    cdef uint32_t m = 0x5BD1E995
    cdef uint32_t h = <uint32_t>0x9747B28C ^ <uint32_t>n
    cdef uint32_t k
    while n >= 4:
        k = p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24
        k *= m
        k ^= k >> 24
        h = h * m ^ k * m
        p += 4
        n -= 4
    if n == 3:
        h ^= <uint32_t>p[2] << 16
    if n >= 2:
        h ^= <uint32_t>p[1] << 8
    if n >= 1:
        h = (h ^ p[0]) * m
    h = (h ^ h >> 13) * m
    return h ^ h >> 15


cdef inline int _bucket(const uint8_t* p, size_t n, int buckets) noexcept nogil:
    cdef uint32_t h = key_hash(p, n) & 0x7FFFFFFF
    if buckets & (buckets - 1) == 0:        # the same without a division
        return <int>(h & <uint32_t>(buckets - 1))
    return <int>(h % <uint32_t>buckets)


cdef int row_bucket(const uint8_t* p, size_t n, int buckets) noexcept nogil:
    """Return the bucket of a key's bytes, -1 for a wrong number of bytes.  Locality: any thread."""
    return _bucket(p, n, buckets) if 0 < n <= KEY_MAX else -1


cdef object no_ordering():
    """Return the ConfigError for a key when ordering is off.  Locality: GIL."""
    return ConfigError(
        "key= was given, but ordering is 'none'",
        hint="open the producer with ordering='key', or leave the key out: without ordering it has no effect")


cdef int key_bucket(object key, int buckets) except -1:
    """Return the bucket of a key; ``buckets`` is 0 if ordering is off.  Locality: GIL.

    Raises ConfigError without ordering, InvalidMessageError for a key of a wrong type or size.
    """
    cdef Py_buffer view
    cdef Py_ssize_t n = 0
    cdef const char* p
    if buckets == 0:
        raise no_ordering()
    if isinstance(key, str):
        try:
            p = PyUnicode_AsUTF8AndSize(key, &n)
        except UnicodeEncodeError:
            raise key_problem(key, 0, KEY_MAX) from None
    elif isinstance(key, bytes):
        p = PyBytes_AS_STRING(key)
        n = PyBytes_GET_SIZE(key)
    elif PyObject_CheckBuffer(key):
        if buffer_open(key, &view) is not None:
            raise key_problem(key, 0, KEY_MAX)
        try:
            if view.len > KEY_MAX:
                raise key_problem(key, view.len, KEY_MAX)
            return key_bucket(buffer_copy(&view), buckets)
        finally:
            PyBuffer_Release(&view)
    else:
        raise key_problem(key, 0, KEY_MAX)
    if n == 0 or n > KEY_MAX:
        raise key_problem(key, n, KEY_MAX)
    return _bucket(<const uint8_t*>p, <size_t>n, buckets)


def bucket_of(key, int buckets):
    """Return the bucket of ``key`` (text counts as UTF-8) among ``buckets``: MurmurHash2 without its sign, modulo."""
    return key_bucket(key, buckets)


cdef void order_settled(Batcher* b, const PackList* packs) noexcept nogil:
    """Seal the old open packs of key queues that waited for these results.

    Locality: executor.  Locks: takes the batcher's lock if a key queue became idle, then accounting.lock, then an
    inbox's.  The packs have their results and still belong to the caller.
    """
    cdef Pack* p = packs.head
    cdef KeyQueue* key_queue
    cdef bint idle = False
    while p != NULL:
        if p.counted and atomic_add(&(<KeyQueue*>p.key_queue).unsettled, -1) == 0:
            idle = True
        p = p.next
    if not idle:
        return
    pthread_mutex_lock(&b.lock)
    p = packs.head
    while p != NULL:
        if p.counted:
            key_queue = <KeyQueue*>p.key_queue
            # The thread that counts down to zero comes here: an earlier tick saw a busy key queue, a later one seals
            # it.
            if key_queue.open != NULL and key_queue.open.lingered and atomic_load(&key_queue.unsettled) == 0:
                openpack_seal(b, key_queue.open)
        p = p.next
    openpacks_unlock(b)
