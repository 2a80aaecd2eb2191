"""V1 packs as a server judges them: protobuf, service, compression, names, messages, in this order.

A pack is stored as an InLongMsg container of version 1, as text requests are: each run of messages with the same time
and source is a group, whose attributes are the names, the pack's params, ``dt``, ``clientIp`` (the message's sourceIp),
``rt`` and ``rtms``.  A V0 frame goes to the functions of the InLong wire.

A reply is a bare ResponseInfo.  A refusal has a result code in the place of a V0 code, and no text.

Locality: server loop.  Locks: none.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from dataproxy._core.base.buf cimport buf_put, buf_put_be32, buf_put_decimal, buf_put_slice, buf_put_text, buf_put_u8
from dataproxy._core.base.buf cimport buf_reserve
from dataproxy._core.base.snappy.compress cimport unpack_block
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_is, slice_of
from dataproxy._core.base.status cimport ST_INVALID, ST_LIMIT, ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.base.text cimport is_utf8
from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.wire.api cimport REQ_REPLY, REQ_STORE, request_begin
from dataproxy._core.wire.inlong.answer cimport refuse_reply, tell_known
from dataproxy._core.wire.inlong.const cimport ERR_ITEMS, ERR_NO_TOPIC, ERR_STOPPED, LENGTH_SIZE, MAX_BODY
from dataproxy._core.wire.inlong.container cimport (
    GroupPlace, close_group_text, open_group_text, put_container_head, put_container_magic, put_payload, put_text,
)
from dataproxy._core.wire.inlong.misaddress cimport misaddress_reply
from dataproxy._core.wire.inlong.server cimport serve_frame
from dataproxy._core.wire.inlongv1.const cimport (
    ENTRY_KEY, ENTRY_VALUE, HEAD_COMPRESSION, HEAD_COUNT, HEAD_GROUP, HEAD_ID, HEAD_PARAM, HEAD_PLAIN_SIZE, HEAD_SIZE,
    HEAD_STREAM, HEAD_TIME, INFO_FIRST, INFO_ID, INFO_LONGEST, INFO_RESULT, OBJ_BODY, OBJ_PARAM, OBJ_SOURCE, OBJ_TIME,
    OBJS_MSG, PACK_BYTES, PACK_HEADER, PLAIN, R_SUCCESS, SNAPPY, V1_PACK, V1_TYPE, V1_VERSION, VERSION,
)
from dataproxy._core.wire.inlongv1.decode cimport result_of_code
from dataproxy._core.base.protobuf cimport (
    FK_BYTES, FK_VARINT, Field, Fields, fields_next, fields_open, put_number,
)


ctypedef struct Pack:           # what a MessagePack says
    uint32_t seen               # bit n: header field n is there
    Slice group
    Slice stream
    int64_t id
    int64_t time_ms
    uint64_t compression
    Slice header                # for its params
    Slice content               # compressBytes, then what they hold
    size_t params_at[2]         # the params as attributes, in the scratch buffer; the second time without rtms
    size_t params_n[2]
    bint rtms                   # they have it


ctypedef struct Message:        # what a MessageObj says
    int64_t time_ms
    Slice source
    Slice body
    Slice object                # for its params
    bint params                 # it has some


cdef enum:
    GROWTH = 8                  # an entry takes at most so many times the bytes of its messages
    ENTRY_ROOM = 1048576        # and so many bytes more
    NEEDED = (1 << HEAD_GROUP | 1 << HEAD_STREAM | 1 << HEAD_ID | 1 << HEAD_TIME | 1 << HEAD_COUNT
              | 1 << HEAD_PLAIN_SIZE | 1 << HEAD_SIZE | 1 << HEAD_COMPRESSION)


cdef int serve_either(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out,
) noexcept nogil:
    """Judge one whole frame of V1 or V0; ``out`` is filled in any case."""
    cdef Pack pack
    if n <= LENGTH_SIZE or p[V1_TYPE] != 0 or load_be32(p) != n - LENGTH_SIZE:
        return serve_frame(profile, p, n, now_ms, out)
    request_begin(out)
    if n <= V1_PACK or p[V1_VERSION] != VERSION or not _read_pack(&pack, slice_of(p + V1_PACK, n - V1_PACK)):
        return ST_OK                        # close
    out.group = pack.group
    out.stream = pack.stream
    out.data_time_ms = pack.time_ms
    if profile.service_code == ERR_STOPPED:
        return _answer(out, pack.id, ERR_STOPPED)
    return _judge(profile, &pack, now_ms, out)


cdef int _judge(const ServerProfile* profile, Pack* pack, int64_t now_ms, Request* out) noexcept nogil:
    cdef int status = _open(pack, out)
    cdef int64_t messages
    if status != ST_OK:
        return ST_OK if status == ST_PROTOCOL else status       # close
    messages = _count(pack.content)
    if messages < 0:
        return ST_OK
    if messages == 0:
        return _answer(out, pack.id, 0)
    if not _is_name(pack.group) or not _is_name(pack.stream):
        return _answer(out, pack.id, ERR_NO_TOPIC)
    if profile.known != NULL and not profile.known(profile.context, pack.group, pack.stream):
        return _answer(out, pack.id, ERR_NO_TOPIC)
    status = _store(profile, pack, messages, now_ms, out)
    if status == ST_LIMIT or status == ST_INVALID:
        return _answer(out, pack.id, ERR_ITEMS)
    if status != ST_OK:
        return status
    status = _answer(out, pack.id, 0)
    out.action = REQ_STORE
    out.records = <uint32_t>messages
    return status


cdef bint _read_header(Pack* pack) noexcept nogil:
    cdef Fields fields
    cdef Field f
    fields_open(&fields, pack.header)
    while fields_next(&fields, &f):
        if f.number > HEAD_PARAM:
            continue
        if f.kind != (FK_BYTES if f.number == HEAD_GROUP or f.number == HEAD_STREAM or f.number == HEAD_PARAM
                      else FK_VARINT):
            return False
        pack.seen |= <uint32_t>1 << f.number
        if f.number == HEAD_GROUP:
            pack.group = f.bytes
        elif f.number == HEAD_STREAM:
            pack.stream = f.bytes
        elif f.number == HEAD_ID:
            pack.id = <int64_t>f.value
        elif f.number == HEAD_TIME:
            pack.time_ms = <int64_t>f.value
        elif f.number == HEAD_COMPRESSION:
            pack.compression = f.value
    return not fields.broken and (pack.seen & NEEDED) == NEEDED


cdef bint _read_pack(Pack* pack, Slice message) noexcept nogil:
    cdef Fields fields
    cdef Field f
    cdef int found = 0
    memset(pack, 0, sizeof(Pack))
    fields_open(&fields, message)
    while fields_next(&fields, &f):
        if f.number != PACK_HEADER and f.number != PACK_BYTES:
            continue
        if f.kind != FK_BYTES:
            return False
        found |= <int>f.number
        if f.number == PACK_HEADER:
            pack.header = f.bytes
        else:
            pack.content = f.bytes
    return not fields.broken and found == 3 and _read_header(pack)


cdef int _open(Pack* pack, Request* out) noexcept nogil:
    # Unpack the messages; ST_PROTOCOL: they cannot be read.
    if pack.compression == PLAIN or pack.content.n == 0:
        return ST_OK
    if pack.compression != SNAPPY:
        return ST_PROTOCOL
    if unpack_block(pack.content.p, pack.content.n, MAX_BODY, &out.scratch) != ST_OK:
        return ST_PROTOCOL
    pack.content = slice_of(out.scratch.p, out.scratch.n)
    return ST_OK


cdef bint _read_message(Message* m, Slice object) noexcept nogil:
    cdef Fields fields
    cdef Field f
    cdef int found = 0
    memset(m, 0, sizeof(Message))
    m.object = object
    fields_open(&fields, object)
    while fields_next(&fields, &f):
        if f.number > OBJ_PARAM:
            continue
        if f.kind != (FK_VARINT if f.number == OBJ_TIME else FK_BYTES):
            return False
        found |= 1 << f.number
        if f.number == OBJ_TIME:
            m.time_ms = <int64_t>f.value
        elif f.number == OBJ_SOURCE:
            m.source = f.bytes
        elif f.number == OBJ_BODY:
            m.body = f.bytes
    m.params = found >> OBJ_PARAM & 1
    return not fields.broken and (found & 0xE) == 0xE       # time, source and body


cdef int64_t _count(Slice content) noexcept nogil:
    # Return how many messages there are, -1 if they cannot be read.
    cdef Fields fields
    cdef Field f
    cdef Message m
    cdef int64_t n = 0
    fields_open(&fields, content)
    while fields_next(&fields, &f):
        if f.number != OBJS_MSG:
            continue
        if f.kind != FK_BYTES or not _read_message(&m, f.bytes):
            return -1
        n += 1
    return -1 if fields.broken else n


cdef bint _is_name(Slice name) noexcept nogil:
    return name.n > 0 and name.n <= 255 and _is_plain(name)


cdef bint _is_plain(Slice text) noexcept nogil:
    # Attribute text has no escaping.
    cdef size_t i
    for i in range(text.n):
        if text.p[i] == 38 or text.p[i] == 61 or text.p[i] < 32:
            return False
    return is_utf8(text)


cdef bint _own_key(Slice key) noexcept nogil:
    # Keys that the server writes itself.
    return (slice_is(key, b"groupId") or slice_is(key, b"streamId") or slice_is(key, b"dt") or slice_is(key, b"cnt")
            or slice_is(key, b"rt") or slice_is(key, b"clientIp"))


cdef int _put_pair(Buf* out, const char* key, Slice value) noexcept nogil:
    cdef int status = buf_put_text(out, key)
    status |= put_text(out, value)
    return status | buf_put_u8(out, 38)


cdef int _put_params(Buf* out, Slice message, uint32_t number, bint* rtms) noexcept nogil:
    # Params become attributes; those that attribute text cannot hold, or that the server writes, are left out.
    cdef Fields fields, entry
    cdef Field f, e
    cdef Slice key, value
    cdef int status = ST_OK
    fields_open(&fields, message)
    while fields_next(&fields, &f):
        if f.number != number or f.kind != FK_BYTES:
            continue
        key = value = slice_of(NULL, 0)
        fields_open(&entry, f.bytes)
        while fields_next(&entry, &e):
            if e.kind == FK_BYTES and e.number == ENTRY_KEY:
                key = e.bytes
            elif e.kind == FK_BYTES and e.number == ENTRY_VALUE:
                value = e.bytes
        if key.n == 0 or not _is_plain(key) or not _is_plain(value) or _own_key(key):
            continue
        if slice_is(key, b"rtms"):
            if rtms[0]:
                continue
            rtms[0] = True
        status |= put_text(out, key)
        status |= buf_put_u8(out, 61)
        status |= put_text(out, value)
        status |= buf_put_u8(out, 38)
    return status


cdef int _read_params(Pack* pack, Buf* scratch) noexcept nogil:
    # Write the params of the header once: read again for each group, they could cost a small frame many seconds.
    cdef int i
    cdef int status = ST_OK
    cdef bint rtms = False
    for i in range(2):
        pack.params_at[i] = scratch.n
        status |= _put_params(scratch, pack.header, HEAD_PARAM, &rtms)
        pack.params_n[i] = scratch.n - pack.params_at[i]
        if i == 0:
            pack.rtms = rtms
            rtms = True
    return ST_OK if status == ST_OK else ST_NO_MEMORY


cdef int _put_attrs(const Pack* pack, const Message* m, int64_t now_ms, const Buf* scratch, Buf* out) noexcept nogil:
    cdef bint rtms = False
    cdef int status = _put_pair(out, b"groupId=", pack.group)
    status |= _put_pair(out, b"streamId=", pack.stream)
    status |= _put_params(out, m.object, OBJ_PARAM, &rtms)
    status |= buf_put_slice(out, slice_of(scratch.p + pack.params_at[<int>rtms], pack.params_n[<int>rtms]))
    rtms = rtms or pack.rtms
    status |= buf_put_text(out, b"dt=")
    status |= buf_put_decimal(out, m.time_ms)
    status |= buf_put_u8(out, 38)
    if m.source.n and _is_plain(m.source):
        status |= _put_pair(out, b"clientIp=", m.source)
    status |= buf_put_text(out, b"rt=")
    status |= buf_put_decimal(out, now_ms)
    if not rtms:
        status |= buf_put_text(out, b"&rtms=")
        status |= buf_put_decimal(out, now_ms)
    return ST_OK if status == ST_OK else ST_NO_MEMORY


cdef bint _alike(const Message* a, const Message* b) noexcept nogil:
    # Tell whether two messages stand in one group; one with params stands alone.
    return not a.params and not b.params and a.time_ms == b.time_ms and slice_equals(a.source, b.source)


cdef int _store(const ServerProfile* profile, Pack* pack, int64_t messages, int64_t now_ms, Request* out) \
        noexcept nogil:
    # The records of a group are collected behind what was unpacked, and the params.
    cdef Buf* entry = &out.entry
    cdef Fields fields
    cdef Field f
    cdef Message first, m
    cdef size_t unpacked = out.scratch.n, kept, groups_at
    cdef uint32_t groups = 0
    cdef int status
    cdef bint open_ = False
    if _read_params(pack, &out.scratch) != ST_OK:
        return ST_NO_MEMORY
    if buf_reserve(&out.scratch, pack.content.n + <size_t>messages * 4 + 64) != ST_OK:
        return ST_NO_MEMORY
    # Both may have moved what was unpacked.
    kept = out.scratch.n
    fields_open(&fields, slice_of(out.scratch.p, unpacked) if unpacked else pack.content)
    status = put_container_head(entry, 1, now_ms, <uint32_t>messages, 0)
    groups_at = entry.n - 4
    while status == ST_OK and fields_next(&fields, &f):
        if f.number != OBJS_MSG:
            continue
        _read_message(&m, f.bytes)
        if m.body.n == 0:
            return ST_INVALID
        if entry.n > GROWTH * pack.content.n + ENTRY_ROOM:
            return ST_LIMIT                 # params are repeated in each group
        if open_ and not _alike(&first, &m):
            status = _close_group(profile, pack, &first, now_ms, kept, out)
            groups += 1
            open_ = False
        if not open_:
            first = m
            open_ = True
            out.scratch.n = kept
        status |= buf_put_be32(&out.scratch, <uint32_t>m.body.n)
        status |= buf_put_slice(&out.scratch, m.body)
    if status == ST_OK and open_:
        status = _close_group(profile, pack, &first, now_ms, kept, out)
        groups += 1
    if status != ST_OK:
        return status
    store_be32(entry.p + groups_at, groups)
    return put_container_magic(entry, 1)


cdef int _close_group(
    const ServerProfile* profile, const Pack* pack, const Message* first, int64_t now_ms, size_t kept, Request* out,
) noexcept nogil:
    cdef GroupPlace place
    cdef int status = open_group_text(&out.entry, &place)
    if status == ST_OK:
        status = _put_attrs(pack, first, now_ms, &out.scratch, &out.entry)
    if status == ST_OK:
        status = close_group_text(&out.entry, &place)
    if status == ST_OK:
        status = put_payload(
            &out.entry, slice_of(out.scratch.p + kept, out.scratch.n - kept), profile.compress_entries)
    return status


cdef int _put_info(Buf* out, int result, int64_t id) noexcept nogil:
    cdef uint8_t raw[INFO_LONGEST]
    cdef uint8_t* end = put_number(raw, INFO_RESULT, <uint64_t><int64_t>result)
    end = put_number(end, INFO_ID, <uint64_t>id)
    return buf_put(out, raw, <size_t>(end - raw))


cdef int _answer(Request* out, int64_t id, int code) noexcept nogil:
    out.action = REQ_REPLY
    out.code = code
    out.reply.n = 0
    if code:
        out.entry.n = 0
    return _put_info(&out.reply, result_of_code(code) if code else R_SUCCESS, id)


cdef bint _read_id(const uint8_t* reply, size_t n, int64_t* id, size_t* at) noexcept nogil:
    # Find the pack's id in a ResponseInfo, and where its varint begins.
    cdef Fields fields
    cdef Field f
    cdef size_t before = 0
    fields_open(&fields, slice_of(reply, n))
    while fields_next(&fields, &f):
        if f.number == INFO_ID and f.kind == FK_VARINT:
            id[0] = <int64_t>f.value
            at[0] = before + 1
            return True
        before = <size_t>(fields.at - reply)
    return False


cdef int refuse_either(const uint8_t* reply, size_t n, int code, const char* message, Buf* out) noexcept nogil:
    """Append a success reply turned into a refusal.  A ResponseInfo has no place for the text.  Locality: any thread.
    """
    cdef int64_t id = 0
    cdef size_t at = 0
    if n == 0 or reply[0] != INFO_FIRST:
        return refuse_reply(reply, n, code, message, out)
    if not _read_id(reply, n, &id, &at):
        return ST_INVALID
    return _put_info(out, result_of_code(code), id)


cdef int tell_known_either(
    const uint8_t* reply, size_t n, int64_t known, int64_t differed, int64_t reach, Buf* out,
) noexcept nogil:
    """Append a success reply; a ResponseInfo cannot say what was known before, and stays as it is.

    Locality: any thread.
    """
    if n == 0 or reply[0] != INFO_FIRST:
        return tell_known(reply, n, known, differed, reach, out)
    return buf_put(out, reply, n)


cdef void misaddress_either(uint8_t* reply, size_t n, uint32_t seq) noexcept nogil:
    """Change the number in a reply; the length stays the same.  Locality: any thread."""
    cdef int64_t id = 0
    cdef size_t at = 0
    cdef uint64_t rest = seq
    if n == 0 or reply[0] != INFO_FIRST:
        misaddress_reply(reply, n, seq)
        return
    if not _read_id(reply, n, &id, &at):
        return
    while at < n:
        reply[at] = <uint8_t>(rest & 0x7F | (0x80 if at + 1 < n else 0))
        rest >>= 7
        at += 1
