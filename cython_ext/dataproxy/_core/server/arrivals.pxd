"""News of entries that have come in: by bucket, told to the loops that have requests that wait, and to a follower."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.net.poller cimport Wakeup
from dataproxy._core.server.entries cimport Entry


cdef enum ArrivalConst:
    BUCKETS = 256               # of logs, by their names: entries that come in are noticed by bucket
    BUCKET_WORDS = 4            # of a bit for each
    ARRIVAL_LOOPS = 64


ctypedef void (*Follower)(void* context) noexcept nogil     # to be woken; it must not wait


ctypedef struct Arrivals:
    # Constant while server loops run.
    Follower follower           # NULL: there is none
    void* follower_context
    Wakeup* loops[ARRIVAL_LOOPS]
    int n_loops
    # Atomics.
    int64_t arrived[BUCKETS]    # entries that have come in
    int64_t watched[BUCKETS]    # requests that wait for some
    int64_t followed[BUCKETS]   # logs that the follower wants to hear of
    int64_t changes             # of `arrived` that somebody waited for
    int64_t waiting[ARRIVAL_LOOPS]      # requests that wait, by loop


cdef int bucket_of(Slice topic, uint32_t partition) noexcept nogil
cdef void arrivals_notice(void* arrivals, const Entry* chain) noexcept nogil    # the committer's; who appended it
# A request of a server loop begins to wait for a bucket (1), or ends to (-1).
cdef void arrivals_watch(Arrivals* a, int bucket, int loop, int change) noexcept nogil
# The follower begins to follow a log of a bucket (1), or ends to (-1).
cdef void arrivals_follow(Arrivals* a, int bucket, int change) noexcept nogil
