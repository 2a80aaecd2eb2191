"""Integers and decimals as text, two digits at a time.

Decimals look as Java's ``BigDecimal.toString`` makes them, which is what Spark writes into JSON and CSV: without an
exponent down to a millionth, with an exponent below.

Locality: any thread, without the GIL.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport Buf, buf_put, buf_put_u8
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.encode.texts cimport SPARE, copy_short, room
from dataproxy._core.plat.wide cimport divide

cdef uint64_t CHUNK = 10 ** 18      # digits are made in groups below this power of ten
cdef int CHUNK_DIGITS = 18
cdef int LEAST_PLAIN = -6           # exponent of the first digit down to which a decimal has no exponent

cdef uint8_t PAIRS[200]


cdef void _fill_pairs() noexcept:
    cdef int i
    for i in range(100):
        PAIRS[2 * i] = <uint8_t>(48 + i // 10)
        PAIRS[2 * i + 1] = <uint8_t>(48 + i % 10)


_fill_pairs()


cdef inline int _digits(uint64_t v, uint8_t* end) noexcept nogil:
    """Write the digits of ``v`` in front of ``end``; return how many."""
    cdef uint8_t* p = end
    cdef uint64_t rest
    while v >= 100:
        rest = v % 100
        v //= 100
        p -= 2
        memcpy(p, PAIRS + 2 * rest, 2)
    if v >= 10:
        p -= 2
        memcpy(p, PAIRS + 2 * v, 2)
    else:
        p -= 1
        p[0] = <uint8_t>(48 + v)
    return <int>(end - p)


cdef int digits_of(uint64_t high, uint64_t low, uint8_t* to) noexcept nogil:
    """Write the digits of a number below 2**127 to ``to``, which has WIDE_DIGITS bytes; return how many."""
    cdef uint8_t raw[WIDE_DIGITS + 42]
    cdef uint8_t* end = raw + WIDE_DIGITS + 18
    cdef uint8_t* p = end
    cdef uint64_t rest
    cdef int n
    if high == 0 and low < CHUNK:
        n = _digits(low, end)
        memcpy(to, end - n, 24)             # often more than ``n``: a constant length needs no call of memcpy
        return n
    while high != 0 or low >= CHUNK:
        rest = divide(&high, &low, CHUNK)
        n = _digits(rest, p)
        while n < CHUNK_DIGITS:
            n += 1
            (p - n)[0] = 48
        p -= CHUNK_DIGITS
    if low != 0 or p == end:
        p -= _digits(low, p)
    n = <int>(end - p)
    memcpy(to, p, <size_t>n)
    return n


cdef int put_integer(Buf* out, int64_t v) noexcept nogil:
    """Append an integer; ST_OK or ST_NO_MEMORY."""
    cdef uint8_t raw[48]
    cdef uint8_t* end = raw + 24
    cdef uint8_t* p = end
    cdef uint64_t size = <uint64_t>0 - <uint64_t>v if v < 0 else <uint64_t>v
    if room(out, 24) != ST_OK:
        return ST_NO_MEMORY
    p -= _digits(size, p)
    if v < 0:
        p -= 1
        p[0] = 45
    memcpy(out.p + out.n, p, 24)
    out.n += <size_t>(end - p)
    return ST_OK


cdef uint8_t* _plain(uint8_t* to, const uint8_t* digits, int n, int scale) noexcept nogil:
    """Write digits with ``scale`` of them behind the point; return where they end."""
    cdef int whole = n - scale
    if scale == 0:
        copy_short(to, digits, <size_t>n)
        return to + n
    if whole > 0:
        copy_short(to, digits, <size_t>whole)
        to[whole] = 46
        copy_short(to + whole + 1, digits + whole, <size_t>scale)
        return to + n + 1
    to[0] = 48
    to[1] = 46
    to += 2
    while whole < 0:
        to[0] = 48
        to += 1
        whole += 1
    copy_short(to, digits, <size_t>n)
    return to + n


cdef int put_scaled(Buf* out, uint64_t high, uint64_t low, int scale) noexcept nogil:
    """Append the decimal high:low (two's complement) divided by 10**scale; ST_OK or ST_NO_MEMORY."""
    cdef uint8_t raw[WIDE_DIGITS + SPARE]
    cdef uint8_t* digits = raw
    cdef int n, exponent, failed = 0
    if room(out, WIDE_DIGITS + 16 + SPARE) != ST_OK:
        return ST_NO_MEMORY
    if high >> 63:
        low = ~low + 1
        high = ~high + (1 if low == 0 else 0)
        out.p[out.n] = 45
        out.n += 1
    if high == 0 and low < CHUNK:
        n = _digits(low, raw + CHUNK_DIGITS)
        digits = raw + CHUNK_DIGITS - n
    else:
        n = digits_of(high, low, digits)
    exponent = n - 1 - scale
    if scale >= 0 and exponent >= LEAST_PLAIN:
        out.n = <size_t>(_plain(out.p + out.n, digits, n, scale) - out.p)
    else:
        failed |= buf_put_u8(out, digits[0])
        if n > 1:
            failed |= buf_put_u8(out, 46)
            failed |= buf_put(out, digits + 1, <size_t>(n - 1))
        if exponent != 0:
            failed |= buf_put_u8(out, 69)
            if exponent > 0:
                failed |= buf_put_u8(out, 43)
            failed |= put_integer(out, exponent)
    return ST_NO_MEMORY if failed else ST_OK
