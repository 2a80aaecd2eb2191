"""Binary requests, type 7, as a server judges them: lengths, attributes, fields, names, items, in this order.

Locality: server loop.  Locks: none.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from dataproxy._core.base.buf cimport Buf, buf_put_decimal, buf_put_slice, buf_put_text, buf_reserve
from dataproxy._core.base.snappy.compress cimport pack_block, pack_bound, unpack_block
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.base.text cimport is_ascii
from dataproxy._core.plat.endian cimport load_be16, load_be32, store_be16, store_be32
from dataproxy._core.wire.api cimport NumberedNames
from dataproxy._core.wire.inlong.answer cimport (
    MAX_NAME,
    Exchange,
    answer_close,
    answer_code,
    answer_success,
    complete_attrs,
    judge_names,
    read_controls,
)
from dataproxy._core.wire.inlong.attrs cimport attr_is_blank
from dataproxy._core.wire.inlong.const cimport (
    BIN_BODY,
    BIN_BODY_LEN,
    BIN_COUNT,
    BIN_DATA_TIME,
    BIN_EXT,
    BIN_FIXED,
    BIN_GROUP_NUM,
    BIN_STREAM_NUM,
    BIN_TYPE,
    BIN_UNIQ,
    ERR_ATTRS_NEGATIVE,
    ERR_BODY_EMPTY,
    ERR_BODY_NEGATIVE,
    ERR_EXT,
    ERR_ITEMS,
    ERR_LENGTHS,
    ERR_MAGIC,
    ERR_NAMES_DIFFER,
    ERR_NO_GROUP,
    ERR_NO_MAPPING,
    ERR_SIZE,
    ERR_UNKNOWN_NUMBER,
    ERR_UNPACK,
    EXT_FILE_CHECK,
    EXT_MINUTE_CHECK,
    EXT_NAMES,
    EXT_PAIRS,
    EXT_TRACE,
    LENGTH_SIZE,
    MAGIC,
    MAX_BINARY_ATTRS,
    MAX_BODY,
    TYPE_ENCRYPTED,
    TYPE_FLAGS,
    TYPE_SNAPPY,
)
from dataproxy._core.wire.inlong.items cimport Walk, walk_items, walk_packed, walk_pairs

cdef enum:
    WALKED_ITEM = 48            # bytes of a block for each item, as announced: with fewer, unpacking is quicker


cdef int serve_binary(Exchange* x) noexcept nogil:
    """Judge one binary frame."""
    cdef uint16_t ext
    cdef bint done = False
    cdef int status
    x.binary = True
    if x.n < BIN_FIXED:
        return answer_close(x)
    x.uniq = load_be32(x.p + BIN_UNIQ)
    status = _read_lengths(x, &done)
    if done:
        return status
    status = read_controls(x, &done)
    if status != ST_OK or done:
        return status
    if x.profile.service_code != 0:
        return answer_code(x, x.profile.service_code, slice_of(NULL, 0), True)
    ext = load_be16(x.p + BIN_EXT)
    if ext & (EXT_FILE_CHECK | EXT_MINUTE_CHECK):
        return answer_code(x, ERR_EXT, slice_of(NULL, 0), True)
    if not ext & EXT_NAMES:
        status = _judge_numbers(x, &done)
        if status != ST_OK or done:
            return status
    status = judge_names(x, &done)
    if status != ST_OK or done:
        return status
    complete_attrs(x, ext & EXT_TRACE)
    status = _judge_content(x, ext, &done)
    if status != ST_OK or done:
        return status
    x.out.data_time_ms = <int64_t>load_be32(x.p + BIN_DATA_TIME) * 1000
    status = _store(x)
    return status if status != ST_OK else answer_success(x)


cdef int _refuse(Exchange* x, int code, const char* text, bint echo) noexcept nogil:
    x.out.entry.n = 0
    if buf_put_text(&x.out.entry, text) != ST_OK:
        return ST_NO_MEMORY
    return answer_code(x, code, slice_of(x.out.entry.p, x.out.entry.n), echo)


cdef int _refuse_position(Exchange* x) noexcept nogil:
    # A length that points outside the frame: the reference server reads there, fails and loses the connection.
    if x.profile.compat:
        return answer_close(x)
    return _refuse(x, ERR_LENGTHS, b"Field lengths do not add up to the length of the frame", False)


cdef int _read_lengths(Exchange* x, bint* done) noexcept nogil:
    # Length and magic of the attributes are read before any check, as the reference does: what a wrong body
    # length leads to depends on the bytes that it happens to point at.
    cdef int64_t body_n = <int32_t>load_be32(x.p + BIN_BODY_LEN)
    cdef int64_t attr_at = BIN_BODY + body_n
    cdef int64_t last = <int64_t>x.n - 2
    cdef int64_t attr_n
    cdef int64_t magic_at
    cdef uint16_t magic
    cdef Slice nothing = slice_of(NULL, 0)
    done[0] = True
    if attr_at < 0 or attr_at > last:
        return _refuse_position(x)
    attr_n = <int16_t>load_be16(x.p + attr_at)
    magic_at = attr_at + 2 + attr_n
    if magic_at < 0 or magic_at > last:
        return _refuse_position(x)
    if body_n == 0:
        return answer_code(x, ERR_BODY_EMPTY, nothing, False)
    if body_n < 0:
        return answer_code(x, ERR_BODY_NEGATIVE, nothing, False)
    if attr_n < 0:
        return answer_code(x, ERR_ATTRS_NEGATIVE, nothing, False)
    magic = load_be16(x.p + magic_at)
    if magic != MAGIC:
        if buf_reserve(&x.out.entry, 64) != ST_OK:
            return ST_NO_MEMORY
        buf_put_text(&x.out.entry, b"magicInMsg(")
        buf_put_decimal(&x.out.entry, magic)
        buf_put_text(&x.out.entry, b") != 60929")
        return answer_code(x, ERR_MAGIC, slice_of(x.out.entry.p, x.out.entry.n), False)
    if magic_at != last and not x.profile.compat:
        return _refuse_position(x)
    x.body = slice_of(x.p + BIN_BODY, <size_t>body_n)
    x.text = slice_of(x.p + attr_at + 2, <size_t>attr_n)
    done[0] = False
    return ST_OK


cdef int _judge_numbers(Exchange* x, bint* done) noexcept nogil:
    """Turn the numeric ids into ``out.group`` and ``out.stream`` by the server's mapping, or refuse."""
    cdef uint32_t group_num = load_be16(x.p + BIN_GROUP_NUM)
    cdef uint32_t stream_num = load_be16(x.p + BIN_STREAM_NUM)
    cdef Slice stream = x.out.stream
    cdef NumberedNames names
    done[0] = True
    if group_num == 0:
        return _refuse(x, ERR_NO_GROUP, b"groupIdNum is 0 in message", True)
    if x.profile.numbered == NULL:
        return _refuse(x, ERR_NO_MAPPING, b"GroupId-Mapping configuration is null", True)
    memset(&names, 0, sizeof(NumberedNames))
    x.profile.numbered(x.profile.context, group_num, stream_num, &names)
    if not names.has_group or names.group.n > MAX_NAME:
        return _refuse_number(x, b"Non-existing groupIdNum(", group_num, b") configuration")
    if not attr_is_blank(x.out.group) and not slice_equals(x.out.group, names.group):
        return _refuse_names(x, b"GroupId", x.out.group, names.group, b"groupIdNum(", group_num)
    if stream_num == 0:
        if not attr_is_blank(stream):
            return _refuse_stream(x, stream)
    elif not names.has_stream or names.stream.n > MAX_NAME:
        return _refuse_pair(x, group_num, stream_num)
    elif not attr_is_blank(stream) and not slice_equals(stream, names.stream):
        return _refuse_names(x, b"StreamId", stream, names.stream, b"streamIdNum(", stream_num)
    else:
        x.out.stream = names.stream
    x.out.group = names.group
    x.translated = names.translate
    done[0] = False
    return ST_OK


cdef int _answer_words(Exchange* x, int code) noexcept nogil:
    cdef Buf* words = &x.out.entry
    return answer_code(x, code, slice_of(words.p, words.n), True)


cdef int _refuse_number(Exchange* x, const char* before, uint32_t number, const char* after) noexcept nogil:
    cdef Buf* words = &x.out.entry
    if buf_reserve(words, 128) != ST_OK:
        return ST_NO_MEMORY
    buf_put_text(words, before)
    buf_put_decimal(words, number)
    buf_put_text(words, after)
    return _answer_words(x, ERR_UNKNOWN_NUMBER)


cdef int _refuse_pair(Exchange* x, uint32_t group_num, uint32_t stream_num) noexcept nogil:
    cdef Buf* words = &x.out.entry
    if buf_reserve(words, 128) != ST_OK:
        return ST_NO_MEMORY
    buf_put_text(words, b"Non-existing GroupId(")
    buf_put_decimal(words, group_num)
    return _refuse_number(x, b")-StreamId(", stream_num, b") configuration")


cdef int _refuse_stream(Exchange* x, Slice stream) noexcept nogil:
    cdef Buf* words = &x.out.entry
    if buf_reserve(words, stream.n + 128) != ST_OK:
        return ST_NO_MEMORY
    buf_put_text(words, b"Inconstant streamId(")
    buf_put_slice(words, stream)
    buf_put_text(words, b") in attr but streamIdNum=0")
    return _answer_words(x, ERR_NAMES_DIFFER)


cdef int _refuse_names(
    Exchange* x, const char* what, Slice named, Slice mapped, const char* by, uint32_t number,
) noexcept nogil:
    cdef Buf* words = &x.out.entry
    if buf_reserve(words, named.n + mapped.n + 160) != ST_OK:
        return ST_NO_MEMORY
    buf_put_text(words, b"Inconstant ")
    buf_put_text(words, what)
    buf_put_text(words, b" not equal, (")
    buf_put_slice(words, named)
    buf_put_text(words, b") in attr but (")
    buf_put_slice(words, mapped)
    buf_put_text(words, b") in configure by ")
    buf_put_text(words, by)
    buf_put_decimal(words, number)
    buf_put_text(words, b")")
    return _answer_words(x, ERR_NAMES_DIFFER)


cdef int _judge_content(Exchange* x, uint16_t ext, bint* done) noexcept nogil:
    cdef bint too_long = x.prefix_n + x.text.n > MAX_BINARY_ATTRS
    cdef Walk walk
    cdef Slice body = x.body
    cdef Buf* scratch = &x.out.scratch
    cdef size_t at = scratch.n
    cdef uint8_t flags = x.p[BIN_TYPE] & TYPE_FLAGS
    cdef int status
    done[0] = True
    if x.profile.compat:
        # The re-encoding step of the reference counts characters, and wants nothing behind the magic.
        if too_long or BIN_FIXED + x.body.n + x.text.n != x.n or not is_ascii(x.text):
            return answer_close(x)
        x.out.records = max(<uint32_t>load_be16(x.p + BIN_COUNT), <uint32_t>1)
        done[0] = False
        return ST_OK
    if too_long:
        return _refuse(x, ERR_SIZE, b"Error msg, attributes are longer than 32767 bytes when completed", True)
    if flags == TYPE_SNAPPY and not ext & EXT_PAIRS and body.n >= WALKED_ITEM * load_be16(x.p + BIN_COUNT):
        status = walk_packed(body.p, body.n, MAX_BODY, scratch, &x.out.records)
        done[0] = status != ST_OK
        if status != ST_PROTOCOL:
            return status
    if flags == TYPE_SNAPPY:
        status = unpack_block(body.p, body.n, MAX_BODY, scratch)
        if status == ST_NO_MEMORY:
            return status
        if status != ST_OK:
            return _refuse(
                x, ERR_UNPACK, b"Uncompress body failure: not a snappy block of at most 20971520 bytes", True)
        body = slice_of(scratch.p + at, scratch.n - at)
    if flags & TYPE_ENCRYPTED:      # nothing can be checked: without the key it is one record
        x.out.records = 1
        done[0] = False
        return ST_OK
    if ext & EXT_PAIRS:
        status = walk_pairs(body.p, body.n, &x.out.entry, &walk)
    else:
        status = walk_items(body.p, body.n, &walk)
    x.out.records = walk.count
    if status == ST_NO_MEMORY:
        return status
    if status != ST_OK:
        return _refuse_items(x, walk.at, body.n)
    done[0] = False
    return ST_OK


cdef int _refuse_items(Exchange* x, size_t at, size_t n) noexcept nogil:
    cdef Buf* words = &x.out.entry
    words.n = 0
    if buf_reserve(words, 128) != ST_OK:
        return ST_NO_MEMORY
    buf_put_text(words, b"Malformed item at offset(")
    buf_put_decimal(words, <int64_t>at)
    buf_put_text(words, b") of bodyLen(")
    buf_put_decimal(words, <int64_t>n)
    buf_put_text(words, b")")
    return answer_code(x, ERR_ITEMS, slice_of(words.p, words.n), True)


cdef int _store(Exchange* x) noexcept nogil:
    # Container version 4: the frame itself between two magics, its attributes completed, its body packed.
    cdef Buf* out = &x.out.entry
    cdef bint packs = x.profile.compress_entries and not x.p[BIN_TYPE] & TYPE_FLAGS
    cdef bint borrows = x.profile.borrow_body and not packs
    cdef size_t attr_n = x.prefix_n + x.text.n
    cdef size_t body_room = pack_bound(x.body.n) if packs else (0 if borrows else x.body.n)
    cdef size_t body_n = x.body.n
    cdef uint8_t* frame
    cdef uint8_t* at
    out.n = 0
    if buf_reserve(out, BIN_FIXED + body_room + attr_n + 4) != ST_OK:
        return ST_NO_MEMORY
    frame = out.p + 2
    memcpy(frame, x.p, BIN_BODY)
    out.n = 2 + BIN_BODY
    if packs:
        if pack_block(x.body.p, x.body.n, out) != ST_OK:
            return ST_NO_MEMORY
        body_n = out.n - 2 - BIN_BODY
        frame[BIN_TYPE] |= TYPE_SNAPPY
    elif borrows:
        x.out.body = x.body
        x.out.body_at = out.n
    else:
        memcpy(frame + BIN_BODY, x.body.p, body_n)
    if x.translated:
        store_be32(frame + BIN_GROUP_NUM, 0)    # both numbers
        store_be16(frame + BIN_EXT, load_be16(x.p + BIN_EXT) | EXT_NAMES)
    if load_be16(x.p + BIN_COUNT) == 0:
        store_be16(frame + BIN_COUNT, 1)
    store_be32(frame + BIN_BODY_LEN, <uint32_t>body_n)
    store_be32(frame, <uint32_t>(BIN_FIXED + body_n + attr_n - LENGTH_SIZE))
    at = frame + BIN_BODY + (0 if borrows else body_n)
    store_be16(at, <uint16_t>attr_n)
    memcpy(at + 2, x.prefix + 1, x.prefix_n)
    memcpy(at + 2 + x.prefix_n, x.text.p, x.text.n)
    at += 2 + attr_n
    store_be16(at, MAGIC)
    store_be16(at + 2, 0x0F04)
    store_be16(out.p, 0x0F04)
    out.n = <size_t>(at + 4 - out.p)
    return ST_OK
