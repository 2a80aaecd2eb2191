"""Making and releasing entries.

The caller fills an ``Entry`` on its stack with borrowed slices (group, stream, InLongMsg in ``value``,
reply).  It gets a heap block that owns copies of them, with the queue header before the value.  For a store that keeps
values without a copy, the value is in a block of its own, and the store takes this block.

Locks: none.
"""

from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.hub.entry cimport Entry
from dataproxy._core.hub.header cimport QueueHeader, header_size, header_write


cdef Entry* entry_new(const Entry* parts, Slice source, Slice node, const Middle* middle, size_t room) noexcept nogil:
    """Return a copy of ``parts`` in one block, or two, or NULL.

    Locality: any thread.
    """
    cdef QueueHeader header
    cdef Entry* entry
    cdef uint8_t* at
    cdef uint8_t* value
    cdef void* block = NULL
    cdef size_t head, size
    header.receive_ms = parts.receive_ms
    header.data_time_ms = parts.data_time_ms
    header.records = parts.records
    header.stream = 0
    header.stored_ms = 0
    header.source = source
    header.node = node
    head = header_size(&header)
    size = head + parts.value.n + middle.bytes.n
    entry = <Entry*>malloc(sizeof(Entry) + parts.ids.n + (size if room == 0 else 0) + parts.group.n + parts.stream.n
                           + parts.reply.n)
    if entry == NULL:
        return NULL
    if room:
        block = malloc(room + size)
        if block == NULL:
            free(entry)
            return NULL
    entry[0] = parts[0]
    entry.next = NULL
    entry.fault = NULL
    entry.block = block
    entry.offset = 0
    entry.duplicates = 0
    entry.conflicts = 0
    entry.reach_ms = -1
    entry.status = 0
    at = _copy(<uint8_t*>entry + sizeof(Entry), &entry.ids)    # first, for their alignment
    value = <uint8_t*>block + room if room else at
    header_write(&header, value)
    _join(value + head, parts.value, middle)
    entry.value = slice_of(value, size)
    if room == 0:
        at += size
    at = _copy(at, &entry.group)
    at = _copy(at, &entry.stream)
    _copy(at, &entry.reply)
    return entry


cdef void _join(uint8_t* to, Slice value, const Middle* middle) noexcept nogil:
    """Write a value with its middle.  Locality: any thread."""
    cdef size_t first = middle.at if middle.bytes.n else value.n
    if value.n == 0:
        return
    memcpy(to, value.p, first)
    if middle.bytes.n:
        memcpy(to + first, middle.bytes.p, middle.bytes.n)
        memcpy(to + first + middle.bytes.n, value.p + first, value.n - first)


cdef void entry_free(Entry* entry) noexcept nogil:
    """Release one entry.  Locality: owner."""
    free(entry.fault)
    free(entry.block)
    free(entry)


cdef void entry_free_chain(Entry* chain) noexcept nogil:
    """Release every entry of a chain.  Locality: owner."""
    cdef Entry* following
    while chain != NULL:
        following = chain.next
        entry_free(chain)
        chain = following


cdef size_t entry_footprint(const Entry* entry) noexcept nogil:
    """Return the bytes of memory one entry holds.  Locality: any thread."""
    return sizeof(Entry) + entry.ids.n + entry.value.n + entry.group.n + entry.stream.n + entry.reply.n


cdef uint8_t* _copy(uint8_t* at, Slice* slice) noexcept nogil:
    """Copy the bytes of a slice to ``at``, point the slice there, return the place behind.

    Locality: any thread.
    """
    if slice.n:
        memcpy(at, slice.p, slice.n)
    slice.p = at
    return at + slice.n
