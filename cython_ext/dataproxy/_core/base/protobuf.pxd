"""Fields of protobuf messages: written at a pointer, read with every length checked.

Locality: owner of the bytes.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport Slice, slice_of


cdef enum FieldKind:        # protobuf's wire types; groups are none of ours
    FK_VARINT = 0
    FK_FIXED64 = 1
    FK_BYTES = 2
    FK_FIXED32 = 5


ctypedef struct Field:
    uint32_t number
    int kind                # FieldKind
    uint64_t value          # with FK_VARINT
    Slice bytes             # with FK_BYTES


ctypedef struct Fields:     # a message that is read field by field
    const uint8_t* at
    const uint8_t* end
    bint broken             # it is no message


cdef inline size_t varint_size(uint64_t v) noexcept nogil:
    """Return the bytes that ``v`` takes."""
    cdef size_t n = 1
    while v >= 0x80:
        v >>= 7
        n += 1
    return n


cdef inline uint8_t* put_varint(uint8_t* to, uint64_t v) noexcept nogil:
    """Write ``v`` and return its end; there is room for ten bytes."""
    while v >= 0x80:
        to[0] = <uint8_t>(v | 0x80)
        v >>= 7
        to += 1
    to[0] = <uint8_t>v
    return to + 1


cdef inline uint8_t* put_number(uint8_t* to, uint32_t field, uint64_t v) noexcept nogil:
    """Write a varint field; fields up to 15."""
    to[0] = <uint8_t>(field << 3 | FK_VARINT)
    return put_varint(to + 1, v)


cdef inline uint8_t* put_head(uint8_t* to, uint32_t field, size_t n) noexcept nogil:
    """Write tag and length of a field of ``n`` bytes; fields up to 15."""
    to[0] = <uint8_t>(field << 3 | FK_BYTES)
    return put_varint(to + 1, n)


cdef inline uint8_t* put_bytes(uint8_t* to, uint32_t field, Slice s) noexcept nogil:
    """Write a field of bytes; fields up to 15."""
    to = put_head(to, field, s.n)
    if s.n:
        memcpy(to, s.p, s.n)
    return to + s.n


cdef inline size_t bytes_size(size_t n) noexcept nogil:
    """Return what a field of ``n`` bytes takes; fields up to 15."""
    return 1 + varint_size(n) + n


cdef inline void fields_open(Fields* f, Slice message) noexcept nogil:
    """Begin to read a message."""
    f.at = message.p
    f.end = message.p + message.n
    f.broken = False


cdef inline bint takes_head(Fields* f, uint32_t field, int kind) noexcept nogil:
    """Take the tag of a field, if it is what comes next; fields up to 15."""
    if f.at >= f.end or f.at[0] != (field << 3 | <uint32_t>kind):
        return False
    f.at += 1
    return True


cdef inline bint takes_varint(Fields* f, uint64_t* v) noexcept nogil:
    """Take a number; False if it is not whole."""
    cdef const uint8_t* at = f.at               # what stands in memory could be anybody's for the compiler
    cdef const uint8_t* end = f.end
    cdef uint64_t value = 0
    cdef uint8_t byte = 0x80
    cdef int shift = 0
    while byte >= 0x80 and at < end and shift < 70:
        byte = at[0]
        value |= <uint64_t>(byte & 0x7F) << shift if shift < 64 else 0
        at += 1
        shift += 7
    f.at = at
    v[0] = value
    return byte < 0x80


cdef inline bint _skip(Fields* f, size_t n) noexcept nogil:
    if <size_t>(f.end - f.at) < n:
        return False
    f.at += n
    return True


cdef inline bint fields_next(Fields* f, Field* out) noexcept nogil:
    """Read the next field; False at the end, or where the message is broken."""
    cdef uint64_t tag = 0, n = 0
    cdef bint good = False
    if f.at >= f.end:
        return False
    out.bytes = slice_of(NULL, 0)
    out.value = 0
    if takes_varint(f, &tag) and 0 < tag >> 3 <= 0x1FFFFFFF:
        out.number = <uint32_t>(tag >> 3)
        out.kind = <int>(tag & 7)
        if out.kind == FK_VARINT:
            good = takes_varint(f, &out.value)
        elif out.kind == FK_BYTES:
            good = takes_varint(f, &n) and n <= <uint64_t>(f.end - f.at)
            if good:
                out.bytes = slice_of(f.at, <size_t>n)
                f.at += n
        elif out.kind == FK_FIXED64:
            good = _skip(f, 8)
        elif out.kind == FK_FIXED32:
            good = _skip(f, 4)
    f.broken = not good
    return good


cdef inline bint take_delimited(Slice* rest, Slice* message) noexcept nogil:
    """Take a message that stands behind its length from the start of ``rest``; False if it is not whole."""
    cdef Fields f
    cdef uint64_t n = 0
    fields_open(&f, rest[0])
    if not takes_varint(&f, &n) or n > <uint64_t>(f.end - f.at):
        return False
    message[0] = slice_of(f.at, <size_t>n)
    rest[0] = slice_of(f.at + n, <size_t>(f.end - f.at) - <size_t>n)
    return True
