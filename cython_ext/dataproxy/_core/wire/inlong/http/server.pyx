"""A report as a server judges it: message, service, method, path, content type, names, body, in this order.

What is accepted is stored as one record, whatever ``cnt`` says: an InLongMsg of version 1.

Locality: server loop.  Locks: none.
"""

from libc.string cimport memchr, memcmp, memcpy

from dataproxy._core.base.buf cimport Buf, buf_put_be32, buf_put_decimal, buf_put_text, buf_reserve
from dataproxy._core.base.slice cimport Slice, slice_is, slice_of, slice_text
from dataproxy._core.base.status cimport ST_LIMIT, ST_NO_MEMORY, ST_OK
from dataproxy._core.base.text cimport is_utf8, read_decimal, utf8_size
from dataproxy._core.wire.api cimport REQ_REPLY, REQ_STORE, request_begin
from dataproxy._core.wire.inlong.attrs cimport attr_is
from dataproxy._core.wire.inlong.container cimport (
    GroupPlace, close_group_text, open_group_text, put_container_head, put_container_magic, put_payload, put_text,
)
from dataproxy._core.wire.inlong.http.answer cimport (
    CODE_BLANK, CODE_CLOSED, CODE_DECODE, CODE_METHOD, CODE_NO_BODY, CODE_NO_GROUP, CODE_NO_STREAM, CODE_NOT_READY,
    CODE_PATH, CODE_TOPIC, CODE_TYPE, code_closes, put_answer, put_too_large,
)
from dataproxy._core.wire.inlong.http.form cimport (
    FORM_AUDIT, FORM_BODY, FORM_CALLBACK, FORM_CNT, FORM_DT, FORM_GROUP, FORM_STREAM, Form, form_clear, form_read,
    form_value,
)
from dataproxy._core.wire.inlong.http.head cimport Head, head_read, message_body, message_size

cdef enum:
    VERSION = 1             # of the stored container
    CALLBACK_MOST = 128


ctypedef struct Report:     # one request on its way through the checks
    const ServerProfile* profile
    Request* out
    const uint8_t* p
    size_t n
    int64_t now_ms
    Head head
    Form form
    Slice path
    Slice query


cdef int serve_request(
    const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out,
) noexcept nogil:
    """Judge one whole request, or what came in the place of one; ``out`` is filled in any case."""
    cdef Report r
    cdef size_t size = 0
    cdef size_t most = n if profile.max_frame == 0 or n < profile.max_frame else profile.max_frame
    cdef int status
    request_begin(out)
    out.action = REQ_REPLY
    r.profile = profile
    r.out = out
    r.p = p
    r.n = n
    r.now_ms = now_ms
    form_clear(&r.form)
    status = head_read(p, n, &r.head)
    if status == ST_OK:
        status = message_size(p, n, most, &r.head, &size)
        if status == ST_LIMIT:
            out.closes = True
            return put_too_large(&out.reply)
    if status != ST_OK or r.head.answer:
        return _refuse(&r, CODE_DECODE, slice_text(b"Decode request failure"))
    _split_target(&r)
    out.heartbeat = slice_is(r.path, b"/dataproxy/heartbeat")
    return _judge(&r)


cdef void _split_target(Report* r) noexcept nogil:
    """Find path and query in the request's target, which names a host as well if a proxy asks."""
    cdef Slice target = r.head.target
    cdef const uint8_t* mark
    if target.n > 7 and memcmp(target.p, <const char*>b"http://", 7) == 0:
        mark = <const uint8_t*>memchr(target.p + 7, 47, target.n - 7)
        target = slice_of(mark, target.n - <size_t>(mark - target.p)) if mark != NULL else slice_of(b"/", 1)
    mark = <const uint8_t*>memchr(target.p, 63, target.n)
    r.path = target
    r.query = slice_of(NULL, 0)
    if mark != NULL:
        r.path.n = <size_t>(mark - target.p)
        r.query = slice_of(mark + 1, target.n - r.path.n - 1)


cdef int _judge(Report* r) noexcept nogil:
    """Check what the whole request must be before its parameters are read."""
    cdef int code = r.profile.service_code
    cdef bint post = slice_is(r.head.method, b"POST")
    cdef bint get = slice_is(r.head.method, b"GET")
    if code == CODE_CLOSED:
        return _refuse(r, code, slice_text(b"Service closed"))
    if code == CODE_NOT_READY:
        return _refuse(r, code, slice_text(b"Service sink not ready"))
    if code != 0 and not r.out.heartbeat:
        return _refuse(r, code, slice_of(NULL, 0))
    if not post and not get:
        return _refuse(r, CODE_METHOD, slice_text(b"Only support [GET, POST] methods"))
    if r.profile.compat and slice_is(r.path, b"/favicon.ico"):
        return ST_OK            # no answer at all: the connection hangs
    if not r.out.heartbeat and not slice_is(r.path, b"/dataproxy/message"):
        return _refuse(r, CODE_PATH, slice_text(
            b"Only support [/dataproxy/heartbeat, /dataproxy/message] paths!"))
    if r.out.heartbeat:
        return _succeed(r, slice_of(NULL, 0))
    if post and r.head.typed and not _is_form(r):
        return _refuse(r, CODE_TYPE, slice_text(
            b"Only support [application/x-www-form-urlencoded] content type!"))
    return _judge_form(r, post and r.head.typed)


cdef bint _is_form(Report* r) noexcept nogil:
    """Tell whether the content type is the one of forms; the reference server permits no parameter behind it."""
    cdef Slice given = r.head.content_type
    cdef const uint8_t* mark = NULL
    if not r.profile.compat and given.n > 0:
        mark = <const uint8_t*>memchr(given.p, 59, given.n)
    if mark != NULL:
        given.n = <size_t>(mark - given.p)
        while given.n > 0 and (given.p[given.n - 1] == 32 or given.p[given.n - 1] == 9):
            given.n -= 1
    return attr_is(given, b"application/x-www-form-urlencoded", 33)


cdef int _judge_form(Report* r, bint with_body) noexcept nogil:
    """Read the parameters, of the query first, and check them."""
    cdef Buf* store = &r.out.scratch
    cdef Slice body
    cdef int status = form_read(&r.form, r.query, store)
    if status == ST_OK and with_body:
        # A body in chunks is put together in the buffer of the entry, which is written later.
        status = message_body(r.p, r.n, &r.head, &r.out.entry, &body)
        if status == ST_OK:
            status = form_read(&r.form, body, store)
        r.out.entry.n = 0
    if status == ST_NO_MEMORY:
        return status
    if status != ST_OK:
        return _refuse(r, CODE_DECODE, slice_text(b"Decode request failure"))
    r.out.group = form_value(&r.form, store, FORM_GROUP)
    r.out.stream = form_value(&r.form, store, FORM_STREAM)
    if _is_blank(r.out.group):
        return _refuse(r, CODE_NO_GROUP, slice_text(b"Field groupId must exist and not blank!"))
    if _is_blank(r.out.stream):
        return _refuse(r, CODE_NO_STREAM, slice_text(b"Field streamId must exist and not blank!"))
    if not _is_known(r):
        return _refuse_topic(r)
    body = form_value(&r.form, store, FORM_BODY)
    if not r.form.has[<int>FORM_BODY]:
        return _refuse(r, CODE_NO_BODY, slice_text(b"Field body is not exist!"))
    if _is_blank(body):
        return _refuse(r, CODE_BLANK, slice_text(b"Field body is Blank!"))
    return _accept(r, body)


cdef bint _is_blank(Slice s) noexcept nogil:
    cdef size_t i
    for i in range(s.n):
        if not (s.p[i] == 32 or 9 <= s.p[i] <= 13 or 28 <= s.p[i] <= 31):
            return False
    return True


cdef bint _is_known(Report* r) noexcept nogil:
    """Tell whether the topic is known.  No topic has a name that the stored attributes could not hold."""
    cdef Slice group = r.out.group, stream = r.out.stream
    if _is_marked(group) or _is_marked(stream) or not is_utf8(group) or not is_utf8(stream):
        return False
    return r.profile.known == NULL or r.profile.known(r.profile.context, group, stream)


cdef bint _is_marked(Slice name) noexcept nogil:
    """Tell whether a name holds an "&" or an equal sign."""
    return memchr(name.p, 38, name.n) != NULL or memchr(name.p, 61, name.n) != NULL


cdef int _refuse_topic(Report* r) noexcept nogil:
    cdef Buf* words = &r.out.entry
    cdef int status
    if buf_reserve(words, 3 * (r.out.group.n + r.out.stream.n) + 64) != ST_OK:
        return ST_NO_MEMORY
    buf_put_text(words, b"Topic not configured for groupId(")
    words.n += _copy_text(words.p + words.n, r.out.group)
    buf_put_text(words, b"),streamId(,")
    words.n += _copy_text(words.p + words.n, r.out.stream)
    buf_put_text(words, b")")
    status = _refuse(r, CODE_TOPIC, slice_of(words.p, words.n))
    words.n = 0
    return status


cdef Slice _callback(Report* r) noexcept nogil:
    """Return the name of the function that the answer calls; strict takes only names, since a page runs what comes."""
    cdef Slice name = form_value(&r.form, &r.out.scratch, FORM_CALLBACK)
    cdef size_t i
    cdef uint8_t c
    if r.profile.compat:
        return name
    if name.n > CALLBACK_MOST:
        return slice_of(NULL, 0)
    for i in range(name.n):
        c = name.p[i]
        if not (48 <= c <= 57 or 65 <= c <= 90 or 97 <= c <= 122 or c == 36 or c == 46 or c == 95):
            return slice_of(NULL, 0)
    return name


cdef int _refuse(Report* r, int code, Slice text) noexcept nogil:
    r.out.action = REQ_REPLY
    r.out.code = code
    r.out.records = 0
    r.out.closes = code_closes(code) or r.head.closes
    return put_answer(&r.out.reply, code, text, _callback(r), r.profile.compat, r.out.closes)


cdef int _succeed(Report* r, Slice callback) noexcept nogil:
    r.out.closes = r.head.closes
    return put_answer(&r.out.reply, 0, slice_text(b"Ok"), callback, False, r.out.closes)


cdef int _accept(Report* r, Slice body) noexcept nogil:
    cdef int status = _store(r, body)
    if status == ST_LIMIT:      # the names do not fit into the attributes
        r.out.entry.n = 0
        return _refuse_topic(r)
    if status != ST_OK:
        return status
    r.out.action = REQ_STORE
    r.out.records = 1
    return _succeed(r, _callback(r))


cdef int _store(Report* r, Slice body) noexcept nogil:
    """Write the container: one group with one record."""
    cdef Buf* out = &r.out.entry
    cdef Buf* scratch = &r.out.scratch
    cdef GroupPlace place
    cdef size_t at, start = scratch.n, body_at = <size_t>(body.p - scratch.p)
    cdef int64_t dt = 0
    cdef int status
    if not read_decimal(form_value(&r.form, scratch, FORM_DT), &dt):
        dt = r.now_ms
    r.out.data_time_ms = dt
    out.n = 0
    status = put_container_head(out, VERSION, r.now_ms, 1, 1)
    if status == ST_OK:
        status = open_group_text(out, &place)
    if status == ST_OK:
        status = _put_attrs(r, dt)
    if status == ST_OK:
        status = close_group_text(out, &place)
    if status != ST_OK:
        return status
    if buf_put_be32(scratch, <unsigned int>body.n) != ST_OK or buf_reserve(scratch, 3 * body.n) != ST_OK:
        return ST_NO_MEMORY
    body.p = scratch.p + body_at            # the buffer may have moved; so may the names
    r.out.group = form_value(&r.form, scratch, FORM_GROUP)
    r.out.stream = form_value(&r.form, scratch, FORM_STREAM)
    at = scratch.n
    if r.profile.compat:
        scratch.n = at + _copy_text(scratch.p + at, body)
        _store_size(scratch.p + start, scratch.n - at)
    else:
        memcpy(scratch.p + at, body.p, body.n)
        scratch.n = at + body.n
    status = put_payload(out, slice_of(scratch.p + start, scratch.n - start), r.profile.compress_entries)
    return status if status != ST_OK else put_container_magic(out, VERSION)


cdef void _store_size(uint8_t* at, size_t n) noexcept nogil:
    at[0] = <uint8_t>(n >> 24)
    at[1] = <uint8_t>(n >> 16 & 255)
    at[2] = <uint8_t>(n >> 8 & 255)
    at[3] = <uint8_t>(n & 255)


cdef size_t _copy_text(uint8_t* to, Slice text) noexcept nogil:
    """Copy a text; what is not UTF-8 becomes U+FFFD, as in the reference server, which decodes it."""
    cdef size_t i = 0, size
    cdef uint8_t* at = to
    while i < text.n:
        size = utf8_size(text.p + i, text.n - i)
        if size == 0:
            memcpy(at, <const char*>b"\xef\xbf\xbd", 3)
            at += 3
            i += 1
            continue
        memcpy(at, text.p + i, size)
        at += size
        i += size
    return <size_t>(at - to)


cdef int _put_attrs(Report* r, int64_t dt) noexcept nogil:
    """Append the stored attributes; times in milliseconds."""
    cdef Buf* out = &r.out.entry
    cdef const Buf* store = &r.out.scratch
    cdef int64_t number = 0
    cdef int status = buf_put_text(out, b"groupId=")
    status |= put_text(out, form_value(&r.form, store, FORM_GROUP))
    status |= buf_put_text(out, b"&streamId=")
    status |= put_text(out, form_value(&r.form, store, FORM_STREAM))
    status |= _put_number(out, b"&dt=", dt)
    status |= buf_put_text(out, b"&clientIp=")
    status |= put_text(out, r.profile.peer)
    if not read_decimal(form_value(&r.form, store, FORM_CNT), &number):
        number = 1
    status |= _put_number(out, b"&cnt=", number)
    status |= _put_number(out, b"&rt=", r.now_ms)
    status |= _put_number(out, b"&rtms=", r.now_ms)
    if read_decimal(form_value(&r.form, store, FORM_AUDIT), &number):
        status |= _put_number(out, b"&auditVersion=", number)
    return ST_OK if status == ST_OK else ST_NO_MEMORY


cdef int _put_number(Buf* out, const char* key, int64_t value) noexcept nogil:
    return buf_put_text(out, key) | buf_put_decimal(out, value)
