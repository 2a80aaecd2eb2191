"""State of one server loop, state that all server loops of a hub share, and functions that all parts of a loop use."""

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.base.siphash cimport HashKey
from dataproxy._core.server.committer cimport Committer
from dataproxy._core.server.entries cimport Entry, IdReader
from dataproxy._core.server.faults.table cimport FaultTable, Held
from dataproxy._core.server.holders cimport Holders
from dataproxy._core.server.listener cimport FAMILIES, Listener
from dataproxy._core.server.peers cimport Peers
from dataproxy._core.server.session cimport CLOSE_REASONS, Session, SessionTable
from dataproxy._core.server.calls cimport Call, CallQueue
from dataproxy._core.net.tlsholder cimport TlsHolder
from dataproxy._core.net.poller cimport Poller, Wakeup
from dataproxy._core.net.recvbuf cimport RecvBuf
from dataproxy._core.plat.thread cimport pthread_cond_t, pthread_mutex_t
from dataproxy._core.wire.api cimport Request, ServerProfile, WireOps


cdef enum:
    LISTENERS_MOST = 132            # of all kinds: TCP and HTTP of 64 nodes, TubeMQ, and two of RocketMQ
    TAG_WAKEUP = 1                  # in the poller; session ids are larger than all tags
    TAG_LISTENER = 2                # and the index of the listener, for its second family LISTENERS_MOST more
    TAG_END = 266
    LOOP_CODES = 600                # error codes counted one by one; higher codes are counted in the last place


cdef enum LoadSource:
    LOAD_UNKNOWN = -1
    LOAD_QUEUE = -2                 # how full the queue is


cdef enum LoopPhase:
    LOOP_RUNS = 0
    LOOP_DRAINS = 1                 # no accept, no reading; answers what was accepted
    LOOP_STOPS = 2                  # at once


ctypedef struct LoopCounters:       # relaxed; added to by the server loop only
    int64_t accepted                # connections
    int64_t frames                  # whole frames received, heartbeats included
    int64_t heartbeats
    int64_t entries                 # requests that the store took
    int64_t records                 # messages in them
    int64_t bytes_in
    int64_t bytes_out
    int64_t replies
    int64_t unanswered              # requests stored for a connection that was gone
    int64_t accept_pauses           # pauses because descriptors or memory were used up
    int64_t refused[LOOP_CODES]
    int64_t closed[CLOSE_REASONS]


ctypedef struct HubShared:          # constant while server loops run, except the atomics
    Committer* committer
    const HashKey* window_key       # of the store's de-duplication window; NULL without one
    const WireOps* wire             # of what is stored
    Listener* listeners
    int listener_count
    int producer_listeners          # of them: those of DataProxy's producers, which are the first
    FaultTable* faults              # never NULL while server loops run
    ServerProfile profile           # what is a listener's own is taken from there: state.take_profile
    size_t max_frame
    int64_t max_connections
    int64_t read_idle_us
    size_t reply_bytes              # unread answers of one connection
    int64_t queue_bytes             # accepted and not yet committed or answered in turn, for each server loop
    int64_t held_bytes              # half-received frames, and as much of unread answers, for each server loop
    uint32_t partitions
    TlsHolder* tls                  # settings of all connections; NULL: they are plain
    CallQueue* calls                # calls of control; NULL: no listener takes any
    void* remoting                  # what RocketMQ's clients need (server/rocketmq); NULL: no listener is theirs
    const WireOps* remoting_wire    # what they speak
    void* broker                    # what calls of data look at (server/tubemq); NULL: no listener takes any
    # Atomics.
    int64_t least_token             # ServerProfile
    int64_t most_token
    int64_t named_partitions        # ServerProfile.partitions
    int64_t connections
    int64_t clock_skew_us           # added to the monotonic clock (tests)
    int64_t phase                   # LoopPhase
    int64_t deadline_us             # end of draining
    int64_t orders                  # counts changes of listeners and faults that server loops have to follow
    pthread_mutex_t mutex           # for the threads that wait until all loops have followed
    pthread_cond_t followed


ctypedef struct ServerLoop:
    HubShared* shared
    int number                      # of the loop in its hub
    # Any thread.
    Wakeup wakeup
    pthread_mutex_t mutex           # guards the inbox
    Entry* inbox                    # entries back from the store, in commit order
    Entry* inbox_last
    Call* called                    # calls of control that are answered
    Call* called_last
    int64_t queued_bytes            # atomic; changed by the loop only
    int64_t sessions                # atomic copy of table.count
    int64_t frame_bytes             # atomic copy: bytes of half-received frames
    int64_t answer_bytes            # atomic copy: bytes of unread answers
    int64_t ended                   # atomic: the loop has returned
    int64_t followed                # atomic: number of orders that it has carried out
    LoopCounters counters
    Peers peers                     # producers of DataProxy that are connected
    # The loop only.
    Poller poller
    SessionTable table
    Session* dirty                  # replies to write
    Session* resumed                # have room for answers again
    Session* parked                 # not read until the queue is shorter
    Session* graves                 # closed in this round
    Entry* chain                    # accepted in this round
    Entry* chain_last
    int64_t outstanding             # entries at the store
    void* fetches                   # calls that wait for messages (server/tubemq); NULL: none ever did
    void* pulls                     # the same of RocketMQ's clients (server/rocketmq)
    int64_t pull_due_us             # as the next
    int64_t fetch_due_us            # when the first of them has waited for long enough; 0: none waits
    Holders holders                 # who holds half-received frames and unread answers
    bint collecting                 # connections that hold too much memory are being closed
    bint choked                     # the queue is full
    bint accepting
    bint watched[FAMILIES][LISTENERS_MOST]      # the sockets in the poller
    int64_t kills[LISTENERS_MOST]   # of each listener: kills that were carried out
    Held* delayed                   # what faults delay, by time
    int64_t accept_again_us         # with accepting false: when to try again; 0 = never
    int64_t linger_until_us         # when a lingering connection is given up; 0 = there is none
    int64_t now_us
    int64_t wall_ms
    ServerProfile profile
    Request request
    IdReader id_reader
    RecvBuf spare                   # empty buffer that the next reader takes
    int64_t read_share              # most bytes that a connection is read for in this round


cdef int loop_init(ServerLoop* d, HubShared* shared) noexcept nogil     # ST_OK or ST_SYSTEM
cdef void loop_release(ServerLoop* d) noexcept nogil                    # its descriptors, when the loop has ended
cdef void loop_free(ServerLoop* d) noexcept nogil                       # after the loop and the committer have ended
cdef int64_t loop_clock(ServerLoop* d) noexcept nogil
cdef void loop_done(void* origin, Entry* chain) noexcept nogil          # the committer's callback, any thread
cdef void loop_answered(void* origin, Call* call) noexcept nogil        # takes an answered call back, any thread
cdef Entry* loop_take(ServerLoop* d) noexcept nogil                     # all entries in the inbox
cdef Call* loop_take_calls(ServerLoop* d) noexcept nogil                # all calls there
cdef bint is_compat(const ServerLoop* d, const Session* s) noexcept nogil
cdef void take_profile(ServerLoop* d, Session* s) noexcept nogil        # that of the session's listener, as it is now
cdef void mark_dirty(ServerLoop* d, Session* s) noexcept nogil
cdef void park_session(ServerLoop* d, Session* s) noexcept nogil
cdef void unpark_all(ServerLoop* d) noexcept nogil
cdef void end_session(ServerLoop* d, Session* s, int reason) noexcept nogil       # close once everything is answered
cdef void close_session(ServerLoop* d, Session* s, int reason) noexcept nogil     # now
cdef void hold_frames(ServerLoop* d, Session* s, bint progress) noexcept nogil    # enter what they take, keep the bound
cdef void hold_answers(ServerLoop* d, Session* s, bint progress) noexcept nogil
# Turn the request that was just judged into a refusal: ST_OK or ST_NO_MEMORY.
cdef int refuse_request(ServerLoop* d, const Session* s, int code, const char* words) noexcept nogil
cdef void count_code(ServerLoop* d, int code) noexcept nogil
