"""Answers.  Success or refusal, the status is 200: the code in the body decides.

Locality: any thread.  Locks: none.
"""

from libc.string cimport memchr, memcpy, strlen

from dataproxy._core.base.buf cimport buf_put, buf_put_decimal, buf_put_slice, buf_put_text, buf_put_u8, buf_reserve
from dataproxy._core.base.slice cimport slice_of, slice_text
from dataproxy._core.base.status cimport ST_INVALID, ST_NO_MEMORY, ST_OK
from dataproxy._core.base.text cimport write_decimal

from dataproxy._core.wire.inlong.http.head cimport Head, head_read

cdef const char* _HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json;charset=utf-8\r\nContent-Length: "
cdef const char* _CLOSES = b"\r\nConnection: close"
cdef const char* _TOO_LARGE = (
    b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


cdef bint code_closes(int code) noexcept nogil:
    """Tell whether the reference server closes after this code."""
    return (code == CODE_NOT_READY or code == CODE_CLOSED or CODE_DECODE <= code <= CODE_TYPE or code == CODE_QUEUE
            or code == CODE_UNKNOWN)


cdef int _put_escaped(Buf* out, Slice text) noexcept nogil:
    """Append a text as JSON has it between quotes."""
    cdef size_t i
    cdef uint8_t c
    cdef uint8_t* at
    if buf_reserve(out, 6 * text.n) != ST_OK:
        return ST_NO_MEMORY
    at = out.p + out.n
    for i in range(text.n):
        c = text.p[i]
        if c == 34 or c == 92:
            at[0] = 92
            at[1] = c
            at += 2
        elif c < 32:
            memcpy(at, <const char*>b"\\u00", 4)
            at[4] = 48 + (c >> 4)
            at[5] = <uint8_t>(<const char*>b"0123456789abcdef")[c & 15]
            at += 6
        else:
            at[0] = c
            at += 1
    out.n = <size_t>(at - out.p)
    return ST_OK


cdef int put_answer(Buf* out, int code, Slice text, Slice callback, bint raw, bint closes) noexcept nogil:
    """Append an answer; with ``callback`` as a call of it (JSONP)."""
    cdef uint8_t digits[20]
    cdef size_t start = out.n, body, digits_n, head_n = strlen(_HEAD)
    # The body is written first, behind room for the longest head: its length stands in front of it.
    cdef size_t room = head_n + sizeof(digits) + strlen(_CLOSES) + 4
    if buf_reserve(out, room + text.n + callback.n + 64) != ST_OK:
        return ST_NO_MEMORY
    out.n = start + room
    if callback.n > 0:
        buf_put_slice(out, callback)
        buf_put_u8(out, 40)
    buf_put_text(out, b'{"code":"')
    buf_put_decimal(out, code)
    buf_put_text(out, b'","msg":"')
    if (buf_put_slice(out, text) if raw else _put_escaped(out, text)) != ST_OK:
        return ST_NO_MEMORY
    if buf_put_text(out, b'"}') != ST_OK or (callback.n > 0 and buf_put_u8(out, 41) != ST_OK):
        return ST_NO_MEMORY
    body = out.n - start - room
    digits_n = write_decimal(digits, body)
    return _put_head(out, start, room, body, slice_of(digits, digits_n), closes)


cdef int _put_head(Buf* out, size_t start, size_t room, size_t body, Slice length, bint closes) noexcept nogil:
    """Write the head in front of a body that lies ``room`` bytes behind ``start``, and close the gap."""
    cdef size_t head_n = strlen(_HEAD), closes_n = strlen(_CLOSES) if closes else 0, i
    cdef uint8_t* at = out.p + start
    memcpy(at, _HEAD, head_n)
    memcpy(at + head_n, length.p, length.n)
    memcpy(at + head_n + length.n, _CLOSES, closes_n)
    at += head_n + length.n + closes_n
    memcpy(at, <const char*>b"\r\n\r\n", 4)
    at += 4
    for i in range(body):       # towards the front, in a buffer of its own: byte by byte is right
        at[i] = out.p[start + room + i]
    out.n = <size_t>(at - out.p) + body
    return ST_OK


cdef int put_too_large(Buf* out) noexcept nogil:
    """Append the answer to a request over the limit, which has no code."""
    return buf_put_text(out, _TOO_LARGE)


cdef int refuse_answer(const uint8_t* reply, size_t n, int code, const char* message, Buf* out) noexcept nogil:
    """Append a success that was made here, turned into a refusal."""
    cdef Head head
    cdef const uint8_t* brace
    cdef Slice callback = slice_of(NULL, 0)
    cdef Slice text = slice_text(message) if message != NULL else slice_of(NULL, 0)
    if head_read(reply, n, &head) != ST_OK or not head.answer or head.size >= n:
        return ST_INVALID
    brace = <const uint8_t*>memchr(reply + head.size, 123, n - head.size)
    if brace == NULL:
        return ST_INVALID
    if brace > reply + head.size:
        callback = slice_of(reply + head.size, <size_t>(brace - reply) - head.size - 1)
    return put_answer(out, code, text, callback, False, head.closes)


cdef int tell_nothing(
    const uint8_t* reply, size_t n, int64_t known, int64_t differed, int64_t reach, Buf* out,
) noexcept nogil:
    """Append a success unchanged: this dialect has no place for what the server knew before."""
    return buf_put(out, reply, n)


cdef void keep_address(uint8_t* reply, size_t n, uint32_t seq) noexcept nogil:
    """Change nothing: answers have no number."""
