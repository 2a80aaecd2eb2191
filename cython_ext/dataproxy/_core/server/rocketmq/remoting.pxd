"""What the server loops of a hub need to be a broker of RocketMQ besides themselves: topics, subscriptions, commits."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.plat.thread cimport pthread_mutex_t
from dataproxy._core.server.arrivals cimport Arrivals
from dataproxy._core.server.calls cimport CallQueue
from dataproxy._core.server.committer cimport Committer
from dataproxy._core.server.rocketmq.keyed cimport Keyed
from dataproxy._core.server.store.visits cimport Visitor
from dataproxy._core.wire.api cimport WireOps


cdef enum RemotingKind:         # of a call, as the thread sees it
    KIND_REQUEST = 0
    KIND_ANSWER = 1             # to a request of the hub's own
    KIND_CLOSED = 2             # a connection that had calls is gone
    KIND_STORED = 3             # messages of the hub's own are stored, or refused


cdef enum RoutePermission:
    PERM_WRITE = 2
    PERM_READ = 4


cdef enum FilterKind:           # of a subscription
    FILTER_ALL = 0
    FILTER_TAGS = 1
    FILTER_ASKED = 2            # the thread answers pulls


ctypedef struct Route:          # by topic
    int32_t read_queues
    int32_t write_queues
    int32_t permission          # RoutePermission
    int32_t turn                # of the queue for the next message that names none


ctypedef struct Subscription:   # one block: the struct, then group, topic and tags
    Subscription* next          # of its connection
    Slice group
    Slice topic
    Slice tags                  # each behind two bytes of length
    int64_t version
    int filter                  # FilterKind
    int64_t pulled_us           # when a pull came last; 0: none did


ctypedef struct Subscribed:     # by connection
    Subscription* first


ctypedef struct CommitSeen:     # by group, topic and queue: the offset that a pull confirmed last
    CommitSeen* next            # of those that nobody has been told of
    uint64_t connection
    int64_t offset
    int64_t told
    int64_t queue
    size_t group_n              # bytes of the key
    bint listed


ctypedef struct Remoting:
    CallQueue queue
    Arrivals news
    # Constant while server loops run.
    const WireOps* wire
    size_t max_message          # bytes of a body, of a batch of all together
    Visitor visit
    void* store                 # of `visit`
    Committer* committer
    pthread_mutex_t mutex       # guards what follows; a leaf, the GIL is never taken while it is held
    Keyed routes
    Keyed subscriptions         # Subscribed
    Keyed commits               # CommitSeen
    Keyed asked                 # groups whose pulls are answered by the thread
    CommitSeen* changed
    size_t commits_lost         # for which there was no room
    # Statistics, relaxed atomics.
    int64_t pulls
    int64_t messages
    int64_t bytes
    int64_t batches
    int64_t stray               # answers that nobody had asked for


cdef int remoting_init(Remoting* r, const HashKey* secret, size_t most_calls, size_t most_bytes) noexcept nogil
cdef void remoting_free(Remoting* r) noexcept nogil
cdef int32_t remoting_route(Remoting* r, Slice topic, int32_t queue) noexcept nogil
cdef int32_t remoting_readable(Remoting* r, Slice topic, int32_t queue) noexcept nogil      # a refusal's code, or 0
cdef bint remoting_asked(Remoting* r, Slice group) noexcept nogil
# What a connection's member of a group wants of a topic: 0 with `filter` and tags, or the code that refuses its pull.
cdef int32_t remoting_wanted(
    Remoting* r, uint64_t connection, Slice group, Slice topic, int64_t version, int* filter, Buf* tags
) noexcept nogil
# Note that a connection's member of a group has asked for messages of a topic.
cdef void remoting_pulled(Remoting* r, uint64_t connection, Slice group, Slice topic, int64_t now_us) noexcept nogil
cdef int remoting_subscribe(Remoting* r, uint64_t connection, const Subscription* s) noexcept nogil
cdef void remoting_unsubscribe(
    Remoting* r, uint64_t connection, const Slice* group, const Slice* topic
) noexcept nogil
cdef void remoting_commit(
    Remoting* r, uint64_t connection, Slice group, Slice topic, int32_t queue, int64_t offset
) noexcept nogil
