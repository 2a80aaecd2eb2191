"""Requests of a producer: one message into one partition, framed where it lies.

The partition and the producer's admission are not known before a connection is chosen, and differ in a later attempt.
So they stand at a known place of the request, as numbers that always take the most bytes, and the message is the
request's last field.  Readers take the fields of a message in any order, and numbers with more bytes than needed.

Locality: the buffer's owner.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from dataproxy._core.base.protobuf cimport FK_BYTES, FK_VARINT, bytes_size, put_bytes, put_head, put_number, varint_size
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_INVALID, ST_LIMIT, ST_OK
from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.wire.api cimport ITEM_ATTRS, ITEM_LENGTH
from dataproxy._core.wire.tubemq.const cimport (
    ATTRIBUTE_HEAD, AUTH_TOKEN, AUTH_VISIT, CALL_METHOD, CALL_REQUEST, CALL_TIMEOUT, CONN_FLAG, FAMILY_TUBEMQ,
    FLAG_ATTRIBUTE, FRAME_HEAD, METHOD_SEND, PAYLOAD_MOST, PROTOCOL_VERSION, REQUEST_SERVICE, REQUEST_VERSION,
    SEND_ADDRESS, SEND_AUTH, SEND_CHECKSUM, SEND_CLIENT, SEND_DATA, SEND_FLAG, SEND_PARTITION, SEND_TIME, SEND_TOPIC,
    SEND_TYPE, SERVICE_WRITE, SLICE_HEAD, SLICE_WRITTEN,
)
from dataproxy._core.wire.tubemq.frame cimport FrameScan, cut_frame, frame_heads, join_frame, scan_frame
from dataproxy._core.wire.tubemq.payload cimport attribute_value, payload_checksum, split_payload
from dataproxy._core.wire.tubemq.rpc cimport Call, read_call
from dataproxy._core.wire.tubemq.send cimport SendRequest, read_send

cdef enum:
    ITEM_HEAD = 4
    STORE_BASE = 10000          # numbers of partitions between two stores
    NUMBER = 5                  # bytes of a number of 32 bits that always takes the most
    TOKEN_SIZE = 10             # the same for 64 bits
    # Where things stand in a request: two headers, then length, method, timeout and the head of the request itself.
    CALL_AT = FRAME_HEAD + SLICE_HEAD + 3 + 5
    REQUEST_AT = CALL_AT + NUMBER + 2 + 1 + NUMBER + 1 + NUMBER
    PARTITION_AT = REQUEST_AT + 1
    TOKEN_AT = PARTITION_AT + NUMBER + 1 + NUMBER + 1
    PROOF_AT = TOKEN_AT + TOKEN_SIZE + 1 + NUMBER
    FIXED = PROOF_AT + 80       # everything that is neither text nor message, at most
    TOKEN_NONE = -2            # a token that is not known yet


ctypedef struct Parts:          # what a request says beside the message
    Slice topic
    Slice shared                # attributes of all messages of a stream
    Slice own                   # of this one
    Slice body
    Slice type                  # $msgType$ and $msgTime$ among the attributes
    Slice time


cdef int describe_message(int number, FamilyForm* out) noexcept nogil:
    """Describe the one family: each message alone in a frame, with attributes and without an id."""
    out.items = ITEM_LENGTH
    out.least = slice_of(NULL, 0)
    out.ids = False
    out.text = False
    out.arranged = False
    out.single = True
    return ST_OK if number == FAMILY_TUBEMQ else ST_INVALID


cdef inline uint8_t* _put_wide(uint8_t* to, uint64_t v, int size) noexcept nogil:
    """Write a number in exactly ``size`` bytes."""
    cdef int i
    for i in range(size - 1):
        to[i] = <uint8_t>(v | 0x80)
        v >>= 7
    to[size - 1] = <uint8_t>(v & 0x7F)
    return to + size


cdef inline uint8_t* _put_tag(uint8_t* to, uint32_t field, int kind) noexcept nogil:
    to[0] = <uint8_t>(field << 3 | kind)
    return to + 1


cdef inline uint64_t _wide(const uint8_t* p) noexcept nogil:
    """Return the number that ``_put_wide`` wrote into NUMBER bytes."""
    cdef uint64_t v = 0
    cdef int i
    for i in range(NUMBER):
        v |= <uint64_t>(p[i] & 0x7F) << 7 * i
    return v


cdef bint _read_items(const FrameSpec* spec, const uint8_t* p, size_t n, Parts* out) noexcept nogil:
    """Find body and attributes in the one item."""
    cdef size_t size
    out.own = slice_of(NULL, 0)
    if n <= ITEM_HEAD:
        return False
    size = load_be32(p)
    if size == 0 or size > n - ITEM_HEAD:
        return False
    out.body = slice_of(p + ITEM_HEAD, size)
    if spec.items == ITEM_LENGTH:
        return size == n - ITEM_HEAD
    p += ITEM_HEAD + size
    n -= ITEM_HEAD + size
    if n < ITEM_HEAD or load_be32(p) != n - ITEM_HEAD:
        return False
    out.own = slice_of(p + ITEM_HEAD, n - ITEM_HEAD)
    return True


cdef bint _read_names(Slice text, Parts* out) noexcept nogil:
    """Find topic and shared attributes in ``groupId=...&streamId=TOPIC[&attributes]``."""
    cdef const uint8_t* mark = <const uint8_t*>memchr(text.p, 38, text.n) if text.n else NULL
    if mark == NULL or <size_t>(text.p + text.n - mark) < 10 or memcmp(mark, b"&streamId=", 10) != 0:
        return False
    text = slice_of(mark + 10, <size_t>(text.p + text.n - mark) - 10)
    mark = <const uint8_t*>memchr(text.p, 38, text.n) if text.n else NULL
    out.topic = text
    out.shared = slice_of(NULL, 0)
    if mark != NULL:
        out.topic.n = <size_t>(mark - text.p)
        out.shared = slice_of(mark + 1, text.n - out.topic.n - 1)
    return out.topic.n > 0


cdef size_t request_room(const FrameSpec* spec) noexcept nogil:
    """Return the bytes that a request needs behind its item, which lies where the request begins.

    Attributes take place twice more: some of them are fields of the request too, and they are put aside for a moment.
    """
    cdef size_t own = spec.body.n - ITEM_HEAD if spec.items == ITEM_ATTRS else 0
    cdef size_t more, size
    if spec.items == ITEM_ATTRS and spec.body.n > ITEM_HEAD:
        size = load_be32(spec.body.p)
        own = spec.body.n - ITEM_HEAD - size if size <= spec.body.n - ITEM_HEAD else 0
    more = FIXED + spec.proof_n + spec.sender.n + 2 * spec.attrs.n + 2 * own
    return more + SLICE_HEAD * ((spec.body.n + more) // SLICE_WRITTEN + 1)


cdef int32_t _address(Slice name) noexcept nogil:
    """Return the IPv4 address that a client's name begins with, else 0."""
    cdef uint32_t address = 0, part = 0
    cdef int dots = 0
    cdef size_t i
    for i in range(min(name.n, <size_t>16)):
        if 48 <= name.p[i] <= 57 and part <= 255:
            part = part * 10 + name.p[i] - 48
            continue
        if part > 255 or i == 0:
            return 0
        address = address << 8 | part
        part = 0
        if name.p[i] == 46 and dots < 3:
            dots += 1
            continue
        return <int32_t>address if name.p[i] == 45 and dots == 3 else 0
    return 0


cdef inline size_t _auth_size(size_t proof_n) noexcept nogil:
    return 1 + TOKEN_SIZE + (1 + NUMBER + proof_n if proof_n else 0)


cdef uint8_t* _put_auth(uint8_t* to, size_t proof_n) noexcept nogil:
    """Write the admission that ``request_place`` fills."""
    to = _put_wide(_put_tag(to, SEND_AUTH, FK_BYTES), _auth_size(proof_n), NUMBER)
    to = _put_wide(_put_tag(to, AUTH_VISIT, FK_VARINT), <uint64_t><int64_t>TOKEN_NONE, TOKEN_SIZE)
    if proof_n:
        to = _put_wide(_put_tag(to, AUTH_TOKEN, FK_BYTES), proof_n, NUMBER)
        memset(to, 32, proof_n)
    return to + proof_n


cdef bint _find(const Parts* parts, Slice key, Slice* value) noexcept nogil:
    """Find the value of a key in the attributes that all messages of a stream share, or in this one's."""
    value[0] = slice_of(NULL, 0)
    return attribute_value(parts.shared, key, value) or attribute_value(parts.own, key, value)


cdef inline size_t _field_size(Slice s) noexcept nogil:
    return bytes_size(s.n) if s.n else 0


cdef size_t _request_size(const FrameSpec* spec, const Parts* parts, size_t payload_n) noexcept nogil:
    """Return the bytes of a request with a message of ``payload_n`` bytes."""
    return (
        1 + NUMBER + 1 + NUMBER + _auth_size(spec.proof_n) + bytes_size(spec.sender.n) + bytes_size(parts.topic.n)
        + 2 + 1 + NUMBER + 1 + varint_size(<uint64_t><int64_t>_address(spec.sender))
        + _field_size(parts.type) + _field_size(parts.time) + bytes_size(payload_n))


cdef void _put_request(
    uint8_t* to, const FrameSpec* spec, const Parts* parts, size_t request_n, Slice payload,
) noexcept nogil:
    """Write everything before the message."""
    to[0] = 2
    to = put_number(to + 1, CONN_FLAG, 0)
    to[0] = 4
    to = put_number(put_number(to + 1, REQUEST_SERVICE, SERVICE_WRITE), REQUEST_VERSION, PROTOCOL_VERSION)
    to = _put_wide(to, 2 + 1 + NUMBER + 1 + NUMBER + request_n, NUMBER)
    to = put_number(to, CALL_METHOD, METHOD_SEND)
    # A Java broker does not answer what it finds older than this; it answers nothing at all with 0.
    to = _put_wide(_put_tag(to, CALL_TIMEOUT, FK_VARINT), <uint64_t>max(spec.answer_ms, <int64_t>1), NUMBER)
    to = _put_wide(_put_tag(to, CALL_REQUEST, FK_BYTES), request_n, NUMBER)
    to = _put_wide(_put_tag(to, SEND_PARTITION, FK_VARINT), 0, NUMBER)
    to = _put_auth(to, spec.proof_n)
    to = put_bytes(to, SEND_CLIENT, spec.sender)
    to = put_bytes(to, SEND_TOPIC, parts.topic)
    to = put_number(to, SEND_FLAG, 0 if payload.n == parts.body.n else FLAG_ATTRIBUTE)
    to = _put_wide(_put_tag(to, SEND_CHECKSUM, FK_VARINT), <uint64_t>payload_checksum(payload), NUMBER)
    to = put_number(to, SEND_ADDRESS, <uint64_t><int64_t>_address(spec.sender))
    if parts.type.n:
        to = put_bytes(to, SEND_TYPE, parts.type)
    if parts.time.n:
        to = put_bytes(to, SEND_TIME, parts.time)
    put_head(to, SEND_DATA, payload.n)


cdef void _put_payload(uint8_t* to, const Parts* parts, size_t prefix) noexcept nogil:
    """Move the body to its place behind ``prefix`` bytes, and write the attributes into these."""
    memmove(to + prefix, parts.body.p, parts.body.n)
    if prefix == 0:
        return
    store_be32(to, <uint32_t>(prefix - ATTRIBUTE_HEAD))
    to += ATTRIBUTE_HEAD
    if parts.shared.n:
        memcpy(to, parts.shared.p, parts.shared.n)
        to += parts.shared.n
    if parts.own.n:
        if parts.shared.n:
            to[0] = 44          # ','
            to += 1
        memcpy(to, parts.own.p, parts.own.n)


cdef int request_frame(const FrameSpec* spec, uint8_t* buf, size_t body_n, size_t* start, size_t* size) noexcept nogil:
    """Move the message behind its request, and cut the frame into slices."""
    cdef Parts parts
    cdef uint8_t* aside
    cdef size_t prefix, payload_n, request_n, head_n
    if spec.count != 1 or spec.compressed or not _read_items(spec, buf, body_n, &parts):
        return ST_INVALID
    if not _read_names(spec.attrs, &parts):
        return ST_INVALID
    # The attributes lie behind the body, and belong before it: they wait at the end of the room meanwhile.
    aside = buf + body_n + request_room(spec) - parts.own.n
    if parts.own.n:
        memmove(aside, parts.own.p, parts.own.n)
        parts.own.p = aside
    _find(&parts, slice_of(b"$msgType$", 9), &parts.type)
    _find(&parts, slice_of(b"$msgTime$", 9), &parts.time)
    prefix = parts.shared.n + parts.own.n
    if prefix:
        prefix += ATTRIBUTE_HEAD + (1 if parts.shared.n and parts.own.n else 0)
    payload_n = prefix + parts.body.n
    request_n = _request_size(spec, &parts, payload_n)
    head_n = REQUEST_AT - FRAME_HEAD - SLICE_HEAD + request_n - payload_n
    if head_n + payload_n > PAYLOAD_MOST or head_n > SLICE_WRITTEN:
        return ST_LIMIT
    start[0] = 0
    size[0] = frame_heads(head_n + payload_n) + head_n + payload_n
    _put_payload(buf + size[0] - payload_n, &parts, prefix)
    _put_request(buf + size[0] - payload_n - head_n, spec, &parts, request_n,
                 slice_of(buf + size[0] - payload_n, payload_n))
    cut_frame(buf, spec.seq, head_n + payload_n)
    return ST_OK


cdef void request_undo(uint8_t* buf, size_t n) noexcept nogil:
    """Make of a request the item of ``n`` bytes that it was made of."""
    cdef FrameScan scan
    cdef Call call
    cdef SendRequest request
    cdef Slice payload, attribute, body
    cdef size_t own_n
    cdef uint8_t* aside
    memset(&scan, 0, sizeof(FrameScan))
    if scan_frame(&scan, buf, PAYLOAD_MOST * 2, PAYLOAD_MOST) != ST_OK:
        return
    payload = join_frame(buf, &scan)
    if read_call(payload, &call) != ST_OK or read_send(call.request, &request) != ST_OK:
        return
    split_payload(request.flag, request.payload, &attribute, &body)
    aside = <uint8_t*>payload.p + payload.n
    own_n = n - ITEM_HEAD - body.n
    own_n = own_n - ITEM_HEAD if own_n else 0
    if own_n:
        memcpy(aside, attribute.p + attribute.n - own_n, own_n)
    store_be32(buf, <uint32_t>body.n)
    memmove(buf + ITEM_HEAD, body.p, body.n)
    if own_n:
        store_be32(buf + ITEM_HEAD + body.n, <uint32_t>own_n)
        memmove(buf + 2 * ITEM_HEAD + body.n, aside, own_n)


cdef void request_place(uint8_t* request, int store, int partition, const Admission* admission) noexcept nogil:
    """Write partition and admission; a proof of another length than the request has room for is left out."""
    if partition >= 0:
        _put_wide(request + PARTITION_AT, <uint64_t>(store * STORE_BASE + partition), NUMBER)
    _put_wide(request + TOKEN_AT, <uint64_t>admission.token, TOKEN_SIZE)
    if admission.proof_n and request[PROOF_AT - NUMBER - 1] == (AUTH_TOKEN << 3 | FK_BYTES) and (
            _wide(request + PROOF_AT - NUMBER) == admission.proof_n):
        memcpy(request + PROOF_AT, admission.proof, admission.proof_n)
