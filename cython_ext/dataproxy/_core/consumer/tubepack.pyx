"""Packs are made of answers in one step: bytes copied, checksums compared, attributes split off, filters applied.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of, slice_text
from dataproxy._core.plat.atomic cimport atomic_add
from dataproxy._core.wire.tubemq.get cimport Got, TubeMessage, got_next
from dataproxy._core.wire.tubemq.payload cimport attribute_value, payload_checksum, split_payload

cdef const char* FILTER_KEY = "$msgType$"


cdef bint _passes(Slice attribute, const Slice* filters, int n) noexcept nogil:
    """Tell whether a message is one of those that were asked for: brokers compare hashes alone."""
    cdef Slice value
    cdef int i
    if n == 0:
        return True
    if not attribute_value(attribute, slice_text(FILTER_KEY), &value):
        return False
    for i in range(n):
        if slice_equals(value, filters[i]):
            return True
    return False


cdef Slice _moved(Slice s, const uint8_t* start, uint8_t* to) noexcept nogil:
    return slice_of(to + (s.p - start), s.n) if s.n else slice_of(to, 0)


cdef TubePack* tubepack_new(const Got* got, const Slice* filters, int n_filters) noexcept nogil:
    """Return a pack of the messages of an answer that belong to its reader, with one user; NULL without memory."""
    cdef size_t head = sizeof(TubePack) + got.n * sizeof(TubeItem)
    cdef TubePack* p = <TubePack*>malloc(head + got.data.n)
    cdef Slice rest, attribute, body
    cdef TubeMessage message
    cdef uint8_t* data
    if p == NULL:
        return NULL
    memset(p, 0, sizeof(TubePack))
    p.users = 1
    p.memory = <int64_t>(head + got.data.n)
    p.items = <TubeItem*>(<uint8_t*>p + sizeof(TubePack))
    data = <uint8_t*>p + head
    memcpy(data, got.data.p, got.data.n)
    p.offset, p.max_offset = got.offset, got.max_offset
    p.bytes, p.came = <int64_t>got.bytes, <int32_t>got.n
    rest = got.data
    while got_next(&rest, &message):
        if payload_checksum(message.payload) != message.checksum:
            p.broken += 1
            continue
        split_payload(message.flag, message.payload, &attribute, &body)     # without an attribute that does not fit
        if not _passes(attribute, filters, n_filters):
            continue
        p.items[p.n].id = message.id
        p.items[p.n].attribute = _moved(attribute, got.data.p, data)
        p.items[p.n].body = _moved(body, got.data.p, data)
        p.n += 1
    return p


cdef void tubepack_hold(TubePack* p) noexcept nogil:
    """Add a user."""
    atomic_add(&p.users, 1)


cdef void tubepack_let_go(TubePack* p) noexcept nogil:
    """Remove a user; the last one frees it."""
    if p != NULL and atomic_add(&p.users, -1) == 0:
        free(p)
