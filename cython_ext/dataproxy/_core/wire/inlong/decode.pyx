"""Frames on a byte stream, and replies: nothing is copied, every length is checked before its use.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memset

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_LIMIT, ST_NEED_DATA, ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport load_be16, load_be32
from dataproxy._core.wire.api cimport EV_ACK, EV_HEARTBEAT_ACK, EV_UNKNOWN
from dataproxy._core.wire.inlong.const cimport (
    ACK_ATTR,
    ACK_ATTR_LEN,
    ACK_FIXED,
    ACK_UNIQ,
    ERR_UNKNOWN,
    HB_BODY,
    HB_BODY_LEN,
    HB_FIXED,
    LENGTH_SIZE,
    LOAD_UNKNOWN,
    MAGIC,
    TEXT_BODY,
    TEXT_BODY_LEN,
    TEXT_FIXED,
    TYPE_BINARY,
    TYPE_BINARY_HEARTBEAT,
    TYPE_COMMON,
    TYPE_HEARTBEAT,
    TYPE_MASK,
    TYPE_PAIRS,
)
from dataproxy._core.base.text cimport read_decimal


cdef WireEvent BLANK         # constant after import
memset(&BLANK, 0, sizeof(WireEvent))
BLANK.load = -1
BLANK.reach = -1


cdef int find_frame(const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil:
    """Bound the first frame of ``p[0:n]``."""
    cdef uint64_t whole
    size[0] = 0
    if n < LENGTH_SIZE:
        return ST_NEED_DATA
    whole = <uint64_t>load_be32(p) + LENGTH_SIZE
    if whole == LENGTH_SIZE:
        return ST_PROTOCOL      # not even a type
    if whole > max_frame:
        return ST_LIMIT
    size[0] = <size_t>whole
    return ST_OK if n >= size[0] else ST_NEED_DATA


cdef int read_reply(const uint8_t* p, size_t n, WireEvent* event) noexcept nogil:
    """Read one whole frame from a server."""
    cdef int msg_type
    event[0] = BLANK
    if n <= LENGTH_SIZE or load_be32(p) != n - LENGTH_SIZE:
        return ST_PROTOCOL
    msg_type = p[LENGTH_SIZE] & TYPE_MASK
    event.msg_type = msg_type
    if msg_type == TYPE_BINARY:
        return _read_binary_ack(p, n, event)
    if TYPE_COMMON <= msg_type <= TYPE_PAIRS:
        return _read_text_ack(p, n, event)
    if msg_type == TYPE_HEARTBEAT:
        event.kind = EV_HEARTBEAT_ACK
        return ST_OK
    if msg_type == TYPE_BINARY_HEARTBEAT:
        return _read_binary_heartbeat(p, n, event)
    event.kind = EV_UNKNOWN
    return ST_OK


cdef int _read_binary_ack(const uint8_t* p, size_t n, WireEvent* event) noexcept nogil:
    cdef uint32_t uniq
    if n < ACK_FIXED:
        return ST_PROTOCOL
    # Servers write the low 16 bits of a longer text's length; the frame bounds the text anyway.
    if ((n - ACK_FIXED) & 0xFFFF) != load_be16(p + ACK_ATTR_LEN) or load_be16(p + n - 2) != MAGIC:
        return ST_PROTOCOL
    uniq = load_be32(p + ACK_UNIQ)
    event.kind = EV_ACK
    _read_ack_text(slice_of(p + ACK_ATTR, n - ACK_FIXED), event)
    event.has_seq = True
    event.seq = uniq
    return ST_OK


cdef int _read_text_ack(const uint8_t* p, size_t n, WireEvent* event) noexcept nogil:
    cdef uint64_t body_n
    cdef uint64_t attr_n
    if n < TEXT_FIXED:
        return ST_PROTOCOL
    body_n = load_be32(p + TEXT_BODY_LEN)
    if body_n > n - TEXT_FIXED:
        return ST_PROTOCOL
    attr_n = load_be32(p + TEXT_BODY + body_n)
    if attr_n != n - TEXT_FIXED - body_n:
        return ST_PROTOCOL
    event.kind = EV_ACK
    _read_ack_text(slice_of(p + TEXT_FIXED + body_n, <size_t>attr_n), event)
    return ST_OK


cdef int _read_binary_heartbeat(const uint8_t* p, size_t n, WireEvent* event) noexcept nogil:
    cdef uint64_t body_n
    cdef uint32_t load
    if n < HB_FIXED:
        return ST_PROTOCOL
    body_n = load_be32(p + HB_BODY_LEN)
    if body_n > n - HB_FIXED or load_be16(p + HB_BODY + body_n) != n - HB_FIXED - body_n:
        return ST_PROTOCOL
    if load_be16(p + n - 2) != MAGIC:
        return ST_PROTOCOL
    event.kind = EV_HEARTBEAT_ACK
    if body_n == 2:             # whatever the version byte says
        load = load_be16(p + HB_BODY)
        if load != LOAD_UNKNOWN:
            event.load = <int>load
    return ST_OK


cdef bint _is_key(Slice key, const char* name, size_t name_n) noexcept nogil:
    return key.n == name_n and memcmp(key.p, name, name_n) == 0


cdef void _read_ack_text(Slice text, WireEvent* event) noexcept nogil:
    # Error texts hold "&" and "=" without escaping: pieces are cut at their first "=", the server's own
    # errCode comes first and the echo of the request last.
    cdef const uint8_t* at = text.p
    cdef const uint8_t* end = text.p + text.n
    cdef const uint8_t* stop
    cdef const uint8_t* cut
    cdef Slice key
    cdef Slice value
    cdef bint have_code = False
    cdef bint have_mid = False
    event.text = text
    while at < end:
        stop = <const uint8_t*>memchr(at, 38, <size_t>(end - at))
        if stop == NULL:
            stop = end
        cut = <const uint8_t*>memchr(at, 61, <size_t>(stop - at))
        if cut != NULL:
            key = slice_of(at, <size_t>(cut - at))
            value = slice_of(cut + 1, <size_t>(stop - cut - 1))
            if key.n == 4 and event.node.p == NULL and (_is_key(key, b"dpIp", 4) or _is_key(key, b"dpIP", 4)):
                event.node = value
            elif _is_key(key, b"errCode", 7) and not have_code:
                have_code = True
                event.code = _read_code(value)
            elif _is_key(key, b"errMsg", 6) and event.message.p == NULL:
                event.message = _message_in(value, end)
            elif key.n == 3:
                if _is_key(key, b"mid", 3):
                    have_mid = _read_seq(value, event) or have_mid
                elif _is_key(key, b"dup", 3) and event.reach < 0:
                    _read_known(value, event)
            elif _is_key(key, b"messageId", 9) and not have_mid:
                _read_seq(value, event)
        at = stop + 1


cdef int _read_code(Slice value) noexcept nogil:
    cdef int64_t code = 0
    cdef size_t i = 0
    while i < value.n and value.p[i] <= 32:
        i += 1
    if i == value.n:
        return 0                # a blank code is success
    if not read_decimal(value, &code) or code < 0 or code > ERR_UNKNOWN:
        return ERR_UNKNOWN
    return <int>code


cdef void _read_known(Slice value, WireEvent* event) noexcept nogil:
    # Three numbers: seconds, messages that were known, and messages that differed from what was known.
    cdef int64_t numbers[3]
    cdef const uint8_t* at = value.p
    cdef const uint8_t* end = value.p + value.n
    cdef const uint8_t* stop
    cdef int i
    for i in range(3):
        stop = <const uint8_t*>memchr(at, 44, <size_t>(end - at))
        if (stop == NULL) != (i == 2):
            return
        if stop == NULL:
            stop = end
        if not read_decimal(slice_of(at, <size_t>(stop - at)), &numbers[i]) or numbers[i] < 0:
            return
        numbers[i] = min(numbers[i], <int64_t>0x7FFFFFFF)
        at = stop + 1
    event.reach = <int>numbers[0]
    event.known = <int>numbers[1]
    event.differed = <int>numbers[2]


cdef bint _read_seq(Slice value, WireEvent* event) noexcept nogil:
    # Only the last correlation key counts, so an unreadable one forgets those before it.
    cdef int64_t number = 0
    event.has_seq = read_decimal(value, &number) and -<int64_t>0x80000000 <= number <= <int64_t>0xFFFFFFFF
    event.seq = <uint32_t>number if event.has_seq else 0
    return event.has_seq


cdef Slice _message_in(Slice first, const uint8_t* end) noexcept nogil:
    # Servers quote attribute text in parentheses: an "&" between them belongs to the message.
    cdef const uint8_t* at = first.p
    cdef int depth = 0
    while at < end and (at[0] != 38 or depth > 0):
        if at[0] == 40:
            depth += 1
        elif at[0] == 41 and depth > 0:
            depth -= 1
        at += 1
    if depth > 0:
        return first
    return slice_of(first.p, <size_t>(at - first.p))
