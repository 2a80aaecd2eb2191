"""Requests for a pack, and answers with one, in both roles.

An answer is read message by message: ``got_step`` checks every length that it passes, and what stands behind the
messages is known at the end.  ``read_got`` goes through a whole answer; behind it ``got_next`` cannot fail.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from dataproxy._core.base.protobuf cimport (
    FK_BYTES, FK_VARINT, Field, Fields, bytes_size, fields_next, fields_open, put_bytes, put_head, put_number,
    takes_head, takes_varint, varint_size,
)
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK, ST_PROTOCOL
from dataproxy._core.wire.tubemq.const cimport (
    ANSWER_CODE, ANSWER_MESSAGE, ANSWER_SUCCESS, GET_CLIENT, GET_CONSUMED, GET_ESCAPE, GET_GROUP, GET_MANUAL,
    GET_PARTITION, GET_TOPIC, GOT_BACKLOG, GOT_ESCAPE, GOT_MAX_OFFSET, GOT_MESSAGES, GOT_OFFSET, GOT_SLOW, GOT_WAIT,
    MESSAGE_CHECKSUM, MESSAGE_FLAG, MESSAGE_ID, MESSAGE_PAYLOAD, UNKNOWN,
)


cdef int read_get(Slice request, GetRequest* out) noexcept nogil:
    """Read a request; ST_OK or ST_PROTOCOL."""
    cdef Fields fields
    cdef Field field
    cdef int found = 0          # a bit for each required field
    out.consumed = out.manual = out.escape = False
    fields_open(&fields, request)
    while fields_next(&fields, &field):
        if field.kind == FK_BYTES:
            if field.number == GET_CLIENT:
                out.client = field.bytes
            elif field.number == GET_GROUP:
                out.group = field.bytes
            elif field.number == GET_TOPIC:
                out.topic = field.bytes
            else:
                continue
            found |= 1 << field.number
        elif field.kind == FK_VARINT:
            if field.number == GET_PARTITION:
                out.partition = <int32_t>field.value
                found |= 1 << GET_PARTITION
            elif field.number == GET_CONSUMED:
                out.consumed = field.value != 0
            elif field.number == GET_MANUAL:
                out.manual = field.value != 0
            elif field.number == GET_ESCAPE:
                out.escape = field.value != 0
    if fields.broken or found != 1 << GET_CLIENT | 1 << GET_PARTITION | 1 << GET_GROUP | 1 << GET_TOPIC:
        return ST_PROTOCOL
    return ST_OK


cdef size_t get_size(const GetRequest* g) noexcept nogil:
    """Return the bytes of a request."""
    return bytes_size(g.client.n) + bytes_size(g.group.n) + bytes_size(g.topic.n) + 7 + varint_size(
        <uint64_t><int64_t>g.partition)


cdef uint8_t* put_get(uint8_t* to, const GetRequest* g) noexcept nogil:
    """Write a request, and return its end."""
    to = put_bytes(to, GET_CLIENT, g.client)
    to = put_number(to, GET_PARTITION, <uint64_t><int64_t>g.partition)
    to = put_bytes(to, GET_GROUP, g.group)
    to = put_bytes(to, GET_TOPIC, g.topic)
    to = put_number(to, GET_CONSUMED, g.consumed)
    to = put_number(to, GET_MANUAL, g.manual)
    return put_number(to, GET_ESCAPE, g.escape)


cdef inline bint _read_usual(Slice data, TubeMessage* out) noexcept nogil:
    """Read a message whose fields stand once and in order, as every broker writes them; False: it may be another."""
    cdef Fields f
    cdef uint64_t id_ = 0, checksum = 0, size = 0, flag = 0
    fields_open(&f, data)
    if not (
        takes_head(&f, MESSAGE_ID, FK_VARINT) and takes_varint(&f, &id_)
        and takes_head(&f, MESSAGE_CHECKSUM, FK_VARINT) and takes_varint(&f, &checksum)
        and takes_head(&f, MESSAGE_PAYLOAD, FK_BYTES) and takes_varint(&f, &size)
        and size <= <uint64_t>(f.end - f.at)
    ):
        return False
    out.payload = slice_of(f.at, <size_t>size)
    f.at += size
    if not (takes_head(&f, MESSAGE_FLAG, FK_VARINT) and takes_varint(&f, &flag) and f.at == f.end):
        return False
    out.id, out.checksum, out.flag = <int64_t>id_, <int32_t>checksum, <int32_t>flag
    return True


cdef bint _read_message(Slice data, TubeMessage* out) noexcept nogil:
    cdef Fields fields
    cdef Field field
    cdef int found = 0
    if _read_usual(data, out):
        return True
    fields_open(&fields, data)
    while fields_next(&fields, &field):
        if field.kind == FK_BYTES:
            if field.number != MESSAGE_PAYLOAD:
                continue
            out.payload = field.bytes
        elif field.kind != FK_VARINT:
            continue
        elif field.number == MESSAGE_ID:
            out.id = <int64_t>field.value
        elif field.number == MESSAGE_CHECKSUM:
            out.checksum = <int32_t>field.value
        elif field.number == MESSAGE_FLAG:
            out.flag = <int32_t>field.value
        else:
            continue
        found |= 1 << field.number
    return not fields.broken and found == (
        1 << MESSAGE_ID | 1 << MESSAGE_CHECKSUM | 1 << MESSAGE_PAYLOAD | 1 << MESSAGE_FLAG)


cdef void _read_number(Got* out, const Field* field) noexcept nogil:
    if field.number == ANSWER_SUCCESS:
        out.success = field.value != 0
    elif field.number == ANSWER_CODE:
        out.code = <int32_t>field.value
    elif field.number == GOT_OFFSET:
        out.offset = <int64_t>field.value
    elif field.number == GOT_WAIT:
        out.wait_ms = <int32_t>field.value
    elif field.number == GOT_ESCAPE:
        out.escape = field.value != 0
    elif field.number == GOT_BACKLOG:
        out.backlog = <int64_t>field.value
    elif field.number == GOT_SLOW:
        out.slow = field.value != 0
    elif field.number == GOT_MAX_OFFSET:
        out.max_offset = <int64_t>field.value


cdef void got_begin(GotScan* s, Slice data, Got* out) noexcept nogil:
    """Begin to read an answer."""
    out.data = data
    out.text = slice_of(NULL, 0)
    out.n = out.bytes = 0
    out.wait_ms = UNKNOWN
    out.escape = out.slow = False
    out.offset = out.max_offset = out.backlog = UNKNOWN
    s.found = 0
    fields_open(&s.fields, data)


cdef int got_step(GotScan* s, Got* out, TubeMessage* message) noexcept nogil:
    """Read on to the next message, or to the end."""
    cdef Field field
    cdef uint64_t size = 0
    cdef Slice inner
    while True:
        if takes_head(&s.fields, GOT_MESSAGES, FK_BYTES):       # nearly all fields are
            if not takes_varint(&s.fields, &size) or size > <uint64_t>(s.fields.end - s.fields.at):
                return GS_BROKEN
            inner = slice_of(s.fields.at, <size_t>size)
            s.fields.at += size
        elif not fields_next(&s.fields, &field):
            break
        elif field.kind == FK_VARINT:
            if field.number <= ANSWER_CODE:
                s.found |= 1 << field.number
            _read_number(out, &field)
            continue
        elif field.kind == FK_BYTES and field.number == GOT_MESSAGES:
            inner = field.bytes
        else:
            if field.kind == FK_BYTES and field.number == ANSWER_MESSAGE:
                out.text = field.bytes
            continue
        if not _read_message(inner, message):
            return GS_BROKEN
        out.n += 1
        out.bytes += message.payload.n
        return GS_MESSAGE
    return GS_END if not s.fields.broken and s.found == 1 << ANSWER_SUCCESS | 1 << ANSWER_CODE else GS_BROKEN


cdef int read_got(Slice data, Got* out) noexcept nogil:
    """Read an answer; ST_OK or ST_PROTOCOL, also if one of its messages is broken."""
    cdef GotScan scan
    cdef TubeMessage message
    cdef int step = GS_MESSAGE
    got_begin(&scan, data, out)
    while step == GS_MESSAGE:
        step = got_step(&scan, out, &message)
    return ST_OK if step == GS_END else ST_PROTOCOL


cdef bint got_next(Slice* rest, TubeMessage* out) noexcept nogil:
    """Take the next message of an answer that was read; ``rest`` begins as ``Got.data``.  False: there is none."""
    cdef Fields fields
    cdef Field field
    fields_open(&fields, rest[0])
    while fields_next(&fields, &field):
        if field.kind == FK_BYTES and field.number == GOT_MESSAGES:
            rest[0] = slice_of(fields.at, <size_t>(fields.end - fields.at))
            return _read_message(field.bytes, out)
    rest[0] = slice_of(fields.at, 0)
    return False


cdef size_t _message_size(const TubeMessage* m) noexcept nogil:
    return 3 + varint_size(<uint64_t>m.id) + varint_size(<uint64_t><int64_t>m.checksum) + varint_size(
        <uint64_t><int64_t>m.flag) + bytes_size(m.payload.n)


cdef size_t got_size(const Got* g, const TubeMessage* messages, size_t n) noexcept nogil:
    """Return the bytes of an answer."""
    cdef size_t i, size = 8 + varint_size(<uint64_t><int64_t>g.code) + bytes_size(g.text.n) + varint_size(
        <uint64_t>g.offset) + varint_size(<uint64_t><int64_t>g.wait_ms) + varint_size(<uint64_t>g.backlog)
    if g.success:
        size += 3 + varint_size(<uint64_t>g.max_offset)
    for i in range(n):
        size += bytes_size(_message_size(&messages[i]))
    return size


cdef uint8_t* put_got(uint8_t* to, const Got* g, const TubeMessage* messages, size_t n) noexcept nogil:
    """Write an answer, and return its end.  A failure has fewer fields, as of a Java broker."""
    cdef size_t i
    to = put_number(to, ANSWER_SUCCESS, g.success)
    to = put_number(to, ANSWER_CODE, <uint64_t><int64_t>g.code)
    to = put_bytes(to, ANSWER_MESSAGE, g.text)
    for i in range(n):
        to = put_head(to, GOT_MESSAGES, _message_size(&messages[i]))
        to = put_number(to, MESSAGE_ID, <uint64_t>messages[i].id)
        to = put_number(to, MESSAGE_CHECKSUM, <uint64_t><int64_t>messages[i].checksum)
        to = put_bytes(to, MESSAGE_PAYLOAD, messages[i].payload)
        to = put_number(to, MESSAGE_FLAG, <uint64_t><int64_t>messages[i].flag)
    to = put_number(to, GOT_OFFSET, <uint64_t>g.offset)
    to = put_number(to, GOT_WAIT, <uint64_t><int64_t>g.wait_ms)
    to = put_number(to, GOT_ESCAPE, g.escape)
    to = put_number(to, GOT_BACKLOG, <uint64_t>g.backlog)
    if g.success:
        to = put_number(to, GOT_SLOW, g.slow)
        to = put_number(to, GOT_MAX_OFFSET, <uint64_t>g.max_offset)
    return to
