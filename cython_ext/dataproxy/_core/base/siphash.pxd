"""SipHash-2-4 with a result of 128 bits: a hash with a key, so that nobody without it can make collisions.

Among n different inputs a collision of all 128 bits has the probability n * n / 2**129 (a million inputs: 2**-89),
that of one half n * n / 2**65.
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
