"""Percent-encoding as forms have it: a blank is a plus; letters, digits and ``-._*`` stand for themselves.

Locality: any thread.  Locks: none.
"""

from libc.string cimport memchr, memset

from dataproxy._core.base.buf cimport buf_reserve
from dataproxy._core.base.slice cimport slice_is, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK, ST_PROTOCOL

cdef const char* _NAMES[7]
_NAMES[:] = [b"groupId", b"streamId", b"dt", b"body", b"cnt", b"callback", b"auditVersion"]
cdef const char* _HEX = b"0123456789ABCDEF"


cdef inline bint _plain(uint8_t c) noexcept nogil:
    return (97 <= c <= 122 or 65 <= c <= 90 or 48 <= c <= 57 or c == 32 or c == 45 or c == 46 or c == 95 or c == 42)


cdef size_t encoded_size(Slice plain) noexcept nogil:
    """Return the bytes of a text once it is encoded."""
    cdef size_t i, n = plain.n
    for i in range(plain.n):
        if not _plain(plain.p[i]):
            n += 2
    return n


cdef uint8_t* put_encoded(uint8_t* at, Slice plain) noexcept nogil:
    """Write a text encoded and return where it ends; there is room for ``encoded_size``."""
    cdef size_t i
    cdef uint8_t c
    for i in range(plain.n):
        c = plain.p[i]
        if not _plain(c):
            at[0] = 37
            at[1] = <uint8_t>_HEX[c >> 4]
            at[2] = <uint8_t>_HEX[c & 15]
            at += 3
            continue
        at[0] = 43 if c == 32 else c
        at += 1
    return at


cdef void encode_in_place(uint8_t* p, size_t n, size_t coded) noexcept nogil:
    """Encode ``n`` bytes at ``p`` where they lie; ``coded`` is their encoded size, for which there is room."""
    cdef uint8_t* to = p + coded
    cdef size_t i = n
    cdef uint8_t c
    while i > 0:                # from the end: no byte is overwritten before it is read
        i -= 1
        c = p[i]
        if _plain(c):
            to -= 1
            to[0] = 43 if c == 32 else c
        else:
            to -= 3
            to[2] = <uint8_t>_HEX[c & 15]
            to[1] = <uint8_t>_HEX[c >> 4]
            to[0] = 37


cdef inline int _digit(uint8_t c) noexcept nogil:
    if 48 <= c <= 57:
        return c - 48
    c |= 32
    return c - 87 if 97 <= c <= 102 else -1


cdef void decode_in_place(uint8_t* p, size_t n) noexcept nogil:
    """Take back ``encode_in_place`` of ``n`` bytes at ``p``."""
    cdef const uint8_t* at = p
    cdef size_t i
    for i in range(n):
        if at[0] == 37:
            p[i] = <uint8_t>(_digit(at[1]) << 4 | _digit(at[2]))
            at += 3
        else:
            p[i] = 32 if at[0] == 43 else at[0]
            at += 1


cdef int put_decoded(Buf* out, Slice coded) noexcept nogil:
    """Append a text decoded; ST_PROTOCOL if a percent sign is not followed by two digits."""
    cdef size_t i = 0
    cdef int high, low
    cdef uint8_t c
    cdef uint8_t* at
    if buf_reserve(out, coded.n) != ST_OK:
        return ST_NO_MEMORY
    at = out.p + out.n
    while i < coded.n:
        c = coded.p[i]
        i += 1
        if c == 43:
            c = 32
        elif c == 37:
            high = _digit(coded.p[i]) if i + 1 < coded.n else -1
            low = _digit(coded.p[i + 1]) if i + 1 < coded.n else -1
            if high < 0 or low < 0:
                return ST_PROTOCOL
            c = <uint8_t>(high << 4 | low)
            i += 2
        at[0] = c
        at += 1
    out.n = <size_t>(at - out.p)
    return ST_OK


cdef int form_read(Form* form, Slice text, Buf* store) noexcept nogil:
    """Read the known parameters of a text into ``store``; the others are only checked."""
    cdef Slice pair
    cdef const uint8_t* mark
    cdef size_t at = 0
    cdef int status = ST_OK
    while at < text.n and status == ST_OK:
        mark = <const uint8_t*>memchr(text.p + at, 38, text.n - at)
        pair = slice_of(text.p + at, <size_t>(mark - text.p) - at if mark != NULL else text.n - at)
        at += pair.n + 1
        if pair.n > 0:
            status = _read_pair(form, pair, store)
    return status


cdef int _read_pair(Form* form, Slice pair, Buf* store) noexcept nogil:
    cdef const uint8_t* mark = <const uint8_t*>memchr(pair.p, 61, pair.n)
    cdef size_t name_n = <size_t>(mark - pair.p) if mark != NULL else pair.n
    cdef size_t start = store.n
    cdef int status = put_decoded(store, slice_of(pair.p, name_n))
    cdef int key = 0
    if status != ST_OK:
        return status
    while key < FORM_KEYS and not slice_is(slice_of(store.p + start, store.n - start), _NAMES[key]):
        key += 1
    store.n = start
    if mark != NULL:
        status = put_decoded(store, slice_of(mark + 1, pair.n - name_n - 1))
    if status != ST_OK:
        return status
    if key == FORM_KEYS:
        store.n = start
        return ST_OK
    form.has[key] = True
    form.at[key] = start
    form.n[key] = store.n - start
    return ST_OK


cdef Slice form_value(const Form* form, const Buf* store, int key) noexcept nogil:
    """Return a parameter, empty without one."""
    return slice_of(store.p + form.at[key], form.n[key]) if form.has[key] else slice_of(NULL, 0)


cdef void form_clear(Form* form) noexcept nogil:
    """Forget all parameters."""
    memset(form, 0, sizeof(Form))
