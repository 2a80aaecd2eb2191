"""State of faults for one connection: counters, replies held back, how it is frozen."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.hub.faults cimport FaultTally


ctypedef struct Held:       # one block: the struct, then `n` bytes of reply; n 0: the session is read again
    Held* next
    uint64_t session
    int64_t due_us
    bint single             # written byte by byte
    size_t n


ctypedef struct SessionFaults:  # owned by the session
    FaultTally* tally       # NULL until a rule counts by connection
    int64_t frozen_by       # id of the rule, 0: not frozen
    bint judged             # the first frame in the receive buffer was judged before it froze the session
    bint mute               # replies stay where they are
    bint deaf               # hung up while frozen, and therefore out of the poller
    bint resets             # its close is a reset
    bint answered           # by a changed answer: the last request so far, of this number
    uint32_t answered_number
    size_t single           # so many unsent bytes are written one by one
    Held* reversed          # the newest reply first
    int reversed_count
    int64_t reversed_by     # id of the rule


cdef SessionFaults* faultsession_new() noexcept nogil       # NULL: no memory
cdef void faultsession_free(SessionFaults* f) noexcept nogil
cdef Held* held_new(size_t n) noexcept nogil                # NULL: no memory
cdef uint8_t* held_bytes(Held* held) noexcept nogil
cdef void held_insert(Held** list, Held* held) noexcept nogil   # by time, behind those of the same time
cdef void held_free_all(Held* held) noexcept nogil
