"""Row ids are made when their rows go into a pack; one multiplication hashes sixteen bytes of a row.

Rows have the digest of their whole block, so that a hub can remember 256 of them as one.  If a block is not the same
after a replay, its rows become new messages: such a replay may store rows twice, but it never loses one.  The digest
does not protect against collisions that somebody makes on purpose.  The rows of a block are hashed just before the
first of them is written, so that they are still in the cache when they are written.

Locality: one thread for each ``RowIds``.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from dataproxy._core.producer.ingest.columnar.columns cimport Columns
from dataproxy._core.producer.ingest.ids cimport OWN_ID_KEY
from dataproxy._core.producer.ingest.rows cimport ROWS_STRIDED, Rows, rows_get
from dataproxy._core.plat.endian cimport load_be32, load_be64, store_be32, store_be64
from dataproxy._core.plat.wide cimport multiply

# Odd 64-bit constants: the fractional parts of the golden ratio, of the square root of 2, and of that of 3.
cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15
cdef uint64_t ROOT_2 = 0x6A09E667F3BCC909
cdef uint64_t ROOT_3 = 0xBB67AE8584CAA73B
cdef const char* DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


cdef inline uint64_t _fold(uint64_t a, uint64_t b) noexcept nogil:
    """Return both halves of a * b combined in one word, which depends on each bit of ``a`` and ``b``."""
    cdef uint64_t low = 0
    cdef uint64_t high = multiply(a, b, &low)
    return high ^ low


cdef inline uint64_t _stir(uint64_t h, uint64_t word) noexcept nogil:
    return _fold(word ^ GOLDEN, h ^ ROOT_2)


cdef inline uint64_t _bytes(uint64_t h, const uint8_t* p, size_t n) noexcept nogil:
    """Add bytes and their number to the hash; the last word overlaps the one before, if there is one."""
    cdef uint64_t first = 0, last = 0, beside
    h += n * GOLDEN
    if n > 64:                  # two independent chains of multiplications, which run at the same time
        beside = h ^ GOLDEN
        while n > 32:
            h = _fold(load_be64(p) ^ ROOT_2, load_be64(p + 8) ^ h)
            beside = _fold(load_be64(p + 16) ^ ROOT_3, load_be64(p + 24) ^ beside)
            p += 32
            n -= 32
        h = _stir(h, beside)
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


cdef inline uint64_t _digit(uint64_t value, int shift) noexcept nogil:
    return <uint64_t><uint8_t>DIGITS[value >> shift & 63]


cdef inline uint64_t _four(uint64_t value) noexcept nogil:
    """Return the four lowest digits, the first one in the highest of four bytes."""
    return _digit(value, 18) << 24 | _digit(value, 12) << 16 | _digit(value, 6) << 8 | _digit(value, 0)


cdef inline void _hash_text(uint8_t* to, uint64_t hash) noexcept nogil:
    store_be64(to, _four(hash >> 42) << 32 | _four(hash >> 18))
    store_be32(to + 7, <uint32_t>_four(hash))


cdef uint64_t _digest(const Columns* c, int64_t first) noexcept nogil:
    """Return the digest of the block whose first row is ``first``: of everything that its rows send, in order."""
    cdef int64_t i, end = min(first + (1 << ROW_BLOCK_BITS), c.value.n)
    cdef uint64_t h = GOLDEN
    for i in range(first, end):
        h = _stir(h, _row(c, i))
    return _stir(h, <uint64_t>(end - first))


cdef inline void _settle(RowIds* ids, uint64_t number) noexcept nogil:
    """Write the digest of a row's block, and all digits of its number but the last, unless they are there already."""
    cdef uint8_t* to = ids.text + ids.digit_at - (ROW_NUMBER_TEXT - 1)
    cdef uint64_t block = number >> ROW_BLOCK_BITS
    if number >> 6 == ids.sixty_four:
        return
    ids.sixty_four = number >> 6
    to[0] = <uint8_t>_digit(number, 30)
    store_be32(to + 1, <uint32_t>_four(number >> 6))
    if block != ids.block:
        ids.block = block
        _hash_text(to + ROW_NUMBER_TEXT, _digest(ids.columns, <int64_t>(block << ROW_BLOCK_BITS) - ids.first_row))


cdef void row_ids_begin(
    RowIds* ids, const Columns* columns, const uint8_t* prefix, size_t prefix_n, int64_t first_row,
) noexcept nogil:
    """Prepare the ids of a batch whose first row begins a block; the caller has checked that ``prefix`` is valid.

    ``first_row`` is that row's number.  The batch has whole blocks; only the last block of a partition may be shorter.
    Locality: owner.
    """
    memset(ids, 0, sizeof(RowIds))
    ids.columns = columns
    ids.first_row = first_row
    ids.sixty_four = ~<uint64_t>0
    ids.block = ~<uint64_t>0
    ids.digit_at = OWN_ID_KEY + prefix_n + ROW_NUMBER_TEXT - 1
    ids.text_n = OWN_ID_KEY + prefix_n + ROW_NUMBER_TEXT + ROW_HASH_TEXT
    memcpy(ids.text, b"msgid=", OWN_ID_KEY)
    memcpy(ids.text + OWN_ID_KEY, prefix, prefix_n)
    ids.rows.kind = ROWS_STRIDED
    ids.rows.base = ids.text + OWN_ID_KEY
    ids.rows.width = <int64_t>(ids.text_n - OWN_ID_KEY)
    ids.rows.n = columns.value.n


cdef void row_ids_make(RowIds* ids, int64_t i) noexcept nogil:
    """Write the id of row ``i`` to the place to which ``rows`` points for all rows.  Locality: owner."""
    cdef uint64_t number = <uint64_t>(ids.first_row + i)
    _settle(ids, number)
    ids.text[ids.digit_at] = <uint8_t>_digit(number, 0)


cdef void row_ids_put(RowIds* ids, int64_t i, uint8_t* to) noexcept nogil:
    """Write an item's attribute text for row ``i``, which is its id alone, to ``to``.

    Locality: owner.
    """
    row_ids_make(ids, i)
    memcpy(to, ids.text, ids.text_n)
