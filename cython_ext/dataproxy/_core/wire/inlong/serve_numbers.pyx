"""Numeric group and stream ids of binary requests, looked up in the server's mapping.

Locality: server loop.  Locks: none.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from dataproxy._core.base.buf cimport Buf, buf_put_decimal, buf_put_slice, buf_put_text, buf_reserve
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.endian cimport load_be16
from dataproxy._core.wire.api cimport NumberedNames
from dataproxy._core.wire.inlong.answer cimport MAX_NAME, Exchange, answer_code
from dataproxy._core.wire.inlong.attrs cimport attr_is_blank
from dataproxy._core.wire.inlong.const cimport (
    BIN_GROUP_NUM,
    BIN_STREAM_NUM,
    ERR_NAMES_DIFFER,
    ERR_NO_GROUP,
    ERR_NO_MAPPING,
    ERR_UNKNOWN_NUMBER,
)


cdef int judge_numbers(Exchange* x, bint* done) noexcept nogil:
    """Turn the numbers into ``out.group`` and ``out.stream``, or refuse."""
    cdef uint32_t group_num = load_be16(x.p + BIN_GROUP_NUM)
    cdef uint32_t stream_num = load_be16(x.p + BIN_STREAM_NUM)
    cdef Slice stream = x.out.stream
    cdef NumberedNames names
    done[0] = True
    if group_num == 0:
        return _refuse(x, ERR_NO_GROUP, b"groupIdNum is 0 in message")
    if x.profile.numbered == NULL:
        return _refuse(x, ERR_NO_MAPPING, b"GroupId-Mapping configuration is null")
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


cdef int _answer(Exchange* x, int code) noexcept nogil:
    cdef Buf* words = &x.out.entry
    return answer_code(x, code, slice_of(words.p, words.n), True)


cdef int _refuse(Exchange* x, int code, const char* text) noexcept nogil:
    if buf_put_text(&x.out.entry, text) != ST_OK:
        return ST_NO_MEMORY
    return _answer(x, code)


cdef int _refuse_number(Exchange* x, const char* before, uint32_t number, const char* after) noexcept nogil:
    cdef Buf* words = &x.out.entry
    if buf_reserve(words, 128) != ST_OK:
        return ST_NO_MEMORY
    buf_put_text(words, before)
    buf_put_decimal(words, number)
    buf_put_text(words, after)
    return _answer(x, ERR_UNKNOWN_NUMBER)


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
    return _answer(x, ERR_NAMES_DIFFER)


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
    return _answer(x, ERR_NAMES_DIFFER)
