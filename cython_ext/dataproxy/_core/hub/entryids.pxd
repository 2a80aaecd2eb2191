"""Ids of an entry that is about to be made."""

from libc.stdint cimport uint32_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.hub.entry cimport Entry
from dataproxy._core.wire.api cimport WireOps


ctypedef struct IdReader:       # one for each thread that makes entries
    const WireOps* wire
    const HashKey* key          # NULL: there is no window, and nothing is read
    Buf unpacked
    Buf items
    Buf rest
    Buf name
    Buf ids
    Slice last_row          # id of the message before, if it is a row's


cdef void ids_init(IdReader* r, const WireOps* wire, const HashKey* key) noexcept nogil
cdef void ids_free(IdReader* r) noexcept nogil
# Set ids and items of the parts from their group, stream, value and records; they stay valid until the next call.
cdef int ids_read(IdReader* r, Entry* parts) noexcept nogil    # ST_OK or ST_NO_MEMORY
