"""Making and releasing entries.

The caller fills an ``Entry`` on its stack with borrowed slices (group, stream, InLongMsg in ``value``,
reply) and gets one heap block back that owns copies of them, with the queue header in front of the value.
"""

from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.hub.entry cimport Entry
from dataproxy._core.hub.header cimport QueueHeader, header_size, header_write


cdef Entry* entry_new(const Entry* parts, Slice source, Slice node) noexcept nogil:
    """Return a copy of ``parts`` in one block, or NULL.

    Locality: any thread.
    Locks: none.
    """
    cdef QueueHeader header
    cdef Entry* entry
    cdef uint8_t* at
    cdef size_t head
    header.receive_ms = parts.receive_ms
    header.data_time_ms = parts.data_time_ms
    header.records = parts.records
    header.stream = 0
    header.source = source
    header.node = node
    head = header_size(&header)
    entry = <Entry*>malloc(sizeof(Entry) + parts.ids.n + head + parts.value.n + parts.group.n + parts.stream.n
                           + parts.reply.n)
    if entry == NULL:
        return NULL
    entry[0] = parts[0]
    entry.next = NULL
    entry.fault = NULL
    entry.offset = 0
    entry.duplicates = 0
    entry.status = 0
    at = _copy(<uint8_t*>entry + sizeof(Entry), &entry.ids)    # first, for their alignment
    header_write(&header, at)
    if parts.value.n:
        memcpy(at + head, parts.value.p, parts.value.n)
    entry.value = slice_of(at, head + parts.value.n)
    at += entry.value.n
    at = _copy(at, &entry.group)
    at = _copy(at, &entry.stream)
    _copy(at, &entry.reply)
    return entry


cdef void entry_free(Entry* entry) noexcept nogil:
    """Release one entry.  Locality: owner.  Locks: none."""
    free(entry.fault)
    free(entry)


cdef void entry_free_chain(Entry* chain) noexcept nogil:
    """Release every entry of a chain.  Locality: owner.  Locks: none."""
    cdef Entry* following
    while chain != NULL:
        following = chain.next
        entry_free(chain)
        chain = following


cdef size_t entry_footprint(const Entry* entry) noexcept nogil:
    """Return the bytes of memory one entry holds.  Locality: any thread.  Locks: none."""
    return sizeof(Entry) + entry.ids.n + entry.value.n + entry.group.n + entry.stream.n + entry.reply.n


cdef uint8_t* _copy(uint8_t* at, Slice* slice) noexcept nogil:
    """Copy the bytes of a slice to ``at``, point the slice there, return the place behind.

    Locality: any thread.
    Locks: none.
    """
    if slice.n:
        memcpy(at, slice.p, slice.n)
    slice.p = at
    return at + slice.n
