"""Pulls that wait for messages, on a server loop: by bucket of their log, by connection, and by when they end."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.arrivals cimport BUCKETS
from dataproxy._core.server.rocketmq.lines cimport Line, Wait
from dataproxy._core.server.session cimport Session
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.server.store.visits cimport Visit


cdef enum WaitConst:
    SESSION_WAITS = 1024        # of one connection
    LOOP_WAITS = 65536
    WAIT_MOST = 4096            # bytes of a request that may wait
    TICK_US = 50000             # waits end on ticks, as much too early at most
    TICKS = 1024
    WAIT_LONGEST_US = 50000000  # less than all ticks


ctypedef struct Pulls:          # the desk of a server loop
    Visit visit
    Buf tags                    # of a filter, each behind two bytes of length
    Buf streams                 # Slices
    Buf odd                     # tags that no stream is called by: Slices
    Buf command                 # bytes that reading a request needs
    Buf properties              # of the message that is written
    Wait* ends[TICKS]
    Wait* buckets[BUCKETS]
    int64_t arrived[BUCKETS]
    int64_t changes             # Arrivals.changes as they were followed last
    int64_t tick                # the last one that is over
    int waits
    bint again                  # entries came while they were looked for
    size_t made                 # bytes of answers since some were sent last


cdef Pulls* pulls_of(ServerLoop* d) noexcept nogil          # made if need be; NULL: no memory
cdef void pulls_free(ServerLoop* d) noexcept nogil
# A wait with a copy of its request; NULL: there may be no more of them, or it is too large, or no memory is left.
cdef Wait* wait_new(ServerLoop* d, Line* line, uint64_t session, Slice request, int64_t due_us) noexcept nogil
cdef void wait_link(ServerLoop* d, Wait* w, int bucket) noexcept nogil
cdef void wait_free(ServerLoop* d, Wait* w) noexcept nogil
cdef Wait* wait_find(const Line* line, uint64_t mark) noexcept nogil
cdef void waits_forget(ServerLoop* d, Session* s) noexcept nogil      # of a closed connection
cdef void waits_due(ServerLoop* d) noexcept nogil                     # set when the first one ends
