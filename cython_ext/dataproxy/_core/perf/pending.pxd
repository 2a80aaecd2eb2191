"""Messages that were sent by a plan and whose results are awaited, and the counts of those that have theirs.

Each message has its planned time beside the result of its pack.  The thread that settles the pack has written down
when that was, so it does not matter when somebody looks: the time from plan to result is exact.
"""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.base.hdr cimport Hdr
from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.plat.thread cimport pthread_mutex_t

cdef enum:
    BLOCK = 1024
    OUTCOMES = 7                # values of Outcome


ctypedef struct Planned:        # messages of one call in one pack
    PackResult* pack_result     # holds a reference
    int64_t planned_us
    uint32_t index              # place of the first in its pack
    uint32_t n


ctypedef struct Block:          # written by the sender, read by the collector
    int64_t n                   # atomic: items that are complete
    Block* next                 # written before `n` reaches BLOCK
    Planned items[1024]


ctypedef struct Tally:          # results by kind
    pthread_mutex_t lock
    Hdr whole                   # guarded by lock: microseconds from plan to result, of all messages with a result
    Hdr recent                  # guarded by lock: those since the last look
    int64_t outcomes[7]         # guarded by lock: messages by Outcome


ctypedef struct Pending:
    Block* newest               # sender only
    Block* oldest               # collector only
    int64_t taken               # collector only: items of `oldest`
    Planned* waiting            # collector only: taken and without a result
    int64_t n_waiting
    int64_t cap


cdef int pending_open(Pending* q, Tally* t) noexcept nogil
cdef void pending_close(Pending* q, Tally* t) noexcept nogil
cdef int pending_put(Pending* q, PackResult* v, uint32_t index, uint32_t n, int64_t planned_us) noexcept nogil
cdef int pending_collect(Pending* q, Tally* t) noexcept nogil
cdef void tally_add(Tally* t, int outcome, int64_t latency_us, bint timed) noexcept nogil
