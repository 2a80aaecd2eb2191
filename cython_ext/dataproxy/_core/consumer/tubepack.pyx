"""Packs are made of answers in one step: messages found, checksums compared, attributes split off, filters applied.

The bytes stay where they came.  Messages with the same attribute text as the one before share it: whoever looks at
attributes one by one sees by the address that there is nothing new.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp

from dataproxy._core.base.blocks cimport block_free
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of, slice_text
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.plat.atomic cimport atomic_add
from dataproxy._core.wire.tubemq.get cimport (
    GS_BROKEN, GS_MESSAGE, Got, GotScan, TubeMessage, got_begin, got_step,
)
from dataproxy._core.wire.tubemq.payload cimport attribute_value, payload_checksum, split_payload

cdef const char* FILTER_KEY = "$msgType$"

cdef enum:
    MESSAGE_HEADS = 10      # bytes of a message that are not its payload, at least
    MORE_ITEMS = 16         # than the first message's size lets expect
    MOST_EXPECTED = 16384
    PAIR_MARK = 44          # ','
    SIGN_MARK = 61          # '='


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


cdef bint _make_room(TubePack* p, int32_t* room, size_t expected) noexcept nogil:
    """Make room for one more item, at first for as many as are expected; False without memory."""
    cdef TubeItem* grown
    cdef size_t n
    if p.n < room[0]:
        return True
    n = min(expected + MORE_ITEMS, <size_t>MOST_EXPECTED) if room[0] == 0 else 2 * <size_t>room[0]
    grown = <TubeItem*>realloc(p.items, n * sizeof(TubeItem))
    if grown == NULL:
        return False
    p.items, room[0] = grown, <int32_t>n
    return True


cdef void _cut_room(TubePack* p, int32_t room) noexcept nogil:
    """Give back the room of items that did not come."""
    cdef TubeItem* cut
    if 0 < p.n < room - room // 8:
        cut = <TubeItem*>realloc(p.items, <size_t>p.n * sizeof(TubeItem))
        p.items = cut if cut != NULL else p.items


cdef int _take_messages(TubePack* p, Slice data, const Slice* filters, int n_filters, Got* got) noexcept nogil:
    cdef GotScan scan
    cdef TubeMessage message
    cdef Slice attribute, body, before = slice_of(NULL, 0)
    cdef int32_t room = 0
    cdef bint passes = n_filters == 0
    cdef int step
    cdef TubeItem* item
    got_begin(&scan, data, got)
    while True:
        step = got_step(&scan, got, &message)
        if step != GS_MESSAGE:
            _cut_room(p, room)
            return ST_PROTOCOL if step == GS_BROKEN else ST_OK
        if payload_checksum(message.payload) != message.checksum:
            p.broken += 1
            continue
        split_payload(message.flag, message.payload, &attribute, &body)     # without an attribute that does not fit
        if attribute.n and attribute.n == before.n and memcmp(attribute.p, before.p, attribute.n) == 0:
            attribute = before
        else:
            before = attribute
            passes = _passes(attribute, filters, n_filters)
        if not passes:
            continue
        if not _make_room(p, &room, data.n // (message.payload.n + MESSAGE_HEADS)):
            return ST_NO_MEMORY
        item = &p.items[p.n]
        item.id, item.attribute, item.body = message.id, attribute, body
        p.body_bytes += <int64_t>body.n
        p.n += 1


cdef int tubepack_read(
    Slice data, uint8_t* block, const Slice* filters, int n_filters, Got* got, TubePack** out,
) noexcept nogil:
    """Read an answer, and make a pack of those of its messages that belong to its reader, with one user.

    Its bytes stay in ``data``: ``block``, in which they lie, is the pack's from then on; without one, ``data`` has to
    outlive the pack.  ST_OK, ST_PROTOCOL (it is no answer) or ST_NO_MEMORY, both without a pack.
    """
    cdef TubePack* p = <TubePack*>calloc(1, sizeof(TubePack))
    cdef int status
    out[0] = NULL
    if p == NULL:
        return ST_NO_MEMORY
    status = _take_messages(p, data, filters, n_filters, got)
    if status != ST_OK:
        free(p.items)
        free(p)
        return status
    p.users = 1
    p.pair_mark, p.sign_mark = PAIR_MARK, SIGN_MARK
    p.block = block
    p.memory = <int64_t>(sizeof(TubePack) + <size_t>p.n * sizeof(TubeItem) + data.n)
    p.offset, p.max_offset = got.offset, got.max_offset
    p.bytes, p.came = <int64_t>got.bytes, <int32_t>got.n
    out[0] = p
    return ST_OK


cdef void tubepack_hold(TubePack* p) noexcept nogil:
    """Add a user."""
    atomic_add(&p.users, 1)


cdef void tubepack_let_go(TubePack* p) noexcept nogil:
    """Remove a user; the last one frees it."""
    if p != NULL and atomic_add(&p.users, -1) == 0:
        free(p.items)
        block_free(p.block)
        free(p)
