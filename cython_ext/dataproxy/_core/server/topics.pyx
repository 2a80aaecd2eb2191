"""A hash set of topics with open addressing, never more than half full, and a sorted list of names of numeric ids.

Both are filled once.

Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dataproxy._core.base.buf cimport buf_free, buf_init, buf_put_slice
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.wire.api cimport NumberedNames


cdef uint64_t _hash(Slice group, Slice stream, bint whole) noexcept nogil:
    """Return the FNV-1a hash of a topic.  Locality: any thread."""
    cdef uint64_t h = 14695981039346656037ULL
    cdef uint8_t mark = 1 if whole else 2
    cdef size_t i
    for i in range(group.n):
        h = (h ^ group.p[i]) * 1099511628211ULL
    h = (h ^ mark) * 1099511628211ULL
    if not whole:
        for i in range(stream.n):
            h = (h ^ stream.p[i]) * 1099511628211ULL
    return h


cdef int topics_init(Topics* t, size_t count) noexcept nogil:
    """Make an empty set.

    Locality: owner.
    """
    buf_init(&t.names)
    t.size = 16
    while t.size < 2 * count + 2:
        t.size *= 2
    t.table = <Topic*>calloc(t.size, sizeof(Topic))
    return ST_OK if t.table != NULL else ST_NO_MEMORY


cdef void topics_free(Topics* t) noexcept nogil:
    """Release the memory.

    Locality: owner.
    """
    free(t.table)
    t.table = NULL
    t.size = 0
    buf_free(&t.names)


cdef Topic* _place(Topics* t, uint64_t h, Slice group, Slice stream, bint whole) noexcept nogil:
    """Return the place of a topic, or the free place where it belongs.  Locality: any thread."""
    cdef size_t i = <size_t>h & (t.size - 1)
    cdef Topic* topic
    while True:
        topic = &t.table[i]
        if not topic.used:
            return topic
        if (topic.hash == h and topic.whole == whole
                and slice_equals(slice_of(t.names.p + topic.group_at, topic.group_n), group)
                and (whole or slice_equals(slice_of(t.names.p + topic.stream_at, topic.stream_n), stream))):
            return topic
        i = (i + 1) & (t.size - 1)


cdef int topics_add(Topics* t, Slice group, Slice stream, bint whole) noexcept nogil:
    """Add one topic, if it is not there yet; ST_OK or ST_NO_MEMORY.

    Locality: owner.
    """
    cdef uint64_t h = _hash(group, stream, whole)
    cdef Topic* topic = _place(t, h, group, stream, whole)
    cdef size_t at = t.names.n
    if topic.used:
        return ST_OK
    if buf_put_slice(&t.names, group) != ST_OK or buf_put_slice(&t.names, stream) != ST_OK:
        return ST_NO_MEMORY
    topic.used = True
    topic.whole = whole
    topic.hash = h
    topic.group_at = at
    topic.group_n = group.n
    topic.stream_at = at + group.n
    topic.stream_n = stream.n
    return ST_OK


cdef bint topics_known(void* topics, Slice group, Slice stream) noexcept nogil:
    """Tell whether the group, or this stream of it, is in the set.

    Locality: any thread.
    """
    cdef Topics* t = <Topics*>topics
    if _place(t, _hash(group, stream, True), group, stream, True).used:
        return True
    return _place(t, _hash(group, stream, False), group, stream, False).used


cdef int numbers_init(Numbers* numbers, size_t count) noexcept nogil:
    """Make an empty list.  Locality: owner."""
    memset(numbers, 0, sizeof(Numbers))
    numbers.list = <Number*>calloc(count + 1, sizeof(Number))
    return ST_OK if numbers.list != NULL else ST_NO_MEMORY


cdef void numbers_free(Numbers* numbers) noexcept nogil:
    """Release the memory.  Locality: owner."""
    free(numbers.list)
    buf_free(&numbers.names)
    memset(numbers, 0, sizeof(Numbers))


cdef int numbers_add(Numbers* numbers, uint32_t key, Slice name) noexcept nogil:
    """Add the next number.  Locality: owner."""
    cdef Number* number = &numbers.list[numbers.count]
    number.key = key
    number.at = numbers.names.n
    number.n = name.n
    numbers.count += 1
    return buf_put_slice(&numbers.names, name)


cdef void numbers_find(void* context, uint32_t group_num, uint32_t stream_num, NumberedNames* out) noexcept nogil:
    """Look both numbers up; entries are stored under the names.  Locality: any thread."""
    cdef const Numbers* numbers = &(<Names*>context).numbers
    cdef const Number* group = _find(numbers, group_num << 16)
    cdef const Number* stream = NULL
    if group == NULL:
        return
    out.has_group = True
    out.translate = True
    out.group = slice_of(numbers.names.p + group.at, group.n)
    if stream_num:
        stream = _find(numbers, group_num << 16 | stream_num)
    if stream != NULL:
        out.has_stream = True
        out.stream = slice_of(numbers.names.p + stream.at, stream.n)


cdef const Number* _find(const Numbers* numbers, uint32_t key) noexcept nogil:
    """Return the entry of a key, or NULL.  Locality: any thread."""
    cdef size_t low = 0
    cdef size_t high = numbers.count
    cdef size_t middle
    while low < high:
        middle = (low + high) // 2
        if numbers.list[middle].key < key:
            low = middle + 1
        else:
            high = middle
    return &numbers.list[low] if low < numbers.count and numbers.list[low].key == key else NULL
