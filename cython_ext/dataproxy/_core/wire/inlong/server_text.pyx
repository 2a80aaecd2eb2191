"""Text requests, types 2 to 6, as a server judges them: lengths, attributes, body, items, names, in this order.

Locality: server loop.  Locks: none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from dataproxy._core.base.buf cimport Buf, buf_put, buf_put_be32, buf_put_decimal, buf_put_text, buf_reserve
from dataproxy._core.base.snappy.compress cimport unpack_block
from dataproxy._core.base.slice cimport Slice, slice_is, slice_of
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.endian cimport load_be32, store_be32
from dataproxy._core.wire.inlong.answer cimport (
    Exchange,
    answer_close,
    answer_code,
    answer_success,
    complete_attrs,
    judge_names,
    read_controls,
)
from dataproxy._core.wire.inlong.attrs cimport KEY_CNT, KEY_CP, KEY_DT, KEY_MT, attr_is_blank, attrs_has
from dataproxy._core.wire.inlong.const cimport (
    ERR_ATTRS_NEGATIVE,
    ERR_BODY_EMPTY,
    ERR_BODY_NEGATIVE,
    ERR_ITEMS,
    ERR_SIZE,
    ERR_UNPACK,
    LENGTH_SIZE,
    MAX_BODY,
    MAX_TEXT_ATTRS,
    TEXT_BODY,
    TEXT_BODY_LEN,
    TEXT_FIXED,
    TYPE_ITEMS,
    TYPE_PAIRS,
)
from dataproxy._core.wire.inlong.container cimport (
    GroupPlace,
    close_group_text,
    open_group_text,
    put_container_head,
    put_container_magic,
    put_payload,
    put_stored_attrs,
)
from dataproxy._core.wire.inlong.items cimport Walk, walk_items, walk_pairs
from dataproxy._core.base.text cimport read_decimal


ctypedef struct Content:    # the body as it will be stored
    Slice body              # items, or one record
    uint32_t groups         # 0: the reference stores a container without any (compat)


cdef int serve_text(Exchange* x) noexcept nogil:
    """Judge one text frame."""
    cdef Content content
    cdef bint done = False
    cdef int status
    x.binary = False
    if x.n < TEXT_FIXED:
        return answer_close(x)
    status = _read_lengths(x, &done)
    if done:
        return status
    status = read_controls(x, &done)
    if status != ST_OK or done:
        return status
    status = _open_body(x, &content, &done)
    if status != ST_OK or done:
        return status
    if x.profile.service_code != 0:
        return answer_code(x, x.profile.service_code, slice_of(NULL, 0), True)
    status = judge_names(x, &done)
    if status != ST_OK or done:
        return status
    if x.profile.compat and _breaks_reference(x, &content):
        return answer_close(x)
    status = _store(x, &content)
    if status == ST_LIMIT and not x.profile.compat:
        return _refuse_attrs(x)
    if status == ST_LIMIT:      # the reference stores nothing and reports success
        x.out.entry.n = 0
        x.out.records = 0
    elif status != ST_OK:
        return status
    complete_attrs(x, False)
    return answer_success(x)


cdef int _read_lengths(Exchange* x, bint* done) noexcept nogil:
    cdef int64_t body_n = <int32_t>load_be32(x.p + TEXT_BODY_LEN)
    cdef int64_t total = <int64_t>x.n - LENGTH_SIZE
    cdef int64_t attr_n
    cdef Slice nothing = slice_of(NULL, 0)
    done[0] = True
    if body_n == 0:
        return answer_code(x, ERR_BODY_EMPTY, nothing, False)
    if body_n < 0:
        return answer_code(x, ERR_BODY_NEGATIVE, nothing, False)
    if body_n + TEXT_FIXED > total + LENGTH_SIZE:
        return _refuse_lengths(x, total, body_n, -1)
    attr_n = <int32_t>load_be32(x.p + TEXT_BODY + body_n)
    if attr_n < 0:
        return answer_code(x, ERR_ATTRS_NEGATIVE, nothing, False)
    if total + LENGTH_SIZE != TEXT_FIXED + body_n + attr_n:
        return _refuse_lengths(x, total, body_n, attr_n)
    x.body = slice_of(x.p + TEXT_BODY, <size_t>body_n)
    x.text = slice_of(x.p + TEXT_FIXED + body_n, <size_t>attr_n)
    if attr_n > MAX_TEXT_ATTRS and not x.profile.compat:
        return _refuse_attrs(x)
    done[0] = False
    return ST_OK


cdef int _refuse_lengths(Exchange* x, int64_t total, int64_t body_n, int64_t attr_n) noexcept nogil:
    # attr_n < 0: the body alone does not fit.
    cdef Buf* words = &x.out.entry
    if buf_reserve(words, 192) != ST_OK:
        return ST_NO_MEMORY
    if attr_n < 0:
        buf_put_text(words, b"Error msg, bodyLen(")
        buf_put_decimal(words, body_n)
        buf_put_text(words, b") + fixedLength(13) > totalDataLen(")
        buf_put_decimal(words, total)
        buf_put_text(words, b") + 4")
    else:
        buf_put_text(words, b"Error msg, totalDataLen(")
        buf_put_decimal(words, total)
        buf_put_text(words, b") + 4 != fixedLength(13) + bodyLen(")
        buf_put_decimal(words, body_n)
        buf_put_text(words, b") + attrLen(")
        buf_put_decimal(words, attr_n)
        buf_put_text(words, b")")
    x.text = slice_of(NULL, 0)
    return answer_code(x, ERR_SIZE, slice_of(words.p, words.n), False)


cdef int _refuse_attrs(Exchange* x) noexcept nogil:
    cdef Buf* words = &x.out.entry
    words.n = 0
    if buf_put_text(words, b"Error msg, attributes are longer than 65535 bytes when completed") != ST_OK:
        return ST_NO_MEMORY
    return answer_code(x, ERR_SIZE, slice_of(words.p, words.n), True)


cdef int _open_body(Exchange* x, Content* content, bint* done) noexcept nogil:
    # Unpacks behind the attribute entries, with room for a record's length in front.
    cdef Buf* scratch = &x.out.scratch
    cdef Buf* words = &x.out.entry
    cdef size_t at = scratch.n + 4
    cdef int status
    done[0] = True
    content.body = x.body
    content.groups = 1
    if attrs_has(&x.attrs, KEY_CP) and not attr_is_blank(x.attrs.value[KEY_CP]):
        if buf_put_be32(scratch, 0) != ST_OK:
            return ST_NO_MEMORY
        status = unpack_block(x.body.p, x.body.n, MAX_BODY, scratch)
        if status == ST_NO_MEMORY:
            return status
        if status != ST_OK:
            if buf_put_text(words, b"Uncompress body failure: not a snappy block of at most 20971520 bytes") != ST_OK:
                return ST_NO_MEMORY
            return answer_code(x, ERR_UNPACK, slice_of(words.p, words.n), True)
        content.body = slice_of(scratch.p + at, scratch.n - at)
    x.out.records = 1
    if x.out.msg_type == TYPE_ITEMS:
        return _judge_items(x, content, done)
    if x.out.msg_type == TYPE_PAIRS:
        return _judge_pairs(x, content, done)
    done[0] = False
    return ST_OK


cdef int _judge_items(Exchange* x, Content* content, bint* done) noexcept nogil:
    cdef Walk walk
    cdef Slice body = content.body
    cdef size_t left
    cdef int status = walk_items(body.p, body.n, &walk)
    x.out.records = walk.count
    done[0] = status != ST_OK
    if status == ST_OK:
        return ST_OK
    left = body.n - walk.at
    if body.n <= 4:
        return _refuse_items(x, b"bodyLen(", <int64_t>body.n, -1)
    if walk.count > 0 and x.profile.compat:
        if left < 4:
            return answer_close(x)
        content.body.n = walk.at        # the items before the bad one
        done[0] = False
        return ST_OK
    if left < 4:
        return _refuse_items(x, b"bytes after the last item(", <int64_t>left, -1)
    return _refuse_items(
        x, b"singleMsgLen(", <int32_t>load_be32(body.p + walk.at), <int64_t>left - 4)


cdef int _judge_pairs(Exchange* x, Content* content, bint* done) noexcept nogil:
    cdef Walk walk
    cdef Slice body = content.body
    # The words of a refusal are written later: until then their buffer takes the texts' entries.
    cdef int status = walk_pairs(body.p, body.n, NULL if x.profile.compat else &x.out.entry, &walk)
    x.out.entry.n = 0
    x.out.records = walk.count
    done[0] = False
    if status == ST_OK or status == ST_NO_MEMORY:
        return status
    if x.profile.compat:
        x.out.records = 0
        content.groups = 0
        return ST_OK
    done[0] = True
    return _refuse_items(x, b"pairs end at offset(", <int64_t>walk.at, -1)


cdef int _refuse_items(Exchange* x, const char* what, int64_t number, int64_t remaining) noexcept nogil:
    cdef Buf* words = &x.out.entry
    if buf_reserve(words, x.text.n + 160) != ST_OK:
        return ST_NO_MEMORY
    buf_put_text(words, b"Malformed data len, ")
    buf_put_text(words, what)
    buf_put_decimal(words, number)
    if remaining >= 0:
        buf_put_text(words, b"), buffer remaining(")
        buf_put_decimal(words, remaining)
    buf_put_text(words, b"), attr: (")
    buf_put(words, x.text.p, x.text.n)
    buf_put_text(words, b")")
    return answer_code(x, ERR_ITEMS, slice_of(words.p, words.n), True)


cdef bint _breaks_reference(Exchange* x, const Content* content) noexcept nogil:
    # Bodies at which the reference server's encoding step fails, so that the connection goes.
    cdef Slice body = content.body
    cdef size_t at = 0
    cdef int64_t size
    if x.out.msg_type == TYPE_ITEMS:
        return False
    if x.out.msg_type != TYPE_PAIRS:
        return body.n == 1 and body.p[0] == 10
    if body.n < 4:
        return True
    while body.n - at >= 4:
        size = <int32_t>load_be32(body.p + at)
        if size < 0:
            return True
        if <size_t>size > body.n - at - 4:
            return False
        at += 4 + <size_t>size
    return False


cdef void _trim_record(Exchange* x, Slice* body) noexcept nogil:
    cdef size_t n = body.n
    if attrs_has(&x.attrs, KEY_MT) and slice_is(x.attrs.value[KEY_MT], b"pb"):
        return
    if n > 0 and body.p[n - 1] == 10:
        n -= 1
        if n > 0 and body.p[n - 1] == 13:
            n -= 1
    if n > 0 or x.profile.compat:
        body.n = n              # strict: a record of nothing but its line end stays


cdef int _store(Exchange* x, const Content* content) noexcept nogil:
    cdef Buf* out = &x.out.entry
    cdef int msg_type = x.out.msg_type
    cdef bint single = msg_type != TYPE_ITEMS and msg_type != TYPE_PAIRS
    cdef int version = 3 if msg_type == TYPE_PAIRS else 1
    cdef int64_t dt = 0
    cdef int64_t cnt = 1
    cdef bint keep_dt = attrs_has(&x.attrs, KEY_DT) and read_decimal(x.attrs.value[KEY_DT], &dt)
    cdef GroupPlace place
    cdef Slice payload = content.body
    cdef int status
    x.out.data_time_ms = dt if keep_dt else x.now_ms
    if single and attrs_has(&x.attrs, KEY_CNT) and not read_decimal(x.attrs.value[KEY_CNT], &cnt):
        cnt = 1
    if single:
        _trim_record(x, &payload)
    out.n = 0
    status = put_container_head(out, version, x.now_ms, x.out.records, content.groups)
    if status == ST_OK and content.groups > 0:
        status = open_group_text(out, &place)
        if status == ST_OK:
            status = put_stored_attrs(out, &x.out.scratch, &x.attrs, x.out.data_time_ms, keep_dt, cnt, x.now_ms)
        if status == ST_OK:
            status = close_group_text(out, &place)
        if status == ST_OK:
            status = _put_records(x, payload, single or msg_type == TYPE_PAIRS)
    return status if status != ST_OK else put_container_magic(out, version)


cdef int _put_records(Exchange* x, Slice payload, bint one) noexcept nogil:
    # `one`: the payload is a single record, which needs its length in front.
    cdef Buf* scratch = &x.out.scratch
    cdef uint8_t* at = <uint8_t*>payload.p
    cdef size_t start
    if one and scratch.p <= at < scratch.p + scratch.n:
        at -= 4                 # unpacked: room was left there
        store_be32(at, <uint32_t>payload.n)
        payload = slice_of(at, payload.n + 4)
    elif one:
        start = scratch.n
        if buf_put_be32(scratch, <uint32_t>payload.n) != ST_OK or buf_put(scratch, payload.p, payload.n) != ST_OK:
            return ST_NO_MEMORY
        payload = slice_of(scratch.p + start, payload.n + 4)
    return put_payload(&x.out.entry, payload, x.profile.compress_entries)
