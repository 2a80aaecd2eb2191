"""Frames written into a buffer, with a header of either form.

``write_begin``, fields, ``write_header``, then the body's bytes into the buffer, ``write_end``.  The first thing that
goes wrong stays, and ``write_end`` tells it.

Locality: owner of the buffer.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport (
    Buf, buf_put, buf_put_be16, buf_put_be32, buf_put_decimal, buf_put_slice, buf_put_text, buf_put_u8, buf_reserve,
)
from dataproxy._core.base.slice cimport Slice, slice_of, slice_text
from dataproxy._core.base.status cimport ST_INVALID, ST_LIMIT, ST_OK
from dataproxy._core.base.text cimport write_decimal
from dataproxy._core.plat.endian cimport store_be32
from dataproxy._core.wire.rocketmq.const cimport AT_MARK, FORM_JSON, FRAME_HEAD, LENGTH_MOST
from dataproxy._core.wire.rocketmq.header cimport Command, language_name
from dataproxy._core.wire.rocketmq.jsontext cimport json_escaped


cdef inline void _keep(CommandWriter* w, int status) noexcept nogil:
    if w.status == ST_OK:
        w.status = status


cdef void _quoted(CommandWriter* w, Slice text) noexcept nogil:
    cdef Buf* out = w.out
    if text.n > LENGTH_MOST:
        _keep(w, ST_LIMIT)
        return
    _keep(w, buf_reserve(out, 2 + 6 * text.n))
    if w.status == ST_OK:
        out.n += json_escaped(text, out.p + out.n)


cdef void _json_member(CommandWriter* w, const char* before, int64_t value) noexcept nogil:
    _keep(w, buf_put_text(w.out, before))
    _keep(w, buf_put_decimal(w.out, value))


cdef void write_begin(CommandWriter* w, Buf* out, const Command* command) noexcept nogil:
    """Begin a frame at the end of ``out``; of ``command`` everything counts but its fields and its body."""
    w.out = out
    w.command = command
    w.start = out.n
    w.status = buf_reserve(out, 128)
    _keep(w, buf_put(out, b"\0\0\0\0\0\0\0\0", FRAME_HEAD))
    if command.form == FORM_JSON:
        _json_member(w, b'{"code":', command.code)
        _keep(w, buf_put_text(out, b',"extFields":{' if command.extended else b""))
    else:
        if not -0x8000 <= command.code <= 0x7FFF or not -0x8000 <= command.version <= 0x7FFF:
            _keep(w, ST_INVALID)
        _keep(w, buf_put_be16(out, <uint16_t>command.code))
        _keep(w, buf_put_u8(out, <uint8_t>(command.language if command.language >= 0 else 7)))
        _keep(w, buf_put_be16(out, <uint16_t>command.version))
        _keep(w, buf_put_be32(out, <uint32_t>command.opaque))
        _keep(w, buf_put_be32(out, <uint32_t>command.flag))
        _keep(w, buf_put_be32(out, <uint32_t>command.remark.n))
        _keep(w, buf_put_slice(out, command.remark))
        _keep(w, buf_put_be32(out, 0))
    w.fields_at = out.n


cdef void write_field(CommandWriter* w, Slice name, Slice value) noexcept nogil:
    """Write a field; ``Command.extended`` says that there are any."""
    if w.status != ST_OK:
        return
    if not w.command.extended or name.n > 0x7FFF or value.n > LENGTH_MOST:
        w.status = ST_INVALID
        return
    if w.command.form == FORM_JSON:
        if w.out.n > w.fields_at:
            _keep(w, buf_put_u8(w.out, 44))
        _quoted(w, name)
        _keep(w, buf_put_u8(w.out, 58))
        _quoted(w, value)
        return
    _keep(w, buf_put_be16(w.out, <uint16_t>name.n))
    _keep(w, buf_put_slice(w.out, name))
    _keep(w, buf_put_be32(w.out, <uint32_t>value.n))
    _keep(w, buf_put_slice(w.out, value))


cdef void write_text(CommandWriter* w, const char* name, Slice value) noexcept nogil:
    """Write a field that is a text."""
    write_field(w, slice_text(name), value)


cdef void write_number(CommandWriter* w, const char* name, int64_t value) noexcept nogil:
    """Write a field that is a number."""
    cdef uint8_t digits[21]
    cdef bint negative = value < 0
    digits[0] = 45
    write_field(w, slice_text(name), slice_of(digits + (not negative), negative + write_decimal(
        digits + 1, (~<uint64_t>value) + 1 if negative else <uint64_t>value)))


cdef void write_bool(CommandWriter* w, const char* name, bint value) noexcept nogil:
    """Write a field that is true or false."""
    write_field(w, slice_text(name), slice_text(b"true" if value else b"false"))


cdef void write_header(CommandWriter* w) noexcept nogil:
    """End the header; the body follows."""
    cdef const Command* command = w.command
    cdef size_t size
    if command.form == FORM_JSON:
        _keep(w, buf_put_text(w.out, b"}" if command.extended else b""))
        _json_member(w, b',"flag":', command.flag)
        _keep(w, buf_put_text(w.out, b',"language":"'))
        _keep(w, buf_put_slice(w.out, language_name(command.language)))
        _json_member(w, b'","opaque":', command.opaque)
        if command.remark.n:
            _keep(w, buf_put_text(w.out, b',"remark":'))
            _quoted(w, command.remark)
        _keep(w, buf_put_text(w.out, b',"serializeTypeCurrentRPC":"JSON"'))
        _json_member(w, b',"version":', command.version)
        _keep(w, buf_put_u8(w.out, 125))
    elif w.status == ST_OK:
        store_be32(w.out.p + w.fields_at - 4, <uint32_t>(w.out.n - w.fields_at))
    size = w.out.n - w.start - FRAME_HEAD
    if size > 0xFFFFFF:
        _keep(w, ST_LIMIT)
    if w.status == ST_OK:
        store_be32(w.out.p + w.start + AT_MARK, <uint32_t>command.form << 24 | <uint32_t>size)


cdef int write_end(CommandWriter* w) noexcept nogil:
    """End the frame behind its body; ST_OK, or the frame is gone: ST_NO_MEMORY, ST_INVALID, ST_LIMIT (over 16 MiB)."""
    cdef size_t length = w.out.n - w.start - AT_MARK
    if length > LENGTH_MOST:
        _keep(w, ST_LIMIT)
    if w.status == ST_OK:
        store_be32(w.out.p + w.start, <uint32_t>length)
    else:
        w.out.n = w.start
    return w.status
