"""Visits: entries are looked at where they lie, without a copy, while the store keeps them there."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.plat.bits cimport prefetch_range
from dataproxy._core.server.store.catalog cimport Tally

cdef enum:
    AHEAD = 8           # so many entries before it is needed, an entry is asked of memory


ctypedef struct Seen:           # one entry
    uint64_t offset
    Slice value                 # borrowed from the store, as the next is, until the visit ends
    Slice stream
    uint32_t number             # of the stream in its log


ctypedef struct StreamNames:    # by log and number: what a store on disk has only by name
    uint64_t generation         # times that names were given up
    Buf rows                    # NameSlots, a power of two of them
    size_t count
    Buf texts


ctypedef struct Visit:
    # Wanted.
    Slice topic
    uint32_t partition
    const Slice* streams        # entries of these alone, no name twice
    size_t n_streams            # 0: of all streams
    size_t most_entries
    size_t enough_bytes         # no further entry is added behind so many,
    size_t most_bytes           # nor one that would make it more than this; the first is always there
    size_t around               # bytes of each entry that do not count for these two
    # Called when `first` and `next` are known: sets `offset`; ST_OK, or what the visit ends with.
    int (*place)(void* context) noexcept nogil
    int (*take)(void* context) noexcept nogil       # called with what was seen; its status is that of the visit
    void* context
    # Found.
    uint64_t offset             # not before `first`
    uint64_t first              # of the log; of one that is not there, the offset that it would begin with
    uint64_t next
    Tally tally                 # of the log
    uint32_t log                # its number, where it is there
    uint64_t stop               # behind the last offset that was looked at; with `n_streams` also in the index
    Buf seen                    # Seen structs
    size_t seen_bytes           # of their values
    size_t counted              # those of them that count for `enough_bytes` and `most_bytes`
    int error                   # library or system error behind ST_STORE
    uint64_t damaged            # offset of the entry behind FAULT_CHECKSUM
    # The visitor's own, kept from visit to visit.
    StreamNames names
    Buf heads                   # of the streams that are merged


# ST_OK, ST_STORE or ST_NO_MEMORY, or what `place` or `take` returned; any thread, with a Visit of its own.
ctypedef int (*Visitor)(void* store, Visit* v) noexcept nogil


cdef inline void seen_ahead(const Seen* seen, size_t n, size_t i) noexcept nogil:
    """Ask memory for an entry that is read soon; called with each one in turn.  Locality: any thread.  Locks: none."""
    if i + AHEAD < n:
        prefetch_range(seen[i + AHEAD].value.p, seen[i + AHEAD].value.n)


cdef void visit_init(Visit* v) noexcept nogil
cdef void visit_free(Visit* v) noexcept nogil
# ST_OK; ST_LIMIT: there is enough; ST_NO_MEMORY.
cdef int visit_add(Visit* v, uint64_t offset, Slice value, Slice stream, uint32_t number) noexcept nogil
cdef int visit_durable(void* store, Visit* v) noexcept nogil        # the store argument is a StoreEnv*
