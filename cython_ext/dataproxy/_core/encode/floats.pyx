"""The shortest decimal that reads back as the same number, laid out as Java's ``Double.toString`` does.

If several are equally short, the nearest one is taken.  The method is Raffaello Giulietti's "Schubfach": the interval
of all decimals that round to the number is scaled by one 126-bit power of ten, so that its ends and middle are
compared as integers.  Rounding to odd keeps the comparisons right although the power is not exact.

Locality: any thread, without the GIL.  Locks: none.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.buf cimport Buf, buf_put
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.encode.numbers cimport WIDE_DIGITS, digits_of, put_integer, put_pair
from dataproxy._core.encode.texts cimport room
from dataproxy._core.plat.wide cimport multiply

cdef enum:
    LEAST_POWER = -292          # powers of ten that doubles need
    GREATEST_POWER = 324
    POWERS = GREATEST_POWER - LEAST_POWER + 1
    LEAST_PLAIN = -3            # exponents of the first digit between which there is no E
    GREATEST_PLAIN = 6


ctypedef struct Power:          # ceil(10**k * 2**s) with 128 bits, the first one set
    uint64_t high
    uint64_t low


ctypedef struct Decimal:        # digits * 10**exponent
    uint64_t digits
    int exponent


cdef Power TABLE[POWERS]


cdef int _fill_table() except -1:
    """Compute the powers with Python's integers."""
    cdef int k, shift
    cdef object ten = 10, above, below, value
    for k in range(LEAST_POWER, GREATEST_POWER + 1):
        above = pow(ten, max(k, 0))
        below = pow(ten, max(-k, 0))
        shift = _floor_log2_pow10(k) - 127
        if shift > 0:
            below = below << shift
        else:
            above = above << -shift
        value = (above + below - 1) // below
        TABLE[k - LEAST_POWER].high = value >> 64
        TABLE[k - LEAST_POWER].low = value & 0xFFFFFFFFFFFFFFFF
    return 0


cdef inline int _floor_log2_pow10(int e) noexcept nogil:
    return <int>((<int64_t>e * 1741647) >> 19)              # right for |e| <= 1233


cdef inline int _floor_log10_pow2(int e) noexcept nogil:
    return <int>((<int64_t>e * 1262611) >> 22)              # right for |e| <= 1650


cdef inline int _floor_log10_three_quarters_pow2(int e) noexcept nogil:
    return <int>((<int64_t>e * 1262611 - 524031) >> 22)


_fill_table()


cdef inline uint64_t _scaled(const Power* g, uint64_t c) noexcept nogil:
    """Return c * g / 2**128, rounded to odd."""
    cdef uint64_t low = 0, middle = 0, carry, high
    carry = multiply(g.low, c, &low)
    high = multiply(g.high, c, &middle)
    middle += carry
    if middle < carry:
        high += 1
    return high | (1 if middle > 1 else 0)


cdef Decimal _shortest(uint64_t c, int q, bint lower_is_nearer) noexcept nogil:
    """Return the shortest decimal for c * 2**q; a power of two's lower neighbour is nearer than its upper one."""
    cdef uint64_t odd = c & 1, at = c << 2, left, right, s, t, tens
    cdef int k, h
    cdef bint low_in, high_in
    cdef const Power* g
    cdef Decimal out
    right = at + 2
    if lower_is_nearer:
        left = at - 1
        k = _floor_log10_three_quarters_pow2(q)
    else:
        left = at - 2
        k = _floor_log10_pow2(q)
    h = q + _floor_log2_pow10(-k) + 1
    g = &TABLE[-k - LEAST_POWER]
    left = _scaled(g, left << h)
    at = _scaled(g, at << h)
    right = _scaled(g, right << h)
    out.exponent = k
    s = at >> 2
    if s >= 100:
        tens = s // 10 * 10
        low_in = left + odd <= tens << 2
        high_in = ((tens + 10) << 2) + odd <= right
        if low_in != high_in:
            out.digits = tens if low_in else tens + 10
            return out
    t = s + 1
    low_in = left + odd <= s << 2
    high_in = (t << 2) + odd <= right
    if low_in != high_in:
        out.digits = s if low_in else t
    elif at == (s + t) << 1:
        out.digits = s if s & 1 == 0 else t
    else:
        out.digits = s if at < (s + t) << 1 else t
    return out


cdef int _put(Buf* out, bint negative, Decimal d) noexcept nogil:
    """Append a decimal in Java's layout: plain from 0.001 up to 10,000,000, else with an exponent."""
    cdef uint8_t digits[WIDE_DIGITS]
    cdef uint8_t* p
    cdef int n, exponent, i
    if room(out, 64) != ST_OK:
        return ST_NO_MEMORY
    n = digits_of(0, d.digits, digits)
    exponent = d.exponent + n - 1
    while n > 1 and digits[n - 1] == 48:
        n -= 1
    p = out.p + out.n
    if negative:
        p[0] = 45
        p += 1
    if LEAST_PLAIN <= exponent < 0:
        memcpy(p, b"0.00", 4)
        memcpy(p + 1 - exponent, digits, 24)
        p += n + 1 - exponent
    else:
        i = exponent + 1 if 0 <= exponent <= GREATEST_PLAIN else 1      # digits before the point
        while n < i + 1:
            digits[n] = 48
            n += 1
        memcpy(p, digits, 8)
        p[i] = 46
        memcpy(p + i + 1, digits + i, 24)
        p += n + 1
        if i != exponent + 1:
            p[0] = 69
            p += 1
            out.n = <size_t>(p - out.p)
            return put_integer(out, exponent)
    out.n = <size_t>(p - out.p)
    return ST_OK


cdef int _put_special(Buf* out, bint negative, bint zero, bint nan) noexcept nogil:
    if nan:
        return buf_put(out, b"NaN", 3)
    if zero:
        return buf_put(out, b"-0.0", 4) if negative else buf_put(out, b"0.0", 3)
    return buf_put(out, b"-Infinity", 9) if negative else buf_put(out, b"Infinity", 8)


cdef bint _put_short(Buf* out, double v) noexcept nogil:
    """Append a number from 0.001 to 10,000,000 with three digits behind the point at most; False for any other.

    Two decimals of fifteen digits or fewer never round to the same double.  So one that reads back as the number is
    the only one of them, and the shortest is the same without its zeros at the end.
    """
    cdef double size = -v if v < 0 else v
    cdef double scaled = size * 1000.0
    cdef int64_t thousandths
    cdef uint32_t rest
    cdef uint8_t* p
    if not 0.001 <= size < 10000000.0:
        return False
    thousandths = <int64_t>scaled
    if <double>thousandths != scaled or <double>thousandths / 1000.0 != size or room(out, 64) != ST_OK:
        return False
    out.p[out.n] = 45
    out.n += 1 if v < 0 else 0
    put_integer(out, thousandths // 1000)
    rest = <uint32_t>(thousandths % 1000)
    p = out.p + out.n
    p[0] = 46
    p[1] = <uint8_t>(48 + rest // 100)
    put_pair(p + 2, rest % 100)
    out.n += 2 if rest % 100 == 0 else (3 if rest % 10 == 0 else 4)
    return True


cdef int put_double(Buf* out, double v) noexcept nogil:
    """Append a double; NaN and infinities by their names.  ST_OK or ST_NO_MEMORY."""
    cdef uint64_t bits = 0, c
    cdef int e, q
    cdef Decimal d
    if _put_short(out, v):
        return ST_OK
    memcpy(&bits, &v, 8)
    c = bits & ((<uint64_t>1 << 52) - 1)
    e = <int>((bits >> 52) & 2047)
    if e == 2047 or (e == 0 and c == 0):
        return _put_special(out, bits >> 63, e == 0, c != 0)
    q = (e if e else 1) - 1075
    if e == 0 and c < 3:            # two digits are the fewest, and there are none here for them
        d = _shortest(10 * c, q, False)
        d.exponent -= 1
    else:
        d = _shortest(c | (<uint64_t>1 << 52) if e else c, q, c == 0 and e > 1)
    return _put(out, bits >> 63, d)


cdef int put_float(Buf* out, float v) noexcept nogil:
    """Append a float, as `put_double` does with the fewest digits that a float needs."""
    cdef uint32_t bits = 0, c
    cdef int e, q
    cdef Decimal d
    memcpy(&bits, &v, 4)
    c = bits & ((<uint32_t>1 << 23) - 1)
    e = <int>((bits >> 23) & 255)
    if e == 255 or (e == 0 and c == 0):
        return _put_special(out, bits >> 31, e == 0, c != 0)
    q = (e if e else 1) - 150
    if e == 0 and c < 8:
        d = _shortest(10 * c, q, False)
        d.exponent -= 1
    else:
        d = _shortest(c | (<uint32_t>1 << 23) if e else c, q, c == 0 and e > 1)
    return _put(out, bits >> 31, d)
