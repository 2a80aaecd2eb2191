"""Table of streams; the caller has checked the names and attributes.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from dataproxy._core.pack.keyqueue cimport KeyQueue
from dataproxy._core.pack.pack cimport Pack
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.atomic cimport atomic_add, atomic_load, atomic_replace
from dataproxy._core.plat.bits cimport LINE, line_alloc, prefetch

cdef enum:
    TEXT_AT = (sizeof(Stream) + LINE - 1) // LINE * LINE    # where a stream's text begins: in a cache line of its own


cdef void stream_hold(Stream* s) noexcept nogil:
    """Count one more reference.

    Locality: any thread.  Locks: the batcher's is held, unless the caller has a reference already.
    """
    atomic_add(&s.users, 1)


cdef bint stream_release(StreamTable* t, Stream* s) noexcept nogil:
    """Give up a reference; True when this has given ``streams_tidy`` new work.

    Locality: any thread.
    """
    cdef int64_t n = atomic_load(&s.users)
    while n > 1:
        if atomic_replace(&s.users, n, n - 1):
            return False
        n = atomic_load(&s.users)
    # The last reference passes to the idle list.  Until that list is read, no other thread can find itself the last.
    n = atomic_load(&t.idle)
    while True:
        s.next_idle = <Stream*>n
        if atomic_replace(&t.idle, n, <int64_t>s):
            return n == 0
        n = atomic_load(&t.idle)


cdef void streams_fetch(const Stream* s) noexcept nogil:
    """Prefetch the memory that a comparison of names reads.  Locality: any thread."""
    prefetch(s)
    prefetch(<const uint8_t*>s + LINE)
    prefetch(<const uint8_t*>s + TEXT_AT)


cdef int streams_open(StreamTable* t) noexcept nogil:
    """Make an empty table; ST_OK or ST_NO_MEMORY.  Locality: the producer's creator."""
    t.n = 0
    t.idle = 0
    t.mask = 63
    t.slots = <Stream**>calloc(64, sizeof(Stream*))
    return ST_OK if t.slots != NULL else ST_NO_MEMORY


cdef void _free(Stream* s) noexcept nogil:
    cdef int k
    for k in range(s.n_key_queues):
        free(s.key_queues[k])
    free(s.key_queues)
    free(s.others)
    free(s)


cdef void streams_close(StreamTable* t) noexcept nogil:
    """Release all streams; no pack refers to one any more.  Locality: the last user."""
    cdef size_t i
    cdef Stream* s
    cdef Stream* following
    if t.slots == NULL:
        return
    for i in range(t.mask + 1):
        s = t.slots[i]
        while s != NULL:
            following = s.next
            _free(s)
            s = following
    free(t.slots)
    t.slots = NULL


cdef KeyQueue* streams_key_queue(Stream* s, int bucket, int buckets, int executors) noexcept nogil:
    """Return the key queue of a key bucket of ``s``, which has no attributes; NULL without memory.

    Locality: any thread.
    Locks: the batcher's is held.
    """
    cdef KeyQueue* key_queue
    if s.key_queues == NULL:
        s.key_queues = <KeyQueue**>calloc(<size_t>buckets, sizeof(KeyQueue*))
        if s.key_queues == NULL:
            return NULL
        s.n_key_queues = buckets
    key_queue = s.key_queues[bucket]
    if key_queue == NULL:
        key_queue = <KeyQueue*>calloc(1, sizeof(KeyQueue))
        if key_queue == NULL:
            return NULL
        key_queue.executor = <int>((s.hash % <uint64_t>executors + <uint64_t>bucket) % <uint64_t>executors)
        key_queue.bucket = bucket
        s.key_queues[bucket] = key_queue
    return key_queue


cdef inline uint64_t _mix(uint64_t h, Slice s) noexcept nogil:
    cdef size_t i
    for i in range(s.n):
        h = (h ^ s.p[i]) * <uint64_t>0x100000001B3        # FNV-1a
    return (h ^ 0xFF) * <uint64_t>0x100000001B3


cdef uint64_t streams_hash(Slice group, Slice stream, Slice attrs) noexcept nogil:
    """Return the hash of a stream's names and attributes.  Locality: any thread."""
    return _mix(_mix(_mix(<uint64_t>0xCBF29CE484222325, group), stream), attrs)


cdef Stream* streams_find(const StreamTable* t, Slice group, Slice stream, Slice attrs) noexcept nogil:
    """Return the stream, or NULL.  Locality: any thread.  Locks: the batcher's is held."""
    return streams_find_hashed(t, streams_hash(group, stream, attrs), group, stream, attrs)


cdef Stream* streams_find_hashed(
    const StreamTable* t, uint64_t h, Slice group, Slice stream, Slice attrs,
) noexcept nogil:
    """Return the stream of these names, whose hash is ``h``, or NULL.

    Locality: any thread.  Locks: the batcher's is held.
    """
    cdef Stream* s = t.slots[h & t.mask]
    while s != NULL:
        if s.hash == h and slice_equals(s.stream, stream) and slice_equals(s.group, group) and (
                slice_equals(s.attrs, attrs)):
            return s
        s = s.next
    return NULL


cdef void _grow(StreamTable* t) noexcept nogil:
    cdef size_t i, cap = (t.mask + 1) * 2
    cdef Stream** slots = <Stream**>calloc(cap, sizeof(Stream*))
    cdef Stream* s
    cdef Stream* following
    if slots == NULL:
        return                  # without memory only the chains become longer
    for i in range(t.mask + 1):
        s = t.slots[i]
        while s != NULL:
            following = s.next
            s.next = slots[s.hash & (cap - 1)]
            slots[s.hash & (cap - 1)] = s
            s = following
    free(t.slots)
    t.slots = slots
    t.mask = cap - 1


cdef size_t _part(Stream* s, size_t at, const char* key, size_t key_n, Slice value) noexcept nogil:
    memcpy(s.text + at, key, key_n)
    if value.n:
        memcpy(s.text + at + key_n, value.p, value.n)
    return at + key_n + value.n


cdef Stream* streams_add(StreamTable* t, Slice group, Slice stream, Slice attrs, int max_others) noexcept nogil:
    """Add a stream that is not there yet and has no reference; NULL without memory.

    Locality: any thread.
    Locks: the batcher's is held.
    """
    cdef Stream* s = <Stream*>line_alloc(TEXT_AT + streams_text_size(group, stream, attrs))
    cdef size_t at
    if s == NULL:
        return NULL
    memset(s, 0, sizeof(Stream))
    s.text = <uint8_t*>s + TEXT_AT
    s.others = <Pack**>calloc(<size_t>max_others, sizeof(Pack*))
    if s.others == NULL:
        free(s)
        return NULL
    at = _part(s, 0, "groupId=", 8, group)
    s.group = slice_of(s.text + 8, group.n)
    at = _part(s, at, "&streamId=", 10, stream)
    s.stream = slice_of(s.text + at - stream.n, stream.n)
    if attrs.n:
        at = _part(s, at, "&", 1, attrs)
    s.attrs = slice_of(s.text + at - attrs.n, attrs.n)
    s.text_n = at
    s.hash = streams_hash(group, stream, attrs)
    if t.n > t.mask:
        _grow(t)
    s.next = t.slots[s.hash & t.mask]
    t.slots[s.hash & t.mask] = s
    t.n += 1
    return s


cdef void streams_remove(StreamTable* t, Stream* s) noexcept nogil:
    """Take a stream that nothing refers to out of the table and release it.

    Locality: any thread.
    Locks: the batcher's is held.
    """
    cdef Stream** at = &t.slots[s.hash & t.mask]
    while at[0] != s:
        at = &at[0].next
    at[0] = s.next
    t.n -= 1
    _free(s)


cdef void streams_keep(Stream* s, Pack* p) noexcept nogil:
    """Add an open pack to the ``others``, which have room.  Locality: any thread.  Locks: the batcher's is held."""
    s.others[s.n_others] = p
    s.n_others += 1
    s.newest = p


cdef void streams_forget(Stream* s, Pack* p) noexcept nogil:
    """Take an open pack out of its stream or key queue.  Locality: any thread.  Locks: the batcher's is held."""
    cdef int i
    if p.pack_result != NULL:
        p.pack_result.open_pack = NULL
    if p.key_queue != NULL:
        (<KeyQueue*>p.key_queue).open = NULL
        return
    if s.plain == p:
        s.plain = NULL
        return
    for i in range(s.n_others):
        if s.others[i] == p:
            s.n_others -= 1
            while i < s.n_others:           # keep the order of opening: the first is the oldest
                s.others[i] = s.others[i + 1]
                i += 1
            s.newest = s.others[s.n_others - 1] if s.n_others else NULL
            return
