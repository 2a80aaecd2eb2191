"""Requests of a V1 client: a MessagePack around messages that were arranged where they lie.

The messages (``compressBytes``) come before the header, which protobuf allows: so nothing is moved when the header,
whose size is not known before, is written behind them.

A message is appended to its pack as ``{u32 length, body, u32 length, filler}`` (ITEM_ATTRS with ``FamilyForm.least``).
The filler is as long as what a MessageObj needs beside the body, so `arrange_items` makes MessageObjs of the items in
the same bytes, and a pack takes no memory that was not counted.

Locality: owner of the bytes.  Locks: none.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memchr, memcpy, memmove

from dataproxy._core.base.snappy.compress cimport unpacked_size
from dataproxy._core.base.slice cimport Slice, slice_is, slice_of
from dataproxy._core.base.status cimport ST_INVALID, ST_LIMIT, ST_OK
from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.wire.api cimport ITEM_ATTRS, ITEM_OBJECTS
from dataproxy._core.wire.inlong.const cimport LENGTH_SIZE, MAX_BODY, MAX_CLIENT_ATTRS, MAX_COUNT
from dataproxy._core.wire.inlongv1.const cimport (
    ENTRY_KEY, ENTRY_VALUE, FAMILY_V1, HEAD_COMPRESSION, HEAD_COUNT, HEAD_GROUP, HEAD_ID, HEAD_PARAM, HEAD_PLAIN_SIZE,
    HEAD_SIZE, HEAD_STREAM, HEAD_TIME, ITEM_ROOM, OBJ_BODY, OBJ_SOURCE, OBJ_TIME, OBJS_MSG, PACK_BYTES, PACK_HEADER,
    PLAIN, SNAPPY, SOURCE_MOST, TIME_BITS, V1_PACK, V1_TYPE, V1_VERSION, VERSION,
)
from dataproxy._core.base.protobuf cimport (
    bytes_size, put_bytes, put_head, put_number, varint_size,
)

cdef enum:
    HEADER_ROOM = 80            # tags, lengths and numbers of a header
    LENGTH_ROOM = 5             # of the header's length, before it is known
    MAX_UNPACKED = 1 << 30      # of a body that this process has compressed itself
    PAIR_COST = 8               # bytes of tags and lengths around a pair; its text has two bytes of its own

cdef const char* FILLER = b"_=........................"      # ITEM_ROOM bytes
cdef const char* LOCAL = b"127.0.0.1"


cdef int describe_v1(int number, FamilyForm* out) noexcept nogil:
    """Describe the one family of V1; ST_OK or ST_INVALID."""
    out.items = ITEM_ATTRS
    out.least = slice_of(FILLER, ITEM_ROOM)
    out.ids = False
    out.text = False
    out.arranged = True
    out.single = False
    return ST_OK if number == FAMILY_V1 else ST_INVALID


cdef size_t v1_tail_room(const FrameSpec* spec) noexcept nogil:
    """Return the bytes that the header of a pack takes at most."""
    cdef size_t i, pairs = 0
    for i in range(spec.attrs.n):
        pairs += spec.attrs.p[i] == 61          # '='
    return spec.attrs.n + PAIR_COST * pairs + spec.id.n + HEADER_ROOM


cdef inline Slice _source(const FrameSpec* spec) noexcept nogil:
    return spec.origin if 0 < spec.origin.n <= SOURCE_MOST else slice_of(LOCAL, 9)


cdef size_t arrange_items(const FrameSpec* spec, uint8_t* items, size_t n) noexcept nogil:
    """Make MessageObjs of the items of a pack, in place; return their size."""
    cdef const uint8_t* at = items
    cdef const uint8_t* end = items + n
    cdef uint8_t* to = items
    cdef uint8_t head[64]
    cdef const uint8_t* body
    cdef uint8_t* p
    cdef Slice source = _source(spec)
    cdef size_t body_n, size
    if spec.data_time_ms < 0 or spec.data_time_ms >> TIME_BITS:
        return 0
    while <size_t>(end - at) >= 8:
        body_n = load_be32(at)
        size = 1 + varint_size(<uint64_t>spec.data_time_ms) + bytes_size(source.n) + bytes_size(body_n)
        p = put_head(head, OBJS_MSG, size)
        p = put_number(p, OBJ_TIME, <uint64_t>spec.data_time_ms)
        p = put_bytes(p, OBJ_SOURCE, source)
        p = put_head(p, OBJ_BODY, body_n)
        size = <size_t>(p - head)
        body = at + 4
        at = body + body_n
        at += 4 + load_be32(at)             # before the body moves: it ends in its filler
        memmove(to + size, body, body_n)
        memcpy(to, head, size)
        to += size + body_n
    return <size_t>(to - items)


cdef uint8_t* _put_param(uint8_t* to, Slice key, Slice value) noexcept nogil:
    to = put_head(to, HEAD_PARAM, bytes_size(key.n) + bytes_size(value.n))
    return put_bytes(put_bytes(to, ENTRY_KEY, key), ENTRY_VALUE, value)


cdef uint8_t* _put_names(uint8_t* to, Slice text) noexcept nogil:
    # groupId and streamId get their fields, everything else becomes a param.
    cdef const uint8_t* at = text.p
    cdef const uint8_t* end = text.p + text.n
    cdef const uint8_t* stop
    cdef const uint8_t* cut
    cdef Slice key, value
    while at < end:
        stop = <const uint8_t*>memchr(at, 38, <size_t>(end - at))       # '&'
        stop = stop if stop != NULL else end
        cut = <const uint8_t*>memchr(at, 61, <size_t>(stop - at))       # '='
        if cut != NULL:
            key = slice_of(at, <size_t>(cut - at))
            value = slice_of(cut + 1, <size_t>(stop - cut - 1))
            if slice_is(key, b"groupId"):
                to = put_bytes(to, HEAD_GROUP, value)
            elif slice_is(key, b"streamId"):
                to = put_bytes(to, HEAD_STREAM, value)
            else:
                to = _put_param(to, key, value)
        at = stop + 1
    return to


cdef size_t _plain_size(const FrameSpec* spec, const uint8_t* body, size_t n) noexcept nogil:
    # A snappy block begins with the size of its content, as a varint.
    cdef size_t size = 0
    if not spec.compressed:
        return n
    unpacked_size(body, n, MAX_UNPACKED, &size)
    return size


cdef int frame_v1(const FrameSpec* spec, uint8_t* buf, size_t body_n, size_t* start, size_t* size) noexcept nogil:
    """Write length and head in front of the messages, and the header behind them."""
    cdef uint8_t* body = buf + PACK_HEAD_ROOM
    cdef uint8_t* head
    cdef uint8_t* tail = body + body_n
    cdef uint8_t* to
    cdef size_t header_n, at
    if body_n == 0 or spec.count == 0 or spec.attrs.n == 0 or spec.family != FAMILY_V1 or spec.items != ITEM_OBJECTS:
        return ST_INVALID
    if spec.attrs.n + spec.id.n > MAX_CLIENT_ATTRS or body_n > MAX_BODY or spec.count > MAX_COUNT or spec.apart:
        return ST_LIMIT
    if spec.data_time_ms < 0 or spec.data_time_ms >> TIME_BITS:
        return ST_LIMIT
    to = tail + 1 + LENGTH_ROOM             # its length is written when it is known
    to = _put_names(to, spec.attrs)
    if spec.id.n:
        to = _put_param(to, slice_of(b"sid", 3), spec.id)
    to = put_number(to, HEAD_ID, spec.seq)
    to = put_number(to, HEAD_TIME, <uint64_t>spec.data_time_ms)
    to = put_number(to, HEAD_COUNT, spec.count)
    to = put_number(to, HEAD_PLAIN_SIZE, _plain_size(spec, body, body_n))
    to = put_number(to, HEAD_SIZE, body_n)
    to = put_number(to, HEAD_COMPRESSION, SNAPPY if spec.compressed else PLAIN)
    header_n = <size_t>(to - tail) - 1 - LENGTH_ROOM
    at = bytes_size(header_n) - header_n
    memmove(tail + at, tail + 1 + LENGTH_ROOM, header_n)
    put_head(tail, PACK_HEADER, header_n)
    head = body - (bytes_size(body_n) - body_n)
    put_head(head, PACK_BYTES, body_n)
    head -= V1_PACK
    start[0] = <size_t>(head - buf)
    size[0] = <size_t>(tail + at + header_n - head)
    store_be32(head, <uint32_t>(size[0] - LENGTH_SIZE))
    head[V1_TYPE] = 0
    head[V1_VERSION] = VERSION
    return ST_OK
