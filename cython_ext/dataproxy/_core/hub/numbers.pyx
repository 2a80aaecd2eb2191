"""Names of numeric ids in a sorted list, found by binary search.

Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from dataproxy._core.base.buf cimport buf_free, buf_put_slice
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.wire.api cimport NumberedNames


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
