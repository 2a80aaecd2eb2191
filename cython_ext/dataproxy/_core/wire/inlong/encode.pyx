"""Requests of a client: the header goes right before a body, the trailer right behind it.

Locks: none.
"""

from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport buf_reserve
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_INVALID, ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.endian cimport store_be16, store_be32
from dataproxy._core.wire.api cimport (
    ACK_NONE, ACK_SINK, HB_BINARY, HB_MESSAGE, ITEM_ATTRS, ITEM_LENGTH, ITEM_LINES, FamilyForm,
)
from dataproxy._core.wire.inlong.const cimport (
    BIN_BODY,
    BIN_BODY_LEN,
    BIN_COUNT,
    BIN_DATA_TIME,
    BIN_EXT,
    BIN_FIXED,
    BIN_GROUP_NUM,
    BIN_TYPE,
    BIN_UNIQ,
    EXT_LINES,
    EXT_NAMES,
    EXT_PAIRS,
    EXT_TRACE,
    FAMILY_BINARY_LINES,
    HB_BODY,
    HB_FIXED,
    HB_TIME,
    HB_VERSION,
    LENGTH_SIZE,
    MAGIC,
    MAX_BODY,
    MAX_CLIENT_ATTRS,
    MAX_COUNT,
    TEXT_BODY,
    TEXT_BODY_LEN,
    TEXT_FIXED,
    TEXT_TYPE,
    TYPE_BINARY,
    TYPE_BINARY_HEARTBEAT,
    TYPE_COMMON,
    TYPE_HEARTBEAT,
    TYPE_ITEMS,
    TYPE_LINES,
    TYPE_PAIRS,
    TYPE_SNAPPY,
)
from dataproxy._core.base.text cimport is_ascii, write_decimal


cdef enum:
    ADDED_ROOM = 64             # &dt=<20>&mid=<10>&cnt=<5>&cp=snappy
    NO_ACK_SIZE = 12            # &isAck=false
    SINK_ACK_SIZE = 15          # &proxySend=true


cdef size_t frame_tail_room(const FrameSpec* spec) noexcept nogil:
    """Return the bytes that a frame may need behind its body.  Locality: any thread."""
    cdef size_t n = spec.attrs.n + _added_size(spec) + 4
    return n if _is_binary(spec.family) else n + ADDED_ROOM


cdef int frame_around(const FrameSpec* spec, uint8_t* buf, size_t body_n, size_t* start, size_t* size) noexcept nogil:
    """Write header and trailer around the body.  Locality: owner of ``buf``."""
    if body_n == 0 or spec.count == 0 or spec.attrs.n == 0 or spec.data_time_ms < 0:
        return ST_INVALID
    if spec.attrs.n + _added_size(spec) > MAX_CLIENT_ATTRS or body_n + spec.apart > MAX_BODY or spec.count > MAX_COUNT:
        return ST_LIMIT
    if _is_binary(spec.family):
        return _frame_binary(spec, buf, body_n, start, size)
    return _frame_text(spec, buf, body_n, start, size)


cdef int describe_family(int number, FamilyForm* out) noexcept nogil:
    """Describe frames of a family; ST_OK, or ST_INVALID for a number that carries no plain messages."""
    out.items = ITEM_LENGTH
    out.ids = number == TYPE_BINARY
    out.text = False
    out.least = slice_of(NULL, 0)
    out.arranged = False
    out.single = False
    if number == TYPE_LINES or number == TYPE_COMMON or number == FAMILY_BINARY_LINES:
        out.items = ITEM_LINES
    elif number == TYPE_PAIRS:
        out.items = ITEM_ATTRS
        out.least = slice_of(b"_=", 2)      # such items have an attribute text of one byte at least
    elif number != TYPE_BINARY and number != TYPE_ITEMS:
        return ST_INVALID
    return ST_OK


cdef int put_heartbeat(int kind, int64_t now_ms, Buf* out) noexcept nogil:
    """Append one heartbeat request.  Locality: owner of ``out``."""
    cdef uint8_t* p
    if buf_reserve(out, HB_FIXED) != ST_OK:
        return ST_NO_MEMORY
    p = out.p + out.n
    if kind == HB_MESSAGE:
        store_be32(p, 1)
        p[LENGTH_SIZE] = TYPE_HEARTBEAT
        out.n += LENGTH_SIZE + 1
        return ST_OK
    if kind != HB_BINARY:
        return ST_INVALID
    memset(p, 0, HB_FIXED)
    store_be32(p, HB_FIXED - LENGTH_SIZE)
    p[LENGTH_SIZE] = TYPE_BINARY_HEARTBEAT
    store_be32(p + HB_TIME, <uint32_t>(now_ms // 1000))
    p[HB_VERSION] = 1
    store_be16(p + HB_BODY + 2, MAGIC)
    out.n += HB_FIXED
    return ST_OK


cdef int _frame_binary(const FrameSpec* spec, uint8_t* buf, size_t body_n, size_t* start, size_t* size) noexcept nogil:
    cdef uint8_t* body = buf + FRAME_HEAD_ROOM
    cdef uint8_t* head
    cdef uint8_t* tail = body + body_n
    cdef size_t whole = body_n + spec.apart
    cdef uint16_t ext = EXT_NAMES
    cdef size_t attr_n = spec.attrs.n + _added_size(spec)
    cdef int64_t seconds = spec.data_time_ms // 1000
    if seconds > <int64_t>0xFFFFFFFF:
        return ST_LIMIT
    if not is_ascii(spec.attrs):
        return ST_INVALID           # servers count the attributes in characters
    if spec.items == ITEM_ATTRS:
        ext |= EXT_PAIRS
    elif spec.items == ITEM_LINES:
        if spec.compressed:
            return ST_INVALID       # the item's length belongs inside the block
        ext |= EXT_LINES
        body -= 4
        store_be32(body, <uint32_t>whole)
        whole += 4
    elif spec.items != ITEM_LENGTH:
        return ST_INVALID
    if spec.family == FAMILY_BINARY_LINES and spec.items != ITEM_LINES:
        return ST_INVALID
    if spec.origin.n:
        ext |= EXT_TRACE
    head = body - BIN_BODY
    start[0] = <size_t>(head - buf)
    size[0] = BIN_FIXED + whole + attr_n
    store_be32(head, <uint32_t>(size[0] - LENGTH_SIZE))
    head[BIN_TYPE] = TYPE_BINARY | TYPE_SNAPPY if spec.compressed else TYPE_BINARY
    store_be32(head + BIN_GROUP_NUM, 0)     # both numbers: names are used
    store_be16(head + BIN_EXT, ext)
    store_be32(head + BIN_DATA_TIME, <uint32_t>seconds)
    store_be16(head + BIN_COUNT, <uint16_t>spec.count)
    store_be32(head + BIN_UNIQ, spec.seq)
    store_be32(head + BIN_BODY_LEN, <uint32_t>whole)
    store_be16(tail, <uint16_t>attr_n)
    _put_attrs(tail + 2, spec)
    store_be16(tail + 2 + attr_n, MAGIC)
    return ST_OK


cdef int _frame_text(const FrameSpec* spec, uint8_t* buf, size_t body_n, size_t* start, size_t* size) noexcept nogil:
    cdef uint8_t* head = buf + FRAME_HEAD_ROOM - TEXT_BODY
    cdef uint8_t* tail = buf + FRAME_HEAD_ROOM + body_n
    cdef uint8_t* end = tail + 4
    cdef int msg_type = _text_type(spec.family, spec.items)
    cdef size_t attr_n
    if msg_type == 0:
        return ST_INVALID
    end = _put_attrs(end, spec)
    end = _put_number(end, b"&dt=", 4, <uint64_t>spec.data_time_ms)
    end = _put_number(end, b"&mid=", 5, spec.seq)
    end = _put_number(end, b"&cnt=", 5, spec.count)
    if spec.compressed:
        memcpy(end, b"&cp=snappy", 10)
        end += 10
    attr_n = <size_t>(end - tail) - 4
    if attr_n > MAX_CLIENT_ATTRS:
        return ST_LIMIT
    start[0] = FRAME_HEAD_ROOM - TEXT_BODY
    size[0] = TEXT_FIXED + body_n + spec.apart + attr_n
    store_be32(head, <uint32_t>(size[0] - LENGTH_SIZE))
    head[TEXT_TYPE] = <uint8_t>msg_type
    store_be32(head + TEXT_BODY_LEN, <uint32_t>(body_n + spec.apart))
    store_be32(tail, <uint32_t>attr_n)
    return ST_OK


cdef inline bint _is_binary(int family) noexcept nogil:
    return family == TYPE_BINARY or family == FAMILY_BINARY_LINES


cdef size_t _trace_size(const FrameSpec* spec) noexcept nogil:
    # &node1ip=<address>&rtime1=<milliseconds>
    cdef uint8_t digits[24]
    if spec.origin.n == 0 or not _is_binary(spec.family):
        return 0
    return 9 + spec.origin.n + 8 + write_decimal(digits, <uint64_t>spec.origin_ms)


cdef inline size_t _added_size(const FrameSpec* spec) noexcept nogil:
    # &sid=<id>, then the trace, then &isAck=false or &proxySend=true
    cdef size_t n = 5 + spec.id.n if spec.id.n else 0
    if spec.origin.n:
        n += _trace_size(spec)
    if spec.ack == ACK_NONE:
        return n + NO_ACK_SIZE
    return n + SINK_ACK_SIZE if spec.ack == ACK_SINK else n


cdef uint8_t* _put_attrs(uint8_t* out, const FrameSpec* spec) noexcept nogil:
    # The caller's attributes, then the pack's id, the trace, and which answer is asked for.
    memcpy(out, spec.attrs.p, spec.attrs.n)
    out += spec.attrs.n
    if spec.id.n:
        memcpy(out, b"&sid=", 5)
        memcpy(out + 5, spec.id.p, spec.id.n)
        out += 5 + spec.id.n
    if spec.origin.n and _is_binary(spec.family):
        memcpy(out, b"&node1ip=", 9)
        memcpy(out + 9, spec.origin.p, spec.origin.n)
        out = _put_number(out + 9 + spec.origin.n, b"&rtime1=", 8, <uint64_t>spec.origin_ms)
    if spec.ack == ACK_NONE:
        memcpy(out, b"&isAck=false", NO_ACK_SIZE)
        out += NO_ACK_SIZE
    elif spec.ack == ACK_SINK:
        memcpy(out, b"&proxySend=true", SINK_ACK_SIZE)
        out += SINK_ACK_SIZE
    return out


cdef int _text_type(int family, int items) noexcept nogil:
    if items == ITEM_LENGTH and family == TYPE_ITEMS:
        return TYPE_ITEMS
    if items == ITEM_ATTRS and (family == TYPE_ITEMS or family == TYPE_PAIRS):
        return TYPE_PAIRS
    if items == ITEM_LINES and (family == TYPE_LINES or family == TYPE_COMMON):
        return family
    return 0


cdef uint8_t* _put_number(uint8_t* out, const char* key, size_t key_n, uint64_t value) noexcept nogil:
    memcpy(out, key, key_n)
    return out + key_n + write_decimal(out + key_n, value)
