"""Headers of both forms, read: what every command has, and its fields.

``read_command`` checks a whole header, so that reading its fields cannot fail.  Values of JSON that are numbers count
as their text, and texts that are numbers count as numbers: clients write either.

Locality: owner of the scratch memory.  Locks: none.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from dataproxy._core.base.buf cimport Buf, buf_reserve
from dataproxy._core.base.slice cimport Slice, slice_is, slice_of, slice_text
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_PROTOCOL
from dataproxy._core.base.text cimport is_utf8, read_decimal
from dataproxy._core.plat.endian cimport load_be16, load_be32
from dataproxy._core.wire.rocketmq.const cimport (
    BINARY_AT_CODE, BINARY_AT_FLAG, BINARY_AT_LANGUAGE, BINARY_AT_OPAQUE, BINARY_AT_REMARK, BINARY_AT_VERSION,
    BINARY_LEAST, FORM_JSON, LANGUAGE_UNKNOWN, LANGUAGES,
)
from dataproxy._core.wire.rocketmq.frame cimport Frame, split_frame
from dataproxy._core.wire.rocketmq.jsontext cimport (
    JSON_ARRAY, JSON_NULL, JSON_NUMBER, JSON_OBJECT, JSON_TEXT, JsonMembers, JsonValue,
    json_next, json_open, json_unescape,
)

cdef const char* NAMES[LANGUAGES]
NAMES[0], NAMES[1], NAMES[2], NAMES[3], NAMES[4] = b"JAVA", b"CPP", b"DOTNET", b"PYTHON", b"DELPHI"
NAMES[5], NAMES[6], NAMES[7], NAMES[8], NAMES[9] = b"ERLANG", b"RUBY", b"OTHER", b"HTTP", b"GO"
NAMES[10], NAMES[11], NAMES[12] = b"PHP", b"OMS", b"RUST"


cdef Slice language_name(int32_t language) noexcept nogil:
    """Return the name of a language, ``OTHER`` for one that is unknown."""
    return slice_text(NAMES[language if 0 <= language < LANGUAGES else 7])


cdef inline Slice _meant(Buf* scratch, const JsonValue* value) noexcept nogil:
    """Return what a value means as text; what had escapes lies behind the bytes in use of ``scratch``, which has room.

    All texts of a header together have fewer bytes than the header, for which room was made.
    """
    cdef uint8_t* to = scratch.p + scratch.n
    if value.kind == JSON_TEXT and value.escaped:
        return slice_of(to, json_unescape(value.raw, to))
    return value.raw


cdef inline Slice _kept(Buf* scratch, const JsonValue* value) noexcept nogil:
    cdef Slice text = _meant(scratch, value)
    if value.kind == JSON_TEXT and value.escaped:
        scratch.n += text.n
    return text


cdef bint _number(Buf* scratch, const JsonValue* value, int32_t* out) noexcept nogil:
    """Read a number, also one that is a text; null leaves what is there."""
    cdef int64_t number = 0
    if value.kind == JSON_NULL:
        return True
    if value.kind != JSON_NUMBER and value.kind != JSON_TEXT or not read_decimal(_meant(scratch, value), &number):
        return False
    out[0] = <int32_t>number
    return -0x80000000 <= number <= 0x7FFFFFFF


cdef void _language(Buf* scratch, const JsonValue* value, int32_t* out) noexcept nogil:
    cdef int32_t i
    cdef int64_t number = 0
    cdef Slice name
    if value.kind == JSON_NULL:
        return
    out[0] = LANGUAGE_UNKNOWN
    if value.kind == JSON_NUMBER and read_decimal(value.raw, &number) and 0 <= number < LANGUAGES:
        out[0] = <int32_t>number
    elif value.kind == JSON_TEXT:
        name = _meant(scratch, value)
        for i in range(LANGUAGES):
            if slice_is(name, NAMES[i]):
                out[0] = i


cdef bint _member(Command* out, Slice name, const JsonValue* value) noexcept nogil:
    """Take one member of the header; False: it cannot be what it should."""
    if slice_is(name, b"code"):
        return _number(out.scratch, value, &out.code)
    if slice_is(name, b"flag"):
        return _number(out.scratch, value, &out.flag)
    if slice_is(name, b"version"):
        return _number(out.scratch, value, &out.version)
    if slice_is(name, b"opaque"):
        out.numbered = value.kind != JSON_NULL
        return _number(out.scratch, value, &out.opaque)
    if slice_is(name, b"language"):
        _language(out.scratch, value, &out.language)
    elif slice_is(name, b"remark"):
        if value.kind == JSON_OBJECT or value.kind == JSON_ARRAY:
            return False
        out.remark = slice_of(NULL, 0) if value.kind == JSON_NULL else _kept(out.scratch, value)
    elif slice_is(name, b"extFields"):
        out.extended = value.kind == JSON_OBJECT
        out.fields = value.raw if out.extended else slice_of(NULL, 0)
        return value.kind == JSON_NULL or out.extended and value.flat       # texts, numbers, words or null
    return True


cdef int _read_json(Slice header, Command* out) noexcept nogil:
    cdef JsonMembers members
    cdef JsonValue key, value
    if buf_reserve(out.scratch, header.n) != ST_OK:
        return ST_NO_MEMORY
    if not is_utf8(header):
        return ST_PROTOCOL
    json_open(&members, header)
    while json_next(&members, &key, &value):
        if not _member(out, _meant(out.scratch, &key), &value):
            return ST_PROTOCOL
    return ST_PROTOCOL if members.broken else ST_OK


cdef inline bint _pair(Slice* rest, Slice* name, Slice* value) noexcept nogil:
    """Take one field of the binary form; False: it is not whole."""
    cdef const uint8_t* p = rest.p
    cdef size_t n = rest.n
    cdef size_t size
    if n < 2:
        return False
    size = load_be16(p)
    if size > 0x7FFF or n - 2 < size + 4:
        return False
    name[0] = slice_of(p + 2, size)
    p += 2 + size
    n -= 2 + size
    size = load_be32(p)
    if size > n - 4:
        return False
    value[0] = slice_of(p + 4, size)
    rest[0] = slice_of(p + 4 + size, n - 4 - size)
    return True


cdef int _read_binary(Slice header, Command* out) noexcept nogil:
    cdef const uint8_t* p = header.p
    cdef size_t left, size
    cdef Slice rest, name, value
    if header.n < BINARY_LEAST:
        return ST_PROTOCOL
    out.code = <int16_t>load_be16(p + BINARY_AT_CODE)
    out.language = p[BINARY_AT_LANGUAGE]
    if out.language >= LANGUAGES:
        out.language = LANGUAGE_UNKNOWN
    out.version = <int16_t>load_be16(p + BINARY_AT_VERSION)
    out.opaque = <int32_t>load_be32(p + BINARY_AT_OPAQUE)
    out.numbered = True
    out.flag = <int32_t>load_be32(p + BINARY_AT_FLAG)
    size = load_be32(p + BINARY_AT_REMARK)
    left = header.n - BINARY_LEAST
    if size > left:
        return ST_PROTOCOL
    p += BINARY_AT_REMARK + 4
    out.remark = slice_of(p, size)
    p += size
    left -= size
    size = load_be32(p)
    if size > left:
        return ST_PROTOCOL
    out.fields = rest = slice_of(p + 4, size)
    out.extended = size > 0
    while rest.n:
        if not _pair(&rest, &name, &value):
            return ST_PROTOCOL
    return ST_OK


cdef int read_command(const uint8_t* p, size_t n, Buf* scratch, Command* out) noexcept nogil:
    """Read the header of a frame that `delimit_frame` found whole; ST_OK, ST_PROTOCOL or ST_NO_MEMORY.

    ``scratch`` is the command's until it is read no more; what was in it before is forgotten.
    """
    cdef Frame frame = split_frame(p, n)
    cdef int status
    scratch.n = 0
    out.form = frame.form
    out.code = out.language = out.version = out.opaque = out.flag = 0
    out.numbered = out.extended = False
    out.remark = out.fields = slice_of(NULL, 0)
    out.body = frame.body
    out.scratch = scratch
    status = _read_json(frame.header, out) if frame.form == FORM_JSON else _read_binary(frame.header, out)
    out.mark = scratch.n
    return status


cdef void fields_begin(CommandFields* f, Command* command) noexcept nogil:
    """Begin to read the fields; slices of an earlier reading keep their bytes."""
    f.command = command
    f.rest = command.fields
    command.scratch.n = command.mark
    if command.form == FORM_JSON and command.extended:
        json_open(&f.members, command.fields)


cdef bint fields_step(CommandFields* f, Slice* name, Slice* value) noexcept nogil:
    """Read the next field; False: there is none.  A name may come twice: the last one counts.  null is no field."""
    cdef JsonValue key, read
    cdef Buf* scratch = f.command.scratch
    if not f.command.extended:
        return False
    if f.command.form != FORM_JSON:
        return f.rest.n > 0 and _pair(&f.rest, name, value)
    while json_next(&f.members, &key, &read):
        if read.kind != JSON_NULL:
            name[0] = _kept(scratch, &key)
            value[0] = _kept(scratch, &read)
            return True
    return False
