"""Requests.  The form begins with the body, so that the head in front of it has a known size.

A request that is sent again goes to another server, so the field ``Host`` has room for any name.  What the name does
not take are blanks at the end of the next field, which means the same with them.

Locality: owner of the buffer.  Locks: none.
"""

from libc.string cimport memchr, memcmp, memcpy, memset, strlen

from dataproxy._core.base.buf cimport buf_put_text, buf_reserve
from dataproxy._core.base.slice cimport slice_of
from dataproxy._core.base.status cimport ST_INVALID, ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.base.text cimport write_decimal
from dataproxy._core.wire.api cimport ITEM_LINES
from dataproxy._core.wire.inlong.const cimport FAMILY_REPORT, MAX_CLIENT_ATTRS, MAX_COUNT
from dataproxy._core.wire.inlong.http.form cimport encode_in_place, encoded_size, put_encoded

cdef enum:
    FIELDS_ROOM = 96        # &dt=<20>&cnt=<5>, and the names of the fields with the names

cdef const char* _POST = b"POST /dataproxy/message HTTP/1.1\r\nHost: "
cdef const char* _GET = b"GET /dataproxy/heartbeat HTTP/1.1\r\nHost: "
cdef const char* _ACCEPT = b"\r\nAccept: application/json"
cdef const char* _TYPE = b"\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: "
cdef const char* _BODY = b"\r\n\r\nbody="


cdef int describe_lines(int number, FamilyForm* out) noexcept nogil:
    """Describe the one family of this dialect: messages are lines of text, without ids and attributes of their own."""
    out.items = ITEM_LINES
    out.least = slice_of(NULL, 0)
    out.ids = False
    out.text = True
    out.arranged = False
    out.single = False
    return ST_OK if number == FAMILY_REPORT else ST_INVALID


cdef size_t request_tail_room(const FrameSpec* spec) noexcept nogil:
    """Return the bytes that a request needs behind its body: what encoding adds to it, and the other fields."""
    return encoded_size(spec.body) - spec.body.n + 3 * spec.attrs.n + FIELDS_ROOM


cdef int request_around(const FrameSpec* spec, uint8_t* buf, size_t body_n, size_t* start, size_t* size) noexcept nogil:
    """Encode the body where it lies, and write head and fields around it."""
    cdef uint8_t* body = buf + REQUEST_HEAD_ROOM
    cdef uint8_t* end
    cdef size_t coded
    if body_n == 0 or spec.count == 0 or spec.attrs.n == 0 or spec.data_time_ms < 0 or spec.items != ITEM_LINES:
        return ST_INVALID
    if spec.compressed:
        return ST_INVALID
    if spec.attrs.n > MAX_CLIENT_ATTRS or spec.count > MAX_COUNT:
        return ST_LIMIT
    coded = encoded_size(slice_of(body, body_n))
    encode_in_place(body, body_n, coded)
    end = _put_fields(body + coded, spec)
    start[0] = _put_head(buf, <size_t>(end - body) + 5)
    size[0] = <size_t>(end - buf) - start[0]
    return ST_OK


cdef uint8_t* _put_fields(uint8_t* at, const FrameSpec* spec) noexcept nogil:
    """Write what the attributes say as fields of the form, then time and count."""
    cdef Slice rest = spec.attrs, pair
    cdef const uint8_t* mark
    cdef size_t name_n
    while rest.n > 0:
        mark = <const uint8_t*>memchr(rest.p, 38, rest.n)
        pair = slice_of(rest.p, <size_t>(mark - rest.p) if mark != NULL else rest.n)
        rest = slice_of(rest.p + pair.n + 1, rest.n - pair.n - 1) if mark != NULL else slice_of(NULL, 0)
        mark = <const uint8_t*>memchr(pair.p, 61, pair.n)
        name_n = <size_t>(mark - pair.p) if mark != NULL else pair.n
        at[0] = 38
        at = put_encoded(at + 1, slice_of(pair.p, name_n))
        at[0] = 61
        at += 1
        if mark != NULL:
            at = put_encoded(at, slice_of(mark + 1, pair.n - name_n - 1))
    at = _put_number(at, b"&dt=", 4, spec.data_time_ms)
    return _put_number(at, b"&cnt=", 5, spec.count)


cdef uint8_t* _put_number(uint8_t* at, const char* key, size_t key_n, int64_t value) noexcept nogil:
    memcpy(at, key, key_n)
    return at + key_n + write_decimal(at + key_n, <unsigned long long>value)


cdef uint8_t* _put(uint8_t* at, const char* text) noexcept nogil:
    cdef size_t n = strlen(text)
    memcpy(at, text, n)
    return at + n


cdef size_t _put_head(uint8_t* buf, size_t form_n) noexcept nogil:
    """Write the head so that it ends where the body begins; return where it begins."""
    cdef uint8_t digits[20]
    cdef size_t digits_n = write_decimal(digits, form_n)
    cdef size_t n = strlen(_POST) + HOST_ROOM + strlen(_ACCEPT) + strlen(_TYPE) + digits_n + strlen(_BODY)
    cdef uint8_t* at = buf + REQUEST_HEAD_ROOM - n
    at = _put(_put_name(_put(at, _POST), slice_of(NULL, 0)), _TYPE)
    memcpy(at, digits, digits_n)
    _put(at + digits_n, _BODY)
    return REQUEST_HEAD_ROOM - n


cdef uint8_t* _put_name(uint8_t* at, Slice name) noexcept nogil:
    """Write the name of the server, if it fits, and the field behind it, into the room for both."""
    cdef uint8_t* end = at + HOST_ROOM + strlen(_ACCEPT)
    if 0 < name.n <= HOST_ROOM:
        memcpy(at, name.p, name.n)
        at += name.n
    at = _put(at, _ACCEPT)
    memset(at, 32, <size_t>(end - at))
    return end


cdef int put_ping(int kind, int64_t now_ms, Buf* out) noexcept nogil:
    """Append a heartbeat, the same for every kind."""
    cdef size_t room = HOST_ROOM + strlen(_ACCEPT)
    if buf_put_text(out, _GET) != ST_OK or buf_reserve(out, room + 4) != ST_OK:
        return ST_NO_MEMORY
    _put_name(out.p + out.n, slice_of(NULL, 0))
    out.n += room
    return buf_put_text(out, b"\r\n\r\n")


cdef void put_host(uint8_t* request, size_t n, Slice server) noexcept nogil:
    """Write the server's name into a request; what follows a blank in it is left out."""
    cdef size_t at = strlen(_POST)
    cdef const uint8_t* blank = <const uint8_t*>memchr(server.p, 32, server.n) if server.n else NULL
    if blank != NULL:
        server.n = <size_t>(blank - server.p)
    if n < at or memcmp(request, _POST, at) != 0:
        at = strlen(_GET)
    if n >= at + HOST_ROOM + strlen(_ACCEPT):
        _put_name(request + at, server)


cdef int name_nothing(
    const uint8_t* p, size_t n, int items, uint32_t count, Slice id, uint32_t* ends, Buf* out,
) noexcept nogil:
    """Refuse: lines have no names, so a request is never divided."""
    return ST_INVALID
