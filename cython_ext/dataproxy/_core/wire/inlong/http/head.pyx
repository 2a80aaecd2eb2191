"""Heads and bodies of HTTP messages.

A request that breaks the protocol, or is over the limit, is answered before its connection closes.  So
``http_delimit`` hands on such bytes as one message, and ``server`` finds out why.  A broken answer is an error.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memchr, memcmp, memcpy

from dataproxy._core.base.buf cimport buf_put
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_LIMIT, ST_NEED_DATA, ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.wire.inlong.attrs cimport attr_is

cdef enum:
    CR = 13
    LF = 10
    COLON = 58
    BLANK = 32
    TAB = 9
    METHOD_MOST = 32
    CHUNK_LINE = 256        # bytes of the line before a chunk


cdef int _line(const uint8_t* p, size_t n, size_t at, Slice* line, size_t* next) noexcept nogil:
    """Read the line at ``at``, without its end.  ST_OK or ST_NEED_DATA."""
    cdef const uint8_t* end = <const uint8_t*>memchr(p + at, LF, n - at) if n > at else NULL
    cdef size_t size
    if end == NULL:
        return ST_NEED_DATA
    size = <size_t>(end - p) - at
    next[0] = at + size + 1
    if size > 0 and p[at + size - 1] == CR:
        size -= 1
    line[0] = slice_of(p + at, size)
    return ST_OK


cdef Slice _trimmed(Slice s) noexcept nogil:
    while s.n > 0 and (s.p[0] == BLANK or s.p[0] == TAB):
        s.p += 1
        s.n -= 1
    while s.n > 0 and (s.p[s.n - 1] == BLANK or s.p[s.n - 1] == TAB):
        s.n -= 1
    return s


cdef bint _digits(Slice s, int64_t* value) noexcept nogil:
    """Read a number without a sign, of at most 18 digits."""
    cdef size_t i
    value[0] = 0
    if s.n == 0 or s.n > 18:
        return False
    for i in range(s.n):
        if not 48 <= s.p[i] <= 57:
            return False
        value[0] = value[0] * 10 + s.p[i] - 48
    return True


cdef int _version(Slice s, Head* out) noexcept nogil:
    # HTTP/1.0 closes after each answer unless the peer asks for more.
    if s.n != 8 or memcmp(s.p, <const char*>b"HTTP/1.", 7) != 0 or not 48 <= s.p[7] <= 57:
        return ST_PROTOCOL
    out.closes = s.p[7] == 48
    return ST_OK


cdef int _request_line(Slice line, Head* out) noexcept nogil:
    cdef const uint8_t* first = <const uint8_t*>memchr(line.p, BLANK, line.n) if line.n else NULL
    cdef const uint8_t* last
    cdef size_t i
    if first == NULL:
        return ST_PROTOCOL
    out.method = slice_of(line.p, <size_t>(first - line.p))
    last = line.p + line.n - 1
    while last[0] != BLANK:
        last -= 1
    if last <= first + 1 or out.method.n == 0 or out.method.n > METHOD_MOST:
        return ST_PROTOCOL
    out.target = slice_of(first + 1, <size_t>(last - first) - 1)
    for i in range(out.target.n):
        if out.target.p[i] <= BLANK or out.target.p[i] == 127:
            return ST_PROTOCOL
    return _version(slice_of(last + 1, <size_t>(line.p + line.n - last) - 1), out)


cdef int _status_line(Slice line, Head* out) noexcept nogil:
    cdef int64_t status = 0
    if line.n < 12 or _version(slice_of(line.p, 8), out) != ST_OK or line.p[8] != BLANK:
        return ST_PROTOCOL
    if line.n > 12 and line.p[12] != BLANK:
        return ST_PROTOCOL
    if not _digits(slice_of(line.p + 9, 3), &status) or status < 100:
        return ST_PROTOCOL
    out.status = <int>status
    return ST_OK


cdef int _field(Slice line, Head* out) noexcept nogil:
    """Read one field of a head."""
    cdef const uint8_t* colon = <const uint8_t*>memchr(line.p, COLON, line.n)
    cdef int64_t length = 0
    cdef Slice name, value
    if colon == NULL or colon == line.p:
        return ST_PROTOCOL
    name = slice_of(line.p, <size_t>(colon - line.p))
    value = _trimmed(slice_of(colon + 1, line.n - name.n - 1))
    if name.p[0] == BLANK or name.p[0] == TAB or name.p[name.n - 1] == BLANK or name.p[name.n - 1] == TAB:
        return ST_PROTOCOL      # a folded line, or one that two servers may read in two ways
    if attr_is(name, b"content-length", 14):
        if not _digits(value, &length) or (out.framing == BODY_LENGTH and length != out.length):
            return ST_PROTOCOL
        if out.framing == BODY_CHUNKED:
            return ST_PROTOCOL
        out.framing = BODY_LENGTH
        out.length = length
    elif attr_is(name, b"transfer-encoding", 17):
        if not attr_is(value, b"chunked", 7) or out.framing == BODY_LENGTH:
            return ST_PROTOCOL
        out.framing = BODY_CHUNKED
    elif attr_is(name, b"content-type", 12):
        out.typed = True
        out.content_type = value
    elif attr_is(name, b"connection", 10):
        if attr_is(value, b"close", 5):
            out.closes = True
        elif attr_is(value, b"keep-alive", 10):
            out.closes = False
    return ST_OK


cdef int head_read(const uint8_t* p, size_t n, Head* out) noexcept nogil:
    """Read a head.  ST_NEED_DATA: it is not complete; ST_PROTOCOL: it is broken, or longer than is allowed."""
    cdef size_t at = 0, next = 0
    cdef Slice line
    cdef int status, fields = 0
    cdef size_t seen = n if n < HEAD_MOST else <size_t>HEAD_MOST
    out.method = slice_of(NULL, 0)
    out.target = slice_of(NULL, 0)
    out.content_type = slice_of(NULL, 0)
    out.status = 0
    out.size = 0
    out.framing = BODY_NONE
    out.length = 0
    out.closes = False
    out.typed = False
    while at < seen and (p[at] == CR or p[at] == LF) and at < 4:    # empty lines before a message are allowed
        at += 1
    out.answer = seen - at >= 5 and memcmp(p + at, <const char*>b"HTTP/", 5) == 0
    if not _begins(p + at, seen - at):
        return ST_PROTOCOL
    status = _line(p, seen, at, &line, &next)
    if status == ST_OK:
        status = _status_line(line, out) if out.answer else _request_line(line, out)
    while status == ST_OK:
        at = next
        status = _line(p, seen, at, &line, &next)
        if status == ST_OK and line.n == 0:
            break
        if status == ST_OK:
            fields += 1
            status = _field(line, out) if fields <= FIELDS_MOST else ST_PROTOCOL
    if status == ST_NEED_DATA and seen == HEAD_MOST:
        return ST_PROTOCOL
    if status != ST_OK:
        return status
    out.size = next
    if out.answer and (out.status < 200 or out.status == 204 or out.status == 304):
        out.framing = BODY_NONE
    elif out.answer and out.framing == BODY_NONE:
        out.framing = BODY_REST
    return ST_OK


cdef bint _begins(const uint8_t* p, size_t n) noexcept nogil:
    """Tell whether bytes can begin a message: a method or a version, which have no other bytes before a blank."""
    cdef size_t i
    for i in range(n if n < METHOD_MOST + 1 else <size_t>METHOD_MOST + 1):
        if p[i] == BLANK:
            return i > 0
        if not (65 <= p[i] <= 90 or 97 <= p[i] <= 122 or 46 <= p[i] <= 57 or p[i] == 45 or p[i] == 95):
            return False
    return n <= METHOD_MOST


cdef bint _hex(Slice line, size_t* value) noexcept nogil:
    """Read the size of a chunk; what follows a semicolon is ignored."""
    cdef size_t i = 0
    cdef uint8_t c
    value[0] = 0
    while i < line.n and i < 8:
        c = line.p[i]
        if 48 <= c <= 57:
            c -= 48
        elif 97 <= (c | 32) <= 102:
            c = (c | 32) - 87
        else:
            break
        value[0] = value[0] * 16 + c
        i += 1
    return i > 0 and (i == line.n or line.p[i] == 59 or line.p[i] == BLANK or line.p[i] == TAB)


cdef int _chunk(const uint8_t* p, size_t n, size_t* at, Slice* data) noexcept nogil:
    """Read one chunk and move behind it; the last one is empty.  ST_OK, ST_NEED_DATA or ST_PROTOCOL."""
    cdef Slice line
    cdef size_t next = 0, size = 0
    cdef int _
    if _line(p, n, at[0], &line, &next) != ST_OK:
        return ST_NEED_DATA if n - at[0] < CHUNK_LINE else ST_PROTOCOL
    if not _hex(line, &size):
        return ST_PROTOCOL
    data[0] = slice_of(p + next, size)
    if size > 0:
        if n - next < size + 2:
            return ST_NEED_DATA
        if p[next + size] != CR or p[next + size + 1] != LF:
            return ST_PROTOCOL
        at[0] = next + size + 2
        return ST_OK
    for _ in range(FIELDS_MOST + 1):      # fields may follow the last chunk
        at[0] = next
        if _line(p, n, at[0], &line, &next) != ST_OK:
            return ST_NEED_DATA if n - at[0] < HEAD_MOST else ST_PROTOCOL
        if line.n == 0:
            at[0] = next
            return ST_OK
    return ST_PROTOCOL


cdef int message_size(const uint8_t* p, size_t n, size_t most, const Head* head, size_t* size) noexcept nogil:
    """Find the end of a message whose head was read."""
    cdef size_t at = head.size
    cdef Slice data = slice_of(NULL, 0)
    cdef int chunks = 0
    cdef int status
    size[0] = head.size
    if head.framing == BODY_NONE:
        return ST_OK if head.size <= most else ST_LIMIT
    if head.framing == BODY_LENGTH:
        if head.size > most or <uint64_t>head.length > most - head.size:
            return ST_LIMIT
        size[0] = head.size + <size_t>head.length
        return ST_OK if n >= size[0] else ST_NEED_DATA
    if head.framing == BODY_REST:
        return _rest(p, n, most, head, size)
    while True:
        status = _chunk(p, n, &at, &data)
        if at > most or (status == ST_NEED_DATA and (n > most or data.n > most)):
            return ST_LIMIT
        if status != ST_OK:
            size[0] = 0
            return status
        if data.n == 0:
            size[0] = at
            return ST_OK
        chunks += 1
        if chunks > CHUNKS_MOST:
            return ST_PROTOCOL


cdef int _rest(const uint8_t* p, size_t n, size_t most, const Head* head, size_t* size) noexcept nogil:
    """Find the end of an answer without a length: of an object of JSON its end, else what has come by now.

    Only a success is worth waiting for.  Nothing that follows is read: the connection closes.
    """
    cdef const uint8_t* end = NULL
    if head.status == 200:
        end = <const uint8_t*>memchr(p + head.size, 125, n - head.size) if n > head.size else NULL
        if end == NULL:
            return ST_NEED_DATA if n <= most else ST_LIMIT
        size[0] = <size_t>(end - p) + 1
        return ST_OK
    size[0] = n
    return ST_OK


cdef int message_body(const uint8_t* p, size_t n, const Head* head, Buf* scratch, Slice* out) noexcept nogil:
    """Return the body of a whole message; one in chunks is put together behind what ``scratch`` holds."""
    cdef size_t at = head.size, start = scratch.n
    cdef Slice data
    if head.framing != BODY_CHUNKED:
        out[0] = slice_of(p + head.size, n - head.size)
        return ST_OK
    while _chunk(p, n, &at, &data) == ST_OK and data.n > 0:
        if buf_put(scratch, data.p, data.n) != ST_OK:
            return ST_NO_MEMORY
    out[0] = slice_of(scratch.p + start, scratch.n - start)
    return ST_OK


cdef Slice answer_body(const uint8_t* p, size_t n, const Head* head, uint8_t* room, size_t room_n) noexcept nogil:
    """Return the body of a whole answer; of several chunks what ``room`` takes, put together there."""
    cdef size_t at = head.size, used = 0, take
    cdef Slice data, whole = slice_of(p + head.size, n - head.size)
    if head.framing != BODY_CHUNKED:
        return whole
    whole.n = 0
    while _chunk(p, n, &at, &data) == ST_OK and data.n > 0:
        take = data.n if data.n < room_n - used else room_n - used
        memcpy(room + used, data.p, take)
        used += take
        whole = data if whole.n == 0 else slice_of(room, used)
    return whole


cdef int http_delimit(const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil:
    """Find the first message of a stream, of either side: see ``WireOps.delimit``.

    A request that is broken or too large is all that has come; ``server`` answers it and closes.
    """
    cdef Head head
    cdef int status = head_read(p, n, &head)
    size[0] = 0
    if status == ST_OK:
        status = message_size(p, n, max_frame, &head, size)
    if (status == ST_PROTOCOL or status == ST_LIMIT) and not head.answer:
        size[0] = n
        return ST_OK
    return status
