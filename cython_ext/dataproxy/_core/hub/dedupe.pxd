"""Decision which messages of an entry are new, for the durable store and the store in memory."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.hub.entry cimport Entry
from dataproxy._core.hub.rowblocks cimport RowBlocks
from dataproxy._core.hub.window cimport Window
from dataproxy._core.wire.api cimport WireOps


ctypedef struct Dedupe:         # of a store; the appending thread's own
    Window window
    RowBlocks blocks
    bint first_wins             # a known id that an application gave is not stored with other bytes either
    const WireOps* wire
    Buf dropped                 # a byte for each message of the current entry
    Buf unpacked
    Buf value


ctypedef struct Rest:           # the part of an entry to be stored; valid until the next entry is judged
    Slice value
    uint32_t records            # 0: nothing


cdef void dedupe_free(Dedupe* d) noexcept nogil
# At a time of the store's own clock: ST_OK or ST_NO_MEMORY.
cdef int dedupe_entry(Dedupe* d, Entry* entry, int64_t now_ms, Rest* rest) noexcept nogil
cdef void dedupe_keep(Dedupe* d) noexcept nogil     # the judged entries were stored
cdef void dedupe_undo(Dedupe* d) noexcept nogil     # the judged entries were not stored
# Forget up to `most` ids and blocks, plus as many as were added since the last call of the two functions above.
# Only in memory.
cdef void dedupe_forget(Dedupe* d, int64_t now_ms, uint64_t most) noexcept nogil
