"""A hash table with chains, under a key, so that peers who choose the bytes cannot choose the buckets.

Locality: any thread.  Locks: the caller's.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from dataproxy._core.base.siphash cimport HashKey, hash_bytes
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK

cdef enum:
    BUCKETS = 64                # of a new table


cdef int keyed_init(Keyed* t, const HashKey* secret, size_t row_size, size_t most) noexcept nogil:
    """Make an empty table; ST_OK or ST_NO_MEMORY."""
    memset(t, 0, sizeof(Keyed))
    t.secret = secret[0]
    t.row_size = row_size
    t.most = most
    t.size = BUCKETS
    t.buckets = <KeyedRow**>calloc(t.size, sizeof(KeyedRow*))
    return ST_OK if t.buckets != NULL else ST_NO_MEMORY


cdef void keyed_free(Keyed* t) noexcept nogil:
    """Release all rows."""
    cdef KeyedRow* row
    cdef size_t i
    if t.buckets == NULL:
        return
    for i in range(t.size):
        while t.buckets[i] != NULL:
            row = t.buckets[i]
            t.buckets[i] = row.next
            free(row)
    free(t.buckets)
    t.buckets = NULL


cdef inline Slice _key(const Keyed* t, const KeyedRow* row) noexcept nogil:
    return slice_of(<const uint8_t*>(row + 1) + t.row_size, row.key_n)


cdef Slice keyed_key(const Keyed* t, const void* row) noexcept nogil:
    """Return the key of a row, borrowed."""
    return _key(t, <const KeyedRow*>row - 1)


cdef KeyedRow** _place(const Keyed* t, uint64_t h, Slice key) noexcept nogil:
    """Return where a row hangs, or would."""
    cdef KeyedRow** at = &t.buckets[h & (t.size - 1)]
    while at[0] != NULL and not (at[0].hash == h and slice_equals(_key(t, at[0]), key)):
        at = &at[0].next
    return at


cdef inline uint64_t _hash(const Keyed* t, Slice key) noexcept nogil:
    return hash_bytes(&t.secret, key.p, key.n).first


cdef void* keyed_find(const Keyed* t, Slice key) noexcept nogil:
    """Find a row."""
    cdef KeyedRow* row = _place(t, _hash(t, key), key)[0]
    return NULL if row == NULL else <void*>(row + 1)


cdef bint _grow(Keyed* t) noexcept nogil:
    """Double the buckets; False: no memory."""
    cdef KeyedRow** wider = <KeyedRow**>calloc(2 * t.size, sizeof(KeyedRow*))
    cdef KeyedRow* row
    cdef size_t i
    if wider == NULL:
        return False
    for i in range(t.size):
        while t.buckets[i] != NULL:
            row = t.buckets[i]
            t.buckets[i] = row.next
            row.next = wider[row.hash & (2 * t.size - 1)]
            wider[row.hash & (2 * t.size - 1)] = row
    free(t.buckets)
    t.buckets = wider
    t.size *= 2
    return True


cdef void* keyed_make(Keyed* t, Slice key) noexcept nogil:
    """Find a row, or make it."""
    cdef uint64_t h = _hash(t, key)
    cdef KeyedRow** at = _place(t, h, key)
    cdef KeyedRow* row = at[0]
    if row != NULL:
        return <void*>(row + 1)
    if t.count >= t.most:
        return NULL
    if t.count >= t.size:
        if not _grow(t):
            return NULL
        at = _place(t, h, key)
    row = <KeyedRow*>calloc(1, sizeof(KeyedRow) + t.row_size + key.n)
    if row == NULL:
        return NULL
    row.hash = h
    row.key_n = key.n
    if key.n:
        memcpy(<uint8_t*>(row + 1) + t.row_size, key.p, key.n)
    at[0] = row
    t.count += 1
    return <void*>(row + 1)


cdef void keyed_drop(Keyed* t, Slice key) noexcept nogil:
    """Release a row, if it is there."""
    cdef KeyedRow** at = _place(t, _hash(t, key), key)
    cdef KeyedRow* row = at[0]
    if row != NULL:
        at[0] = row.next
        t.count -= 1
        free(row)


cdef void* keyed_next(const Keyed* t, const void* row) noexcept nogil:
    """Return the following row, NULL behind the last."""
    cdef KeyedRow* last = NULL
    cdef size_t bucket = 0
    if row != NULL:
        last = <KeyedRow*>row - 1
        if last.next != NULL:
            return <void*>(last.next + 1)
        bucket = (last.hash & (t.size - 1)) + 1
    while bucket < t.size:
        if t.buckets[bucket] != NULL:
            return <void*>(t.buckets[bucket] + 1)
        bucket += 1
    return NULL
