"""Ids that need no coordination: random bits of the producer and a serial number of the pack.

A pack has its id from its first message on and keeps it in all attempts.  So a consumer can tell a second copy
from a second message.  The id is one attribute of the frame; ``<id>.<index>`` is the id of a message.

Locks: none, except where a function says otherwise.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.rand cimport rand_next
from dataproxy._core.plat.clock cimport now_us, wall_ms
from dataproxy._core.plat.random cimport getrandom

cdef const char* BASE32 = b"abcdefghijklmnopqrstuvwxyz234567"
cdef const char* HEX = b"0123456789abcdef"


cdef uint64_t ids_seed() noexcept nogil:
    """Return 64 random bits.  Locality: any thread.

    It needs neither the GIL nor memory.  If the kernel gives no random bytes (Linux before 3.17), the bits are made
    from the clocks and an address.
    """
    cdef uint64_t bits = 0, mixed
    if getrandom(&bits, sizeof(bits), 0) != sizeof(bits):
        mixed = <uint64_t>wall_ms() ^ (<uint64_t>now_us() << 20) ^ <uint64_t><size_t>&bits
        rand_next(&mixed)
        bits = rand_next(&mixed)
    return bits


cdef void ids_renew(PackIds* ids) noexcept nogil:
    """Begin a new instance: for a new producer, and in a forked child before its first message.

    Locality: the owner.  Locks: the owner's is held, or nobody else sees ``ids``.  It needs neither the GIL
    nor memory.
    """
    cdef uint64_t bits = ids_seed()
    cdef int i
    for i in range(INSTANCE_SIZE):
        ids.instance[i] = BASE32[bits & 31]
        bits >>= 5
    ids.serial = 0


cdef int ids_next(PackIds* ids, char* to) noexcept nogil:
    """Write the id of the next pack, with a NUL, into ``ID_ROOM`` bytes and return its length.

    Locality: any thread.
    Locks: the owner's is held.
    """
    cdef int digits = 1, i
    ids.serial += 1
    memcpy(to, ids.instance, INSTANCE_SIZE)
    to[INSTANCE_SIZE] = 45      # '-'
    while digits < 16 and ids.serial >> (4 * digits):
        digits += 1
    for i in range(digits):
        to[INSTANCE_SIZE + 1 + i] = HEX[(ids.serial >> (4 * (digits - 1 - i))) & 15]
    to[INSTANCE_SIZE + 1 + digits] = 0
    return INSTANCE_SIZE + 1 + digits


cdef bint own_id_valid(const uint8_t* p, size_t n) noexcept nogil:
    """Tell whether a caller's id can be sent: 1 to 128 printable ASCII characters without blank & = |.

    Locality: any thread.
    """
    cdef size_t i
    if n == 0 or n > OWN_ID_MAX:
        return False
    for i in range(n):
        if p[i] <= 32 or p[i] > 126 or p[i] == 38 or p[i] == 61 or p[i] == 124:
            return False
    return True
