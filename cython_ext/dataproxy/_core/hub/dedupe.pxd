"""What of an entry is new: the same decision for the durable store and the one in memory."""

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
    Buf dropped                 # a byte for each message of the entry at hand
    Buf unpacked
    Buf value


ctypedef struct Rest:           # what is to be stored of an entry; valid until the next one is judged
    Slice value
    uint32_t records            # 0: nothing


cdef void dedupe_free(Dedupe* d) noexcept nogil
# At a time of the store's own clock: ST_OK or ST_NO_MEMORY.
cdef int dedupe_entry(Dedupe* d, Entry* entry, int64_t now_ms, Rest* rest) noexcept nogil
cdef void dedupe_keep(Dedupe* d) noexcept nogil     # what was judged is stored
cdef void dedupe_undo(Dedupe* d) noexcept nogil     # nothing of it is
# Forget up to so many ids and blocks beyond what was added since the last of the two above; in memory alone.
cdef void dedupe_forget(Dedupe* d, int64_t now_ms, uint64_t most) noexcept nogil
