"""SipHash-2-4 with a result of 128 bits (the words of the result are numbers; as bytes they are little-endian).

Locality: any thread.  Locks: none.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t

from dataproxy._core.plat.endian cimport load_be64


ctypedef struct State:
    uint64_t a
    uint64_t b
    uint64_t c
    uint64_t d


cdef inline uint64_t _turn(uint64_t x, int bits) noexcept nogil:
    return (x << bits) | (x >> (64 - bits))


cdef inline uint64_t _swap(uint64_t x) noexcept nogil:
    """Return the bytes of a number in the other order."""
    x = ((x >> 8) & <uint64_t>0x00FF00FF00FF00FF) | ((x & <uint64_t>0x00FF00FF00FF00FF) << 8)
    x = ((x >> 16) & <uint64_t>0x0000FFFF0000FFFF) | ((x & <uint64_t>0x0000FFFF0000FFFF) << 16)
    return (x >> 32) | (x << 32)


cdef inline uint64_t _word(const uint8_t* p) noexcept nogil:
    """Return the little-endian number at ``p``."""
    return _swap(load_be64(p))


cdef inline void _round(State* s) noexcept nogil:
    s.a += s.b
    s.c += s.d
    s.b = _turn(s.b, 13) ^ s.a
    s.d = _turn(s.d, 16) ^ s.c
    s.a = _turn(s.a, 32)
    s.c += s.b
    s.a += s.d
    s.b = _turn(s.b, 17) ^ s.c
    s.d = _turn(s.d, 21) ^ s.a
    s.c = _turn(s.c, 32)


cdef inline uint64_t _finish(State* s) noexcept nogil:
    _round(s)
    _round(s)
    _round(s)
    _round(s)
    return s.a ^ s.b ^ s.c ^ s.d


cdef HashKey hash_key(const uint8_t* raw) noexcept nogil:
    """Return the key that the 16 bytes at ``raw`` hold."""
    cdef HashKey key
    key.first = _word(raw)
    key.second = _word(raw + 8)
    return key


cdef Hash128 hash_bytes(const HashKey* key, const uint8_t* p, size_t n) noexcept nogil:
    """Hash ``n`` bytes."""
    cdef State s
    cdef Hash128 out
    cdef uint64_t word
    cdef size_t left = n & 7
    cdef const uint8_t* end = p + (n - left)
    cdef size_t i
    s.a = <uint64_t>0x736F6D6570736575 ^ key.first
    s.b = <uint64_t>0x646F72616E646F6D ^ key.second ^ 0xEE
    s.c = <uint64_t>0x6C7967656E657261 ^ key.first
    s.d = <uint64_t>0x7465646279746573 ^ key.second
    while p != end:
        word = _word(p)
        s.d ^= word
        _round(&s)
        _round(&s)
        s.a ^= word
        p += 8
    word = <uint64_t>(n & 0xFF) << 56
    for i in range(left):
        word |= <uint64_t>p[i] << (8 * i)
    s.d ^= word
    _round(&s)
    _round(&s)
    s.a ^= word
    s.c ^= 0xEE
    out.first = _finish(&s)
    s.b ^= 0xDD
    out.second = _finish(&s)
    return out
