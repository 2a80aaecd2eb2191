"""Row ids are made for a whole batch at once, about a nanosecond for each eight bytes of a row.

The hash makes a row that stands at another number after a replay in another order a new message: such a
replay may double a row, it never loses one.  It is no defence against made-up collisions.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.client.columns cimport Columns
from dataproxy._core.client.rows cimport ROWS_STRIDED, Rows, rows_get
from dataproxy._core.plat.endian cimport load_be64

# Odd 64-bit constants: the fractional parts of the golden ratio, of the square root of 2, and of that of 3.
cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15
cdef uint64_t ROOT_2 = 0x6A09E667F3BCC909
cdef uint64_t ROOT_3 = 0xBB67AE8584CAA73B
cdef const char* DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


cdef inline uint64_t _stir(uint64_t h, uint64_t word) noexcept nogil:
    h ^= word * GOLDEN
    return ((h << 29) | (h >> 35)) * ROOT_2


cdef uint64_t _bytes(uint64_t h, const uint8_t* p, size_t n) noexcept nogil:
    cdef uint64_t word = 0
    h = _stir(h, n)
    while n >= 8:
        h = _stir(h, load_be64(p))
        p += 8
        n -= 8
    while n > 0:
        word = word << 8 | p[0]
        p += 1
        n -= 1
    return _stir(h, word)


cdef uint64_t _value(uint64_t h, const Rows* rows, int64_t i) noexcept nogil:
    cdef const uint8_t* p = NULL
    cdef size_t n = 0
    if not rows_get(rows, i, &p, &n):
        return _stir(h, ROOT_3)
    return _bytes(h, p, n)


cdef uint64_t _row(const Columns* c, int64_t i) noexcept nogil:
    """Return the hash of everything that row ``i`` sends."""
    cdef uint64_t h = _value(GOLDEN, &c.value, i)
    cdef int64_t at, k
    if c.has_group:
        h = _value(h, &c.group, i)
    if c.has_stream:
        h = _value(h, &c.stream, i)
    if c.time.present:
        at = c.time.offset + i
        if c.time.validity == NULL or (c.time.validity[at >> 3] >> (at & 7)) & 1:
            h = _stir(h, <uint64_t>c.time.values[at])
        else:
            h = _stir(h, ROOT_3)
    if c.attrs.present:
        at = c.attrs.offset + i
        if c.attrs.validity == NULL or (c.attrs.validity[at >> 3] >> (at & 7)) & 1:
            for k in range(c.attrs.offsets[at], c.attrs.offsets[at + 1]):
                h = _value(_value(h, &c.attrs.keys, k), &c.attrs.values, k)
    h ^= h >> 32
    h *= ROOT_3
    return h ^ (h >> 29)


cdef inline void _digits(uint8_t* to, uint64_t value, int n) noexcept nogil:
    while n > 0:
        n -= 1
        to[n] = <uint8_t>DIGITS[value & 63]
        value >>= 6


cdef int row_ids_make(
    RowIds* ids, const Columns* columns, const uint8_t* prefix, size_t prefix_n, int64_t first_row,
) noexcept nogil:
    """Make the ids of all rows; ST_OK or ST_NO_MEMORY.  ``first_row`` is the number of the batch's first row.

    Locality: any thread.
    Locks: none.
    """
    cdef size_t width = prefix_n + ROW_NUMBER_TEXT + ROW_HASH_TEXT
    cdef int64_t i
    cdef uint8_t* to
    memset(ids, 0, sizeof(RowIds))
    ids.text = <uint8_t*>malloc(width * <size_t>columns.value.n + 1)
    if ids.text == NULL:
        return ST_NO_MEMORY
    to = ids.text
    for i in range(columns.value.n):
        memcpy(to, prefix, prefix_n)
        _digits(to + prefix_n, <uint64_t>(first_row + i), ROW_NUMBER_TEXT)
        _digits(to + prefix_n + ROW_NUMBER_TEXT, _row(columns, i), ROW_HASH_TEXT)
        to += width
    ids.rows.kind = ROWS_STRIDED
    ids.rows.base = ids.text
    ids.rows.width = <int64_t>width
    ids.rows.stride = <int64_t>width
    ids.rows.n = columns.value.n
    return ST_OK


cdef void row_ids_free(RowIds* ids) noexcept nogil:
    """Release the ids.  Locality: owner.  Locks: none."""
    free(ids.text)
    ids.text = NULL
