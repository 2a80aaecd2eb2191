"""Requests of a server loop that wait for messages: which there are, and when each is to be answered."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.arrivals cimport BUCKETS, BUCKET_WORDS
from dataproxy._core.server.session cimport Session
from dataproxy._core.server.state cimport ServerLoop
from dataproxy._core.server.tubemq.registrations cimport Standing


cdef enum WaitConst:
    SESSION_WAITS = 1024        # requests of one connection that wait
    LOOP_WAITS = 65536
    WAIT_MOST = 4096            # bytes of a request that may wait: names and what clients put around them fit
    LATE_US = 20000             # a consumer that does not ask for what is there may have no thread that is free
    BEHIND_US = 30000000        # so long what was seen of its partitions is believed


cdef struct Polls


ctypedef struct Wait:           # one block: the struct, then the bytes of the request
    Wait* prev                  # of the loop, the first to end first
    Wait* next
    Polls* polls                # of its connection
    uint64_t session
    Standing standing           # of its registration, as the request saw it last
    int64_t due_us
    int64_t arrived             # of its bucket, before the store was looked at
    int bucket
    uint32_t serial
    size_t n


cdef struct Polls:              # what is known of a connection's partitions, by bucket; Session.polls
    Polls* next                 # of the loop's connections whose requests wait
    Polls* prev
    uint64_t session
    uint64_t known[BUCKET_WORDS]       # asked for before
    uint64_t behind[BUCKET_WORDS]      # had more messages when they were asked for, or got some since
    int64_t behind_us           # when that was noted last
    int64_t late_us             # when one of its waits is ended, 0: no need
    int waits


ctypedef struct Waits:          # of a server loop
    Wait* first
    Wait* last
    Polls* polls                # connections whose requests wait
    int waits
    int64_t arrivals            # Arrivals.changes as they were followed last
    int64_t arrived[BUCKETS]


# Answers a request that has waited and drops it, or, `again`, lets it go on waiting if there is still nothing.
ctypedef void (*WaitEnd)(ServerLoop* d, Wait* w, bint again) noexcept nogil


cdef bint polls_begin(Session* s) noexcept nogil        # begin to note what a connection asks for; False: no memory
# A request has found messages, and more behind them, or none.
cdef void polls_note(ServerLoop* d, Polls* p, int bucket, bint more) noexcept nogil
cdef void polls_forget(Polls* p, int bucket) noexcept nogil     # the connection was told to leave a partition alone
# Let a request wait whose connection has asked for the partition before; False: it is answered now.
cdef bint wait_add(ServerLoop* d, Waits* t, Session* s, const Wait* parts, Slice request) noexcept nogil
# Let one that was asked again wait until its end; False: it is answered now.
cdef bint wait_renew(
    ServerLoop* d, Waits* t, const Session* s, Wait* w, const Standing* standing, int64_t arrived
) noexcept nogil
cdef void wait_drop(ServerLoop* d, Waits* t, Wait* w) noexcept nogil
cdef Slice wait_request(const Wait* w) noexcept nogil
cdef void waits_follow(ServerLoop* d, Waits* t, WaitEnd end) noexcept nogil     # end those that are due
cdef void waits_end(ServerLoop* d, Waits* t, WaitEnd end) noexcept nogil        # end all, without messages
cdef void waits_forget(ServerLoop* d, Waits* t, const Session* s) noexcept nogil        # of a closed connection
cdef void waits_free(Waits* t) noexcept nogil
