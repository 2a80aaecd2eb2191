"""Text inside of other text: JSON strings, base64, escaped delimited text.

Locality: the owner of the buffer, without the GIL.  Locks: none.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport Buf, buf_reserve
from dataproxy._core.base.status cimport ST_INVALID, ST_NO_MEMORY, ST_OK
from dataproxy._core.plat.endian cimport load_be64, store_be64

cdef const char* BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef const char* HEX = b"0123456789ABCDEF"

# What a byte is inside of a JSON string: itself, the letter after a backslash, or one of these.
cdef enum:
    AS_IS = 0
    AS_CODE = 1             # \u00XX
    AS_UTF8 = 2             # the first byte of a longer character, or no character

cdef uint8_t JSON_BYTES[256]

# Eight equal bytes each.
cdef uint64_t ONES = 0x0101010101010101
cdef uint64_t BLANKS = 0x2020202020202020
cdef uint64_t QUOTES = 0x2222222222222222
cdef uint64_t BACKSLASHES = 0x5C5C5C5C5C5C5C5C
cdef uint64_t TOPS = 0x8080808080808080


cdef void _fill_json_bytes() noexcept:
    cdef int i
    for i in range(256):
        JSON_BYTES[i] = AS_CODE if i < 32 else (AS_UTF8 if i >= 128 else AS_IS)
    JSON_BYTES[8] = 98
    JSON_BYTES[9] = 116
    JSON_BYTES[10] = 110
    JSON_BYTES[12] = 102
    JSON_BYTES[13] = 114
    JSON_BYTES[34] = 34
    JSON_BYTES[92] = 92


_fill_json_bytes()


cdef inline bint _continues(const uint8_t* p, const uint8_t* end) noexcept nogil:
    return p < end and p[0] & 0xC0 == 0x80


cdef size_t _character(const uint8_t* p, const uint8_t* end, bint* valid) noexcept nogil:
    """Return the length of the UTF-8 character at ``p``; of a broken one, that of the part that could begin one."""
    cdef uint8_t a = p[0]
    cdef uint8_t low = 0x80, high = 0xBF
    cdef size_t n, i
    valid[0] = False
    if a < 0xC2 or a > 0xF4:
        return 1
    n = 2 if a < 0xE0 else (3 if a < 0xF0 else 4)
    if a == 0xE0:
        low = 0xA0
    elif a == 0xED:
        high = 0x9F
    elif a == 0xF0:
        low = 0x90
    elif a == 0xF4:
        high = 0x8F
    if p + 1 >= end or p[1] < low or p[1] > high:
        return 1
    for i in range(2, n):
        if not _continues(p + i, end):
            return i
    valid[0] = True
    return n


cdef inline bint _all_plain(uint64_t eight) noexcept nogil:
    """Tell whether all of eight bytes stand for themselves in JSON.

    Only the answer for all eight is exact: a byte that does not may give a wrong answer for a higher byte.
    """
    return (eight | (eight - BLANKS) | ((eight ^ QUOTES) - ONES) | ((eight ^ BACKSLASHES) - ONES)) & TOPS == 0


cdef uint8_t* _masked(uint8_t* to, const uint8_t** at, const uint8_t* end) noexcept nogil:
    """Write the character at ``at`` that does not stand for itself, and move behind it; return where it ends."""
    cdef const uint8_t* p = at[0]
    cdef uint8_t kind = JSON_BYTES[p[0]]
    cdef size_t size
    cdef bint valid = False
    if kind == AS_UTF8:
        size = _character(p, end, &valid)
        at[0] = p + size
        if valid:
            memcpy(to, p, size)
            return to + size
        memcpy(to, b"\xef\xbf\xbd", 3)
        return to + 3
    at[0] = p + 1
    to[0] = 92
    if kind == AS_CODE:
        memcpy(to + 1, b"u00", 3)
        to[4] = <uint8_t>HEX[p[0] >> 4]
        to[5] = <uint8_t>HEX[p[0] & 15]
        return to + 6
    to[1] = kind
    return to + 2


cdef int put_json_text(Buf* out, const uint8_t* p, size_t n) noexcept nogil:
    """Append text as a JSON string with its quotes; what is no UTF-8 becomes U+FFFD.  ST_OK or ST_NO_MEMORY."""
    cdef const uint8_t* end = p + n
    cdef uint8_t* to
    cdef uint64_t eight
    cdef size_t left
    if room(out, 6 * n + 10) != ST_OK:
        return ST_NO_MEMORY
    to = out.p + out.n
    to[0] = 34
    to += 1
    while p < end:
        left = <size_t>(end - p)
        if left >= 8:
            eight = load_be64(p)
            if _all_plain(eight):
                store_be64(to, eight)
                to += 8
                p += 8
                continue
        elif n >= 8:                        # the rest of the last eight, filled up with blanks
            eight = load_be64(end - 8) << (64 - 8 * left) | BLANKS >> (8 * left)
            if _all_plain(eight):
                store_be64(to, eight)
                to += left
                break
        while p < end and JSON_BYTES[p[0]] == AS_IS:
            to[0] = p[0]
            to += 1
            p += 1
        if p < end:
            to = _masked(to, &p, end)
    to[0] = 34
    out.n = <size_t>(to + 1 - out.p)
    return ST_OK


cdef int put_base64(Buf* out, const uint8_t* p, size_t n) noexcept nogil:
    """Append bytes as base64 with padding; ST_OK or ST_NO_MEMORY."""
    cdef uint8_t* to
    cdef uint32_t v
    cdef size_t i = 0
    if buf_reserve(out, n // 3 * 4 + 4) != ST_OK:
        return ST_NO_MEMORY
    to = out.p + out.n
    while i < n:
        v = <uint32_t>p[i] << 16
        if i + 1 < n:
            v |= <uint32_t>p[i + 1] << 8
        if i + 2 < n:
            v |= p[i + 2]
        to[0] = <uint8_t>BASE64[v >> 18]
        to[1] = <uint8_t>BASE64[v >> 12 & 63]
        to[2] = <uint8_t>BASE64[v >> 6 & 63] if i + 1 < n else 61
        to[3] = <uint8_t>BASE64[v & 63] if i + 2 < n else 61
        to += 4
        i += 3
    out.n = <size_t>(to - out.p)
    return ST_OK


cdef inline uint64_t _any_of(uint64_t eight, const Marks* marks) noexcept nogil:
    """Return zero if none of eight bytes is special; a byte above 127 may look so."""
    cdef uint64_t found = (eight ^ marks.eight[0]) - ONES
    found |= (eight ^ marks.eight[1]) - ONES
    found |= (eight ^ marks.eight[2]) - ONES
    found |= (eight ^ marks.eight[3]) - ONES
    found |= (eight ^ marks.eight[4]) - ONES
    return (found | eight) & TOPS


cdef bint put_unmarked(Buf* out, const uint8_t* p, size_t n, const Marks* marks) noexcept nogil:
    """Append text without special characters; False, and nothing is appended, if it may have one.

    False also without memory.
    """
    cdef size_t i = 0
    cdef uint64_t eight
    cdef uint8_t* to
    if room(out, n + SPARE) != ST_OK:
        return False
    to = out.p + out.n
    while i + 8 <= n:
        memcpy(&eight, p + i, 8)
        if _any_of(eight, marks):
            return False
        memcpy(to + i, &eight, 8)
        i += 8
    while i < n:
        if marks.special[p[i]]:
            return False
        to[i] = p[i]
        i += 1
    out.n += n
    return True


cdef int escape_from(Buf* out, size_t start, const Marks* marks) noexcept nogil:
    """Mask the special characters of what was appended from ``start`` on.

    The escape character is put in front of each.  If there is none, each is put between quote characters; then a quote
    character itself cannot be masked.  ST_OK, ST_NO_MEMORY, or ST_INVALID for text that cannot be represented.
    """
    cdef size_t extra = 0, i, each = 1 if marks.escape >= 0 else 2
    cdef uint8_t* from_
    cdef uint8_t* to
    cdef uint8_t c
    for i in range(start, out.n):
        if marks.special[out.p[i]]:
            if marks.refused[out.p[i]]:
                return ST_INVALID
            extra += each
    if extra == 0:
        return ST_OK
    if buf_reserve(out, extra) != ST_OK:
        return ST_NO_MEMORY
    from_ = out.p + out.n
    to = from_ + extra
    out.n += extra
    while to > from_:
        from_ -= 1
        to -= 1
        c = from_[0]
        if marks.special[c] and marks.escape < 0:
            to[0] = <uint8_t>marks.quote
            to -= 1
        to[0] = c
        if marks.special[c]:
            to -= 1
            to[0] = <uint8_t>(marks.escape if marks.escape >= 0 else marks.quote)
    return ST_OK
