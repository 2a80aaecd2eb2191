"""Ids of packs: ``<instance>-<serial>``, and with a message's index those of messages.

Locks: none.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from dataproxy._core.base.slice cimport Slice

cdef enum:
    INSTANCE_SIZE = 13      # base32 of 64 random bits
    ID_ROOM = 32            # the instance, '-', up to 16 hexadecimal digits, NUL
    OWN_ID_MAX = 128
    OWN_ID_KEY = 6          # msgid=


ctypedef struct PackIds:    # guarded by its owner's lock
    char instance[16]
    uint64_t serial         # of the newest pack


cdef uint64_t ids_seed() noexcept nogil
cdef void ids_renew(PackIds* ids) noexcept nogil
cdef int ids_next(PackIds* ids, char* to) noexcept nogil
cdef bint own_id_valid(const uint8_t* p, size_t n) noexcept nogil


cdef inline size_t item_text_size(Slice own_id, Slice attrs) noexcept nogil:
    """Return the size of an item's attribute text, 0 without one.  Locality: any."""
    if own_id.n == 0:
        return attrs.n
    return OWN_ID_KEY + own_id.n + (attrs.n + 1 if attrs.n else 0)


cdef inline void item_text_write(uint8_t* to, Slice own_id, Slice attrs) noexcept nogil:
    """Write an item's attribute text; the caller's id comes first.  Locality: any."""
    if own_id.n:
        memcpy(to, b"msgid=", OWN_ID_KEY)
        memcpy(to + OWN_ID_KEY, own_id.p, own_id.n)
        to += OWN_ID_KEY + own_id.n
        if attrs.n == 0:
            return
        to[0] = 38              # '&'
        to += 1
    memcpy(to, attrs.p, attrs.n)
