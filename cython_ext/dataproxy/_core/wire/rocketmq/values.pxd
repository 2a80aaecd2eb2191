"""Values of fields, which are all texts: numbers and booleans read from them."""

from libc.stdint cimport int32_t, int64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.text cimport read_decimal


cdef inline bint read_long(Slice text, int64_t* out) noexcept nogil:
    """Read a number of 64 bits; False: it is none."""
    return read_decimal(text, out)


cdef inline bint read_int(Slice text, int32_t* out) noexcept nogil:
    """Read a number of 32 bits; False: it is none."""
    cdef int64_t value = 0
    if not read_decimal(text, &value) or not -0x80000000 <= value <= 0x7FFFFFFF:
        return False
    out[0] = <int32_t>value
    return True


cdef inline bint read_bool(Slice text) noexcept nogil:
    """Read a boolean as Java does: ``true`` in letters of any size is true, and all else is false, also 1."""
    return (text.n == 4 and text.p[0] | 32 == 116 and text.p[1] | 32 == 114 and text.p[2] | 32 == 117
            and text.p[3] | 32 == 101)
