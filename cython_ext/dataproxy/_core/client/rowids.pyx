"""Row ids are made for a whole batch at once; sixteen bytes of a row are hashed by one multiplication.

The hash makes a row that stands at another number after a replay in another order a new message: such a
replay may double a row, it never loses one.  It is no defence against made-up collisions.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.client.columns cimport Columns
from dataproxy._core.client.ids cimport OWN_ID_MAX
from dataproxy._core.client.rows cimport ROWS_STRIDED, Rows, rows_get
from dataproxy._core.plat.endian cimport load_be32, load_be64
from dataproxy._core.plat.wide cimport multiply

# Odd 64-bit constants: the fractional parts of the golden ratio, of the square root of 2, and of that of 3.
cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15
cdef uint64_t ROOT_2 = 0x6A09E667F3BCC909
cdef uint64_t ROOT_3 = 0xBB67AE8584CAA73B
cdef const char* DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


cdef inline uint64_t _fold(uint64_t a, uint64_t b) noexcept nogil:
    """Return both halves of a * b in one word, in which each bit of either side has a part."""
    cdef uint64_t low = 0
    cdef uint64_t high = multiply(a, b, &low)
    return high ^ low


cdef inline uint64_t _stir(uint64_t h, uint64_t word) noexcept nogil:
    return _fold(word ^ GOLDEN, h ^ ROOT_2)


cdef inline uint64_t _bytes(uint64_t h, const uint8_t* p, size_t n) noexcept nogil:
    """Stir in bytes and their number; the last word reaches back into the one before where there is one."""
    cdef uint64_t first = 0, last = 0
    h += n * GOLDEN
    while n > 16:
        h = _fold(load_be64(p) ^ ROOT_2, load_be64(p + 8) ^ h)
        p += 16
        n -= 16
    if n >= 8:
        first = load_be64(p)
        last = load_be64(p + n - 8)
    elif n >= 4:
        first = load_be32(p)
        last = load_be32(p + n - 4)
    elif n > 0:
        first = <uint64_t>p[0] << 16 | <uint64_t>p[n >> 1] << 8 | p[n - 1]
    return _fold(first ^ ROOT_3, last ^ h)


cdef inline uint64_t _value(uint64_t h, const Rows* rows, int64_t i) noexcept nogil:
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


cdef inline void _four(uint8_t* to, uint64_t value) noexcept nogil:
    """Write the four lowest digits."""
    to[0] = <uint8_t>DIGITS[value >> 18 & 63]
    to[1] = <uint8_t>DIGITS[value >> 12 & 63]
    to[2] = <uint8_t>DIGITS[value >> 6 & 63]
    to[3] = <uint8_t>DIGITS[value & 63]


cdef inline void _write(
    uint8_t* to, const uint8_t* before, size_t prefix_n, uint64_t number, uint64_t hash,
) noexcept nogil:
    """Write an id; ``before`` holds the prefix, and also the number of the row before unless its end begins anew."""
    cdef size_t at = prefix_n + ROW_NUMBER_TEXT
    if number & 63:
        memcpy(to, before, at)
        to[at - 1] = <uint8_t>DIGITS[number & 63]
    else:
        memcpy(to, before, prefix_n)
        _four(to + prefix_n, number >> 12)
        _four(to + prefix_n + 2, number)
    _four(to + at, hash >> 42)
    _four(to + at + 4, hash >> 18)
    _four(to + at + 7, hash)


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
    cdef uint8_t begun[OWN_ID_MAX + ROW_NUMBER_TEXT]            # the prefix, and the number in front of the first
    cdef const uint8_t* before = begun
    memset(ids, 0, sizeof(RowIds))
    ids.text = <uint8_t*>malloc(width * <size_t>columns.value.n + 1)
    if ids.text == NULL:
        return ST_NO_MEMORY
    to = ids.text
    memcpy(begun, prefix, prefix_n)
    _four(begun + prefix_n, <uint64_t>first_row >> 12)
    _four(begun + prefix_n + 2, <uint64_t>first_row)
    for i in range(columns.value.n):
        _write(to, before, prefix_n, <uint64_t>(first_row + i), _row(columns, i))
        before = to
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
