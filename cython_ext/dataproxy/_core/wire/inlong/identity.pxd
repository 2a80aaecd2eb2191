"""Identity of stored messages: item attribute ``msgid``, else frame attribute ``sid`` and the index."""

from libc.stdint cimport uint8_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.wire.api cimport StoredIds


cdef int read_stored_ids(const uint8_t* p, size_t n, Buf* scratch, Buf* items, StoredIds* out) noexcept nogil
cdef int write_without(
    const uint8_t* p, size_t n, const uint8_t* dropped, bint plain, Buf* scratch, Buf* out,
) noexcept nogil
