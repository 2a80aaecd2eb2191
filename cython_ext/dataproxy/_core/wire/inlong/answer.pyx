"""Replies of the server role: acknowledgements, refusals and how they echo the request.

Locks: none.
"""

from libc.stdint cimport uint16_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

from dataproxy._core.base.buf cimport buf_put, buf_put_text, buf_reserve
from dataproxy._core.base.slice cimport slice_of, slice_text
from dataproxy._core.base.status cimport ST_INVALID, ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.plat.endian cimport load_be32, store_be16, store_be32
from dataproxy._core.wire.api cimport REQ_CLOSE, REQ_REPLY, REQ_STORE
from dataproxy._core.wire.inlong.attrs cimport (
    KEY_GROUP,
    KEY_IS_ACK,
    KEY_NODE2,
    KEY_PARTITION,
    KEY_PROXY_SEND,
    KEY_RT,
    KEY_RTIME2,
    KEY_RTMS,
    KEY_STREAM,
    KEY_SYNC_SEND,
    attr_is,
    attr_is_blank,
    attrs_has,
    attrs_read,
)
from dataproxy._core.wire.inlong.const cimport (
    ACK_ATTR,
    ACK_ATTR_LEN,
    ACK_FIXED,
    ACK_UNIQ,
    ERR_ATTRS,
    ERR_NO_GROUP,
    ERR_NO_TOPIC,
    ERR_ORDER_WITHOUT_ACK,
    ERR_PROXY_WITHOUT_ACK,
    LENGTH_SIZE,
    MAGIC,
    TEXT_BODY,
    TEXT_BODY_LEN,
    TEXT_FIXED,
    TEXT_TYPE,
    TYPE_BINARY,
    TYPE_MASK,
    TYPE_RETURN,
)
from dataproxy._core.base.text cimport is_utf8, write_decimal


cdef const uint8_t* TEXT_ACK_BODY = <const uint8_t*>b"2"


cdef int answer_close(Exchange* x) noexcept nogil:
    """Close without a byte.  Locality: server loop."""
    x.out.action = REQ_CLOSE
    x.out.reply.n = 0
    x.out.entry.n = 0
    return ST_OK


cdef int answer_code(Exchange* x, int code, Slice message, bint echo) noexcept nogil:
    """Refuse the frame; ``message`` may lie in ``out.entry``.  Locality: server loop."""
    cdef Slice nothing = slice_of(NULL, 0)
    cdef int status = ST_OK
    x.out.action = REQ_REPLY
    x.out.code = code
    x.out.records = 0
    if not x.silent:
        status = _put_reply(x, False, code, message, nothing, x.text if echo else nothing)
    x.out.entry.n = 0
    return status


cdef int answer_success(Exchange* x) noexcept nogil:
    """Accept the frame: the reply goes out once the entry is stored.  Locality: server loop."""
    cdef Slice nothing = slice_of(NULL, 0)
    cdef Slice prefix = slice_of(x.prefix + 1, x.prefix_n)
    x.out.action = REQ_STORE
    x.out.code = 0
    if x.silent:
        return ST_OK
    # The reference server answers order and proxy messages when they cannot be queued, and never when they can.
    x.out.unanswered = x.sink and x.profile.compat
    return _put_reply(x, x.sink and not x.profile.compat, 0, nothing, prefix, x.text)


cdef int read_controls(Exchange* x, bint* done) noexcept nogil:
    """Read the attributes and what they say about the reply.  Locality: server loop."""
    cdef Buf* words = &x.out.entry
    cdef Attrs* attrs = &x.attrs
    cdef bint order
    cdef bint proxy
    cdef int status = attrs_read(x.text, &x.out.scratch, attrs)
    done[0] = True
    if status == ST_OK and not x.profile.compat and not is_utf8(x.text):
        status = ST_PROTOCOL        # replacing what is broken could make two keys equal
    if status == ST_NO_MEMORY:
        return status
    if status != ST_OK:
        if buf_put_text(words, b"Parse attr (") != ST_OK or buf_put(words, x.text.p, x.text.n) != ST_OK:
            return ST_NO_MEMORY
        if buf_put_text(words, b") failure") != ST_OK:
            return ST_NO_MEMORY
        return answer_code(x, ERR_ATTRS, slice_of(words.p, words.n), True)
    order = attrs_has(attrs, KEY_SYNC_SEND) and attr_is(attrs.value[KEY_SYNC_SEND], b"true", 4)
    proxy = attrs_has(attrs, KEY_PROXY_SEND) and attr_is(attrs.value[KEY_PROXY_SEND], b"true", 4)
    if attrs_has(attrs, KEY_IS_ACK) and attr_is(attrs.value[KEY_IS_ACK], b"false", 5):
        if order:
            return answer_code(x, ERR_ORDER_WITHOUT_ACK, slice_of(NULL, 0), True)
        if proxy:
            return answer_code(x, ERR_PROXY_WITHOUT_ACK, slice_of(NULL, 0), True)
        x.silent = True
    x.sink = order or proxy
    x.out.order = order
    if attrs_has(attrs, KEY_PARTITION):
        x.out.partition_key = attrs.value[KEY_PARTITION]
    if attrs_has(attrs, KEY_GROUP):
        x.out.group = attrs.value[KEY_GROUP]
    if attrs_has(attrs, KEY_STREAM):
        x.out.stream = attrs.value[KEY_STREAM]
    done[0] = False
    return ST_OK


cdef int judge_names(Exchange* x, bint* done) noexcept nogil:
    """Require a group and a known topic.  Locality: server loop."""
    cdef Buf* words = &x.out.entry
    cdef Slice group = x.out.group
    cdef Slice stream = x.out.stream
    done[0] = True
    if attr_is_blank(group):
        return answer_code(x, ERR_NO_GROUP, slice_of(NULL, 0), True)
    if x.profile.known != NULL and not x.profile.known(x.profile.context, group, stream):
        if stream.p == NULL:
            stream = slice_text(b"null")
        if buf_reserve(words, group.n + stream.n + 80) != ST_OK:
            return ST_NO_MEMORY
        buf_put_text(words, b"Topic not configured for groupId=(")
        buf_put(words, group.p, group.n)
        buf_put_text(words, b"), streamId=(")
        buf_put(words, stream.p, stream.n)
        buf_put_text(words, b")")
        return answer_code(x, ERR_NO_TOPIC, slice_of(words.p, words.n), True)
    done[0] = False
    return ST_OK


cdef void complete_attrs(Exchange* x, bint trace) noexcept nogil:
    """Write what the server adds before the attributes.  Locality: server loop."""
    cdef uint8_t* at = x.prefix
    cdef Slice node = x.profile.node_ip
    if not x.binary and _wants(x, KEY_RT):
        at = _put_time(at, b"&rt=", 4, x.now_ms)
    if _wants(x, KEY_RTMS):
        at = _put_time(at, b"&rtms=", 6, x.now_ms)
    if trace and not attrs_has(&x.attrs, KEY_NODE2):
        if x.profile.compat:
            at = _put_time(at, b"&node2ip=", 9, x.profile.port)
        else:
            node.n = min(node.n, <size_t>MAX_NODE)
            at = _put_name(at, b"&node2ip=", 9, node)
    if trace and not attrs_has(&x.attrs, KEY_RTIME2):
        at = _put_time(at, b"&rtime2=", 8, x.now_ms)
    if x.translated:
        if not attrs_has(&x.attrs, KEY_GROUP):
            at = _put_name(at, b"&groupId=", 9, x.out.group)
        if not attrs_has(&x.attrs, KEY_STREAM) and x.out.stream.p != NULL:
            at = _put_name(at, b"&streamId=", 10, x.out.stream)
    # Every key came with a leading "&"; the first is left out, and one stands before the request's own text.
    if at > x.prefix and x.text.n > 0:
        at[0] = 38
        at += 1
    x.prefix_n = <size_t>(at - x.prefix) - 1 if at > x.prefix else 0


cdef int refuse_reply(const uint8_t* reply, size_t n, int code, const char* message, Buf* out) noexcept nogil:
    """Append a success reply turned into a refusal.  Locality: any thread."""
    cdef uint8_t raw[32]
    cdef uint8_t* at = _put_time(raw, b"&errCode=", 9, code)
    cdef Slice text = slice_text(message) if message != NULL else slice_of(NULL, 0)
    return _put_words(reply, n, slice_of(raw, <size_t>(at - raw)), text, out)


cdef int tell_known(
    const uint8_t* reply, size_t n, int64_t known, int64_t differed, int64_t reach, Buf* out,
) noexcept nogil:
    """Append a success reply with the number of messages that were known before.  Locality: any thread.

    The reference server has no such attribute; clients that do not know it ignore it.
    """
    cdef uint8_t raw[96]
    cdef uint8_t* at = _put_time(raw, b"&dup=", 5, reach)
    at = _put_time(at, b",", 1, known)
    at = _put_time(at, b",", 1, differed)
    return _put_words(reply, n, slice_of(raw, <size_t>(at - raw)), slice_of(NULL, 0), out)


cdef int _put_words(const uint8_t* reply, size_t n, Slice words, Slice message, Buf* out) noexcept nogil:
    """Append a reply with ``words`` (with their leading "&") and an error text behind the server's own name.

    Locality: any thread.
    """
    cdef size_t text_at
    cdef size_t text_n
    cdef size_t cut = 0
    cdef size_t start = out.n
    cdef const uint8_t* mark
    cdef uint8_t* at
    cdef bint binary
    if n <= LENGTH_SIZE or load_be32(reply) != n - LENGTH_SIZE:
        return ST_INVALID
    binary = (reply[TEXT_TYPE] & TYPE_MASK) == TYPE_BINARY
    if binary:
        if n < ACK_FIXED:
            return ST_INVALID
        text_at = ACK_ATTR
        text_n = n - ACK_FIXED
    else:
        if n < TEXT_FIXED or load_be32(reply + TEXT_BODY_LEN) > n - TEXT_FIXED:
            return ST_INVALID
        text_at = TEXT_FIXED + load_be32(reply + TEXT_BODY_LEN)
        text_n = n - text_at
    if text_n >= 5 and memcmp(reply + text_at, <const char*>b"dpIp=", 5) == 0:
        mark = <const uint8_t*>memchr(reply + text_at, 38, text_n)
        cut = <size_t>(mark - reply) - text_at if mark != NULL else text_n
    if binary and text_n + message.n + 64 > 65535:
        message.n = 0
    if buf_reserve(out, n + words.n + message.n + 16) != ST_OK:
        return ST_NO_MEMORY
    at = out.p + start
    memcpy(at, reply, text_at + cut)
    # Where nothing stands before the words, their "&" falls on the text's length, which is set at the end.
    at += text_at + cut if cut > 0 else text_at - 1
    at = _put_slice(at, words)
    if message.n > 0:
        at = _put_name(at, b"&errMsg=", 8, message)
    if cut == 0 and text_n > 0:
        at[0] = 38
        at += 1
    memcpy(at, reply + text_at + cut, n - text_at - cut)
    at += n - text_at - cut
    out.n = <size_t>(at - out.p)
    _set_lengths(out.p + start, out.n - start, text_at, binary)
    return ST_OK


cdef bint _wants(Exchange* x, int key) noexcept nogil:
    # A blank value counts as none in the reference; adding the key once more would only break the readers.
    if not attrs_has(&x.attrs, key):
        return True
    return x.profile.compat and attr_is_blank(x.attrs.value[key])


cdef uint8_t* _put_time(uint8_t* at, const char* key, size_t key_n, int64_t value) noexcept nogil:
    memcpy(at, key, key_n)
    return at + key_n + write_decimal(at + key_n, <uint64_t>value if value > 0 else 0)


cdef uint8_t* _put_name(uint8_t* at, const char* key, size_t key_n, Slice name) noexcept nogil:
    memcpy(at, key, key_n)
    return _put_slice(at + key_n, name)


cdef uint8_t* _put_slice(uint8_t* at, Slice s) noexcept nogil:
    if s.n > 0:
        memcpy(at, s.p, s.n)
    return at + s.n


cdef int _put_reply(Exchange* x, bint sink, int code, Slice message, Slice prefix, Slice echo) noexcept nogil:
    # Writes [dpIp=node][&errCode=code[&errMsg=message]][&][prefix][echo] inside the frame of the request's kind.
    cdef Buf* out = &x.out.reply
    cdef Slice body = slice_of(TEXT_ACK_BODY, 1)
    cdef Slice node = x.profile.node_ip
    cdef size_t attr_at
    cdef uint8_t* at
    if node.n == 0:
        node = slice_of(<const char*>b"0.0.0.0", 7)
    node.n = min(node.n, <size_t>MAX_NODE)
    if x.binary:
        body.n = 0
        if not x.profile.compat and node.n + message.n + prefix.n + echo.n > 65535 - 40:
            message.n = 0           # the length of the text has 16 bits
            if node.n + echo.n > 65535 - 40:
                echo.n = 0
        attr_at = ACK_ATTR
    else:
        if x.out.msg_type == TYPE_RETURN:
            body = x.body
        if sink:
            body.n = 0
        attr_at = TEXT_FIXED + body.n
    out.n = 0
    if buf_reserve(out, attr_at + node.n + message.n + prefix.n + echo.n + 64) != ST_OK:
        return ST_NO_MEMORY
    at = out.p
    at[TEXT_TYPE] = <uint8_t>x.out.msg_type
    if x.binary:
        store_be32(at + ACK_UNIQ, x.uniq)
    else:
        store_be32(at + TEXT_BODY_LEN, <uint32_t>body.n)
        _put_slice(at + TEXT_BODY, body)
    # Every part comes with a leading "&"; the first falls on the text's length, which is set at the end.
    at += attr_at - 1
    if not sink:
        memcpy(at, <const char*>b"&dpIp=", 6)
        at = _put_slice(at + 6, node)
    if code != 0:
        at = _put_time(at, b"&errCode=", 9, code)
        if message.n > 0:
            memcpy(at, <const char*>b"&errMsg=", 8)
            at = _put_slice(at + 8, message)
    if prefix.n + echo.n > 0:
        at[0] = 38
        at = _put_slice(_put_slice(at + 1, prefix), echo)
    if at < out.p + attr_at:    # no part at all
        at = out.p + attr_at
    if x.binary:
        store_be16(at, MAGIC)
        at += 2
    out.n = <size_t>(at - out.p)
    _set_lengths(out.p, out.n, attr_at, x.binary)
    return ST_OK


cdef void _set_lengths(uint8_t* frame, size_t n, size_t attr_at, bint binary) noexcept nogil:
    store_be32(frame, <uint32_t>(n - LENGTH_SIZE))
    if binary:
        store_be16(frame + ACK_ATTR_LEN, <uint16_t>((n - ACK_FIXED) & 0xFFFF))
    else:
        store_be32(frame + attr_at - 4, <uint32_t>(n - attr_at))
