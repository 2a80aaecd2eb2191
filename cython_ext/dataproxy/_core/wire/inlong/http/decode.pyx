"""Answers of a DataProxy, and of what may stand in front of it.

The code in the JSON text decides; only a success must have the status of one as well.  Without a code the status is it:
a gateway's error, a login page, or a server of another kind has answered.  If a gateway fails, the request may have
reached a DataProxy, so such an answer does not say that nothing was stored.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcmp, memset

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_OK, ST_PROTOCOL
from dataproxy._core.wire.api cimport EV_ACK, EV_UNKNOWN
from dataproxy._core.wire.inlong.http.answer cimport code_closes
from dataproxy._core.wire.inlong.http.head cimport BODY_REST, Head, answer_body, head_read

cdef enum:
    CODE_MOST = 2147483647
    JOINED_MOST = 2048          # bytes of a body in several chunks that are looked at


cdef int read_answer(const uint8_t* p, size_t n, WireEvent* event) noexcept nogil:
    """Read one whole answer.  It names no request: see ``WireOps.in_turn``."""
    cdef Head head
    cdef Slice body
    cdef uint8_t joined[JOINED_MOST]
    cdef bint read
    memset(event, 0, sizeof(WireEvent))
    event.load = -1
    event.reach = -1
    if head_read(p, n, &head) != ST_OK or not head.answer:
        return ST_PROTOCOL
    event.msg_type = head.status
    if head.status < 200:       # an interim answer: the real one follows
        event.kind = EV_UNKNOWN
        return ST_OK
    event.kind = EV_ACK
    body = answer_body(p, n, &head, joined, JOINED_MOST)
    read = _read_code(body, event)
    if not p <= body.p <= p + n:
        event.message = slice_of(NULL, 0)       # the bytes in `joined` do not outlive this call
    if not read or (event.code == 0 and not 200 <= head.status < 300):
        event.code = head.status
        event.message = slice_of(NULL, 0)
        event.unsure = head.status < 300 or head.status >= 500
    event.closes = event.unsure or head.closes or head.framing == BODY_REST or code_closes(event.code)
    return ST_OK


cdef size_t _after(Slice text, const char* key, size_t key_n) noexcept nogil:
    """Return the place of a key's value, behind colon, blanks and quote; 0: there is no such key."""
    cdef size_t i = 0
    while i + key_n < text.n:
        if memcmp(text.p + i, key, key_n) == 0:
            i += key_n
            while i < text.n and (text.p[i] == 32 or text.p[i] == 58 or text.p[i] == 9):
                i += 1
            if i < text.n and text.p[i] == 34:
                i += 1
            return i
        i += 1
    return 0


cdef inline bint _is_blank(uint8_t c) noexcept nogil:
    return c == 32 or 9 <= c <= 13


cdef bint _read_code(Slice body, WireEvent* event) noexcept nogil:
    """Read code and text of an answer; false if it has no code."""
    cdef size_t i = 0
    cdef size_t at
    cdef int64_t code = 0
    while i < body.n and _is_blank(body.p[i]):
        i += 1
    if i < body.n and body.p[i] == 60:      # a page: "code" means nothing in its scripts
        return False
    i = at = _after(body, b'"code"', 6)
    while 0 < i < body.n and 48 <= body.p[i] <= 57 and code <= CODE_MOST:
        code = code * 10 + body.p[i] - 48
        i += 1
    if i == at or code > CODE_MOST or i == body.n:
        return False
    if not (body.p[i] == 34 or body.p[i] == 44 or body.p[i] == 125 or _is_blank(body.p[i])):
        return False            # more than a number
    event.code = <int>code
    at = _after(body, b'"msg"', 5)
    if at > 0:
        event.message = slice_of(body.p + at, _text_end(body, at) - at)
    return True


cdef size_t _text_end(Slice body, size_t at) noexcept nogil:
    """Return where a text ends: at a quote before a comma or a brace.  The text may hold quotes without escapes."""
    cdef size_t i
    while at < body.n:
        if body.p[at] == 34:
            i = at + 1
            while i < body.n and body.p[i] == 32:
                i += 1
            if i == body.n or body.p[i] == 44 or body.p[i] == 125:
                return at
        at += 1
    return at
