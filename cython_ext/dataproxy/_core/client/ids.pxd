"""Ids of packs: ``<instance>-<serial>``, and with a message's index those of messages."""

from libc.stdint cimport uint64_t

cdef enum:
    INSTANCE_SIZE = 13      # base32 of 64 random bits
    ID_ROOM = 32            # the instance, '-', up to 16 hexadecimal digits, NUL


ctypedef struct PackIds:    # guarded by its owner's lock
    char instance[16]
    uint64_t serial         # of the newest pack


cdef void ids_renew(PackIds* ids) noexcept nogil
cdef int ids_next(PackIds* ids, char* to) noexcept nogil
