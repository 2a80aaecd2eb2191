"""JSON as headers have it: values found where they lie, with bounds and without objects.

Nothing is believed: every byte that is looked at is there, arrays and objects lie in one another no deeper than
DEPTH_MOST, and what a text costs grows with its bytes alone.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.text cimport utf8_size
from dataproxy._core.wire.rocketmq.const cimport DEPTH_MOST

cdef enum:
    QUOTE = 34
    COMMA = 44
    COLON = 58
    BACKSLASH = 92
    REPLACEMENT = 0xFFFD        # for half a character

cdef const uint64_t ONES = 0x0101010101010101


ctypedef struct Cursor:
    const uint8_t* at
    const uint8_t* end


cdef inline void _blanks(Cursor* c) noexcept nogil:
    while c.at < c.end and (c.at[0] == 32 or 9 <= c.at[0] <= 10 or c.at[0] == 13):
        c.at += 1


cdef inline bint _take(Cursor* c, uint8_t byte) noexcept nogil:
    """Pass blanks and this byte; False: another one follows."""
    _blanks(c)
    if c.at == c.end or c.at[0] != byte:
        return False
    c.at += 1
    return True


cdef inline int _hex_digit(uint8_t c) noexcept nogil:
    if 48 <= c <= 57:
        return c - 48
    c |= 32
    return c - 87 if 97 <= c <= 102 else -1


cdef inline int _hex4(const uint8_t* p) noexcept nogil:
    cdef int i, digit, value = 0
    for i in range(4):
        digit = _hex_digit(p[i])
        if digit < 0:
            return -1
        value = value << 4 | digit
    return value


cdef inline uint8_t _meant(uint8_t c) noexcept nogil:
    """Return what a backslash and this letter mean; 0: nothing."""
    if c == QUOTE or c == BACKSLASH or c == 47:
        return c
    if c == 98:
        return 8
    if c == 102:
        return 12
    if c == 110:
        return 10
    if c == 114:
        return 13
    return 9 if c == 116 else 0


cdef inline uint64_t _has(uint64_t word, uint8_t byte) noexcept nogil:
    """Return not zero if one of eight bytes is this one."""
    word ^= byte * ONES
    return word - ONES & ~word & ONES << 7


cdef inline const uint8_t* _pass_plain(const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Pass bytes that are no quote and no backslash, eight at a time; such a byte is near then, or the end."""
    cdef uint64_t word
    while end - p >= 8:
        memcpy(&word, p, 8)
        if _has(word, QUOTE) | _has(word, BACKSLASH):
            break
        p += 8
    return p


cdef bint _text(Cursor* c, JsonValue* out) noexcept nogil:
    cdef const uint8_t* p = _pass_plain(c.at + 1, c.end)
    out.kind = JSON_TEXT
    out.escaped = False
    while p < c.end:
        if p[0] == QUOTE:
            out.raw = slice_of(c.at + 1, <size_t>(p - c.at - 1))
            c.at = p + 1
            return True
        if p[0] != BACKSLASH:
            p += 1
            continue
        out.escaped = True
        if c.end - p >= 6 and p[1] == 117 and _hex4(p + 2) >= 0:
            p += 6
        elif c.end - p >= 2 and _meant(p[1]):
            p += 2
        else:
            return False
        p = _pass_plain(p, c.end)
    return False


cdef inline bint _digits(Cursor* c) noexcept nogil:
    cdef const uint8_t* start = c.at
    while c.at < c.end and 48 <= c.at[0] <= 57:
        c.at += 1
    return c.at > start


cdef bint _number(Cursor* c, JsonValue* out) noexcept nogil:
    cdef const uint8_t* start = c.at
    out.kind = JSON_NUMBER
    if c.at[0] == 45:
        c.at += 1
    if c.at < c.end and c.at[0] == 48:
        c.at += 1
    elif not _digits(c):
        return False
    if c.at < c.end and c.at[0] == 46:
        c.at += 1
        if not _digits(c):
            return False
    if c.at < c.end and c.at[0] | 32 == 101:
        c.at += 1
        if c.at < c.end and (c.at[0] == 43 or c.at[0] == 45):
            c.at += 1
        if not _digits(c):
            return False
    out.raw = slice_of(start, <size_t>(c.at - start))
    return True


cdef bint _word(Cursor* c, const char* word, size_t n, int kind, JsonValue* out) noexcept nogil:
    if <size_t>(c.end - c.at) < n or memcmp(c.at, word, n) != 0:
        return False
    out.kind = kind
    out.raw = slice_of(c.at, n)
    c.at += n
    return True


cdef bint _inside(Cursor* c, JsonValue* out, int depth) noexcept nogil:
    """Pass an array or an object."""
    cdef const uint8_t* start = c.at
    cdef bint members = start[0] == 123
    cdef uint8_t close = 125 if members else 93
    cdef JsonValue inner
    cdef bint flat = True
    if depth >= DEPTH_MOST:
        return False
    c.at += 1
    if not _take(c, close):
        while True:
            if members:
                _blanks(c)
                if c.at == c.end or c.at[0] != QUOTE or not _text(c, &inner) or not _take(c, COLON):
                    return False
            if not _value(c, &inner, depth + 1):
                return False
            flat = flat and inner.kind < JSON_OBJECT
            if _take(c, close):
                break
            if not _take(c, COMMA):
                return False
    out.kind = JSON_OBJECT if members else JSON_ARRAY
    out.flat = flat
    out.raw = slice_of(start, <size_t>(c.at - start))
    return True


cdef bint _value(Cursor* c, JsonValue* out, int depth) noexcept nogil:
    """Pass a value behind blanks; False: there is none, or it is broken."""
    cdef uint8_t first
    _blanks(c)
    if c.at == c.end:
        return False
    out.escaped = False
    first = c.at[0]
    if first == QUOTE:
        return _text(c, out)
    if first == 123 or first == 91:
        return _inside(c, out, depth)
    if first == 45 or 48 <= first <= 57:
        return _number(c, out)
    return (_word(c, b"true", 4, JSON_TRUE, out) or _word(c, b"false", 5, JSON_FALSE, out)
            or _word(c, b"null", 4, JSON_NULL, out))


cdef void json_open(JsonMembers* m, Slice text) noexcept nogil:
    """Begin to read an object; blanks may stand around it."""
    cdef Cursor c
    c.at, c.end = text.p, text.p + text.n
    m.first = True
    m.broken = not _take(&c, 123)
    m.at, m.end = c.at, c.end


cdef bint json_next(JsonMembers* m, JsonValue* key, JsonValue* value) noexcept nogil:
    """Read the next member; False: there is none, or the text is ``broken``."""
    cdef Cursor c
    if m.broken:
        return False
    c.at, c.end = m.at, m.end
    if _take(&c, 125):
        _blanks(&c)
        m.broken = c.at != c.end
        return False
    if not m.first and not _take(&c, COMMA):
        m.broken = True
        return False
    m.first = False
    _blanks(&c)
    if (c.at == c.end or c.at[0] != QUOTE or not _text(&c, key) or not _take(&c, COLON)
            or not _value(&c, value, 1)):
        m.broken = True
        return False
    m.at = c.at
    return True


cdef size_t _put_character(uint8_t* to, uint32_t c) noexcept nogil:
    if c < 0x80:
        to[0] = <uint8_t>c
        return 1
    if c < 0x800:
        to[0] = <uint8_t>(0xC0 | c >> 6)
        to[1] = <uint8_t>(0x80 | c & 63)
        return 2
    if c < 0x10000:
        to[0] = <uint8_t>(0xE0 | c >> 12)
        to[1] = <uint8_t>(0x80 | c >> 6 & 63)
        to[2] = <uint8_t>(0x80 | c & 63)
        return 3
    to[0] = <uint8_t>(0xF0 | c >> 18)
    to[1] = <uint8_t>(0x80 | c >> 12 & 63)
    to[2] = <uint8_t>(0x80 | c >> 6 & 63)
    to[3] = <uint8_t>(0x80 | c & 63)
    return 4


cdef size_t json_unescape(Slice raw, uint8_t* to) noexcept nogil:
    """Write what a text means, and return its bytes, no more than ``raw`` has; half a character becomes U+FFFD."""
    cdef size_t i = 0, n = 0, run
    cdef int unit, low
    while i < raw.n:
        run = i
        while run < raw.n and raw.p[run] != BACKSLASH:
            run += 1
        if run > i:
            memcpy(to + n, raw.p + i, run - i)
            n += run - i
            i = run
            continue
        if raw.p[i + 1] != 117:
            to[n] = _meant(raw.p[i + 1])
            n += 1
            i += 2
            continue
        unit = _hex4(raw.p + i + 2)
        i += 6
        if 0xD800 <= unit < 0xDC00 and raw.n - i >= 6 and raw.p[i] == BACKSLASH and raw.p[i + 1] == 117:
            low = _hex4(raw.p + i + 2)
            if 0xDC00 <= low < 0xE000:
                i += 6
                n += _put_character(to + n, <uint32_t>(0x10000 + (unit - 0xD800 << 10) + low - 0xDC00))
                continue
        n += _put_character(to + n, <uint32_t>(REPLACEMENT if 0xD800 <= unit < 0xE000 else unit))
    return n


cdef inline uint8_t _short(uint8_t c) noexcept nogil:
    """Return the letter that means a control character behind a backslash; 0: there is none."""
    if c == 8:
        return 98
    if c == 9:
        return 116
    if c == 10:
        return 110
    if c == 12:
        return 102
    return 114 if c == 13 else 0


cdef size_t json_escaped(Slice text, uint8_t* to) noexcept nogil:
    """Write a text between quotes, and return its end's distance: two and up to six bytes for each of the text.

    Bytes that are no UTF-8 become U+FFFD: JSON has no other bytes.
    """
    cdef size_t i = 0, n = 1, size
    cdef uint8_t c
    cdef const char* digits = b"0123456789abcdef"
    to[0] = QUOTE
    while i < text.n:
        c = text.p[i]
        if c >= 0x80:
            size = utf8_size(text.p + i, text.n - i)
            if size:
                memcpy(to + n, text.p + i, size)
                n += size
                i += size
            else:
                n += _put_character(to + n, REPLACEMENT)
                i += 1
            continue
        if c == QUOTE or c == BACKSLASH or c < 32:
            to[n] = BACKSLASH
            to[n + 1] = c if c >= 32 else _short(c)
            n += 2
            if to[n - 1] == 0:
                memcpy(to + n - 1, b"u00", 3)
                to[n + 2] = digits[c >> 4]
                to[n + 3] = digits[c & 15]
                n += 4
        else:
            to[n] = c
            n += 1
        i += 1
    to[n] = QUOTE
    return n + 1
