"""SipHash-2-4 with a result of 128 bits: a hash with a key; without the key nobody can find collisions.

The probability of a collision among n different inputs is n * n / 2**129 for all 128 bits (a million inputs: 2**-89),
and n * n / 2**65 for one half of them.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t


ctypedef struct HashKey:
    uint64_t first
    uint64_t second


ctypedef struct Hash128:
    uint64_t first
    uint64_t second


cdef HashKey hash_key(const uint8_t* raw) noexcept nogil      # of 16 bytes
cdef Hash128 hash_bytes(const HashKey* key, const uint8_t* p, size_t n) noexcept nogil
