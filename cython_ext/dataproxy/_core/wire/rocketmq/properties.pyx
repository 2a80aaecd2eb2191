"""Properties of a message: names and values in one text.

A text may end with a separator or without one: clients write either.

Locality: any thread.  Locks: none.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memchr

from dataproxy._core.base.buf cimport Buf, buf_put_slice, buf_put_u8
from dataproxy._core.base.slice cimport Slice, slice_equals, slice_of
from dataproxy._core.base.status cimport ST_INVALID, ST_OK
from dataproxy._core.wire.rocketmq.const cimport NAME_VALUE, PAIR


cdef bint property_next(Slice* rest, Slice* name, Slice* value) noexcept nogil:
    """Take the next property of a text; False: there is none.  As for Java, one without name or value is none."""
    cdef const uint8_t* p = rest.p
    cdef const uint8_t* end = p + rest.n
    cdef const uint8_t* stop
    cdef const uint8_t* mark
    while p < end:
        stop = <const uint8_t*>memchr(p, PAIR, <size_t>(end - p))
        if stop == NULL:
            stop = end
        mark = <const uint8_t*>memchr(p, NAME_VALUE, <size_t>(stop - p))
        if mark != NULL and mark > p and mark + 1 < stop:
            name[0] = slice_of(p, <size_t>(mark - p))
            value[0] = slice_of(mark + 1, <size_t>(stop - mark - 1))
            p = stop if stop == end else stop + 1
            rest[0] = slice_of(p, <size_t>(end - p))
            return True
        p = stop if stop == end else stop + 1
    rest[0] = slice_of(end, 0)
    return False


cdef bint property_value(Slice text, Slice name, Slice* value) noexcept nogil:
    """Find a property; of several with this name the last one counts."""
    cdef Slice rest = text
    cdef Slice other, found
    cdef bint has = False
    while property_next(&rest, &other, &found):
        if slice_equals(other, name):
            value[0] = found
            has = True
    return has


cdef bint _holds(Slice text, uint8_t byte) noexcept nogil:
    return text.n > 0 and memchr(text.p, byte, text.n) != NULL


cdef int put_property(Buf* out, size_t start, Slice name, Slice value) noexcept nogil:
    """Append a property to the text that begins at ``start`` of ``out``.

    ST_OK, ST_NO_MEMORY, or ST_INVALID: the name or the value is empty, or has a byte that separates.
    """
    cdef int status = ST_OK
    if (name.n == 0 or value.n == 0 or _holds(name, NAME_VALUE) or _holds(name, PAIR) or _holds(value, PAIR)):
        return ST_INVALID
    if out.n > start:
        status = buf_put_u8(out, PAIR)
    if status == ST_OK:
        status = buf_put_slice(out, name)
    if status == ST_OK:
        status = buf_put_u8(out, NAME_VALUE)
    return buf_put_slice(out, value) if status == ST_OK else status
