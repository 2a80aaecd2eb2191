"""Client connections as data: the structs that the decision modules read and write.

A connection has no descriptor.  The executor (or a simulator on virtual time) owns the socket of a connection, passes
received bytes and the time to the connection, and does the work that ``Connection.flags`` asks for.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.pack.keyqueue cimport KeyQueue
from dataproxy._core.pack.pack cimport Pack, PackList, PackPool
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.base.timers cimport Timer, Timers
from dataproxy._core.base.address cimport Address
from dataproxy._core.conn.framing cimport FrameRules
from dataproxy._core.wire.api cimport Admission, WireOps


cdef enum ConnectionState:
    CS_IDLE = 0         # has no endpoint (its proxy left the list)
    CS_CONNECTING = 1   # a connect is under way
    CS_ACTIVE = 2       # takes frames
    CS_BACKOFF = 3      # waits for its next connect
    CS_CLOSED = 4       # final: the pool is closing


cdef enum ConnectionFlag:       # what the executor has to do for a connection
    CF_CONNECT = 1
    CF_CLOSE = 2
    CF_WRITE = 4
    CF_LOOK = 8             # ask the socket how many bytes it still holds: connections_looked


cdef enum:
    MAX_REPLY = 1048576     # bytes of a server's frame, which may quote our attributes twice; our frames do not count
    REASON_ROOM = 160


cdef enum:
    TURNS = 64              # counters of a connection; groups with the same remainder share one


cdef enum:
    LOAD_WINDOW = 30        # answers whose loads are averaged
    LOAD_UNKNOWN = -1
    LOAD_STOPPED = -2


cdef enum:
    CLASSES = 1600          # codes with a RetryClass of their own: InLong's below 256, statuses of HTTP, then TubeMQ's


cdef enum TimerKind:
    TK_PACK = 1
    TK_CONNECTION = 2


cdef enum LocalCode:        # results that no server gave; negative, so that they never equal a server's code
    LC_TIMEOUT = -1         # delivery_timeout passed
    LC_ACK_TIMEOUT = -2
    LC_CONNECTION_LOST = -3
    LC_CLOSED = -4          # the producer's close deadline passed
    LC_ENCODE = -5          # the frame could not be built
    LC_NO_MEMORY = -6
    LC_DROPPED = -7         # the buffer was full when the message was sent
    LC_DISPLACED = -8       # given up to make room for newer messages
    LC_NO_SINK_ACK = -9     # delivery_timeout passed, and no ack came from behind the message queue


cdef enum RetryClass:       # the numbers of dataproxy.codes.RetryClass
    RC_OK = 0
    RC_NODE = 1             # another node
    RC_BACK = 2             # back off, any node
    RC_LATE = 3             # an unknown group or stream, which may become known: retry slowly, for some time
    RC_NEVER = 4            # permanent
    RC_DRAINED = 5          # another node, and avoid this one for a while
    RC_FEW = 6              # back off, any node, a few times
    RC_FRAMING = 7          # permanent, and the connection is replaced
    RC_SPLIT = 8            # permanent for a single message; a pack of several is sent again in parts


cdef enum ConnectionEvent:
    CE_CONNECTED = 1
    CE_CONNECT_FAILED = 2   # detail: errno, or 0 for a timeout
    CE_LOST = 3             # detail: errno, 0 for end of stream
    CE_SILENT = 4           # frames unanswered for ack_timeout, or no progress; closed
    CE_PROTOCOL = 5         # bytes that are no reply; closed
    CE_UNKNOWN_FRAME = 6    # detail: message type; skipped
    CE_DRAINED = 7          # detail: server code; the node is avoided for a while
    CE_REFUSED = 8          # detail: server code of a refused frame, with the server's text
    CE_DEAF = 9             # heartbeats unanswered; closed
    CE_FRAMING = 10         # detail: server code which says that it lost the frame boundaries; closed
    # Answers that are ignored; detail: code.
    CE_MISDIRECTED = 11     # to a frame that has no open attempt over this connection
    CE_UNEXPECTED = 12      # to a number that is not pending
    CE_STATE = 13  # an illegal change of a connection's state was asked for and not made; a defect of this library
    CE_UNKNOWN_GROUP = 14   # detail: server code of a frame whose stream is unknown; text: the group
    CE_OUT = 15             # a proxy takes no frames for a while; detail: OutReason, text: what was seen
    CE_RETURNED = 16        # it takes frames again; detail: the OutReason for which it was out
    CE_SWAPPED = 17         # a standby took the place of an active connection; detail: SwapReason, text: of which proxy
    CE_HANDSHAKE = 18       # detail: a number of the transport; a handshake takes long, and goes on


cdef enum OutReason:        # why a proxy takes no frames: conn/balance/outliers
    OR_NONE = 0
    OR_FAILURES = 1         # lost connections, failed connects and late answers, one after the other
    OR_REFUSALS = 2         # it refused most frames, for reasons of its own
    OR_SLOW = 3             # its answers take much longer than those of its peers
    OR_SILENT = 4           # it has frames to answer, and nothing has come for much longer than its peers take


cdef enum SwapReason:       # why a standby became active: conn/balance/standby
    SR_LOST = 1             # the active connection was lost
    SR_OUT = 2              # its proxy was taken out
    SR_LOAD = 3             # its proxy reports much more load than the standby's


cdef enum:
    OUT_REASONS = 5
    SWAP_REASONS = 4
    ANSWERS_KEPT = 8        # newest answer times of a connection; a power of two
    ONE_WEIGHT = 1000       # of a connection whose proxy has the mean load


# `text` (may be empty) is what the server said; it is borrowed.
ctypedef void (*EventSink)(void* context, int event, const char* label, int detail, Slice text) noexcept nogil


# A stream has become unknown to servers (`label` refused with `code`), or (NULL) nothing waits for it any more.
ctypedef void (*UnknownSink)(void* context, void* stream, const char* label, int code) noexcept nogil


ctypedef struct Endpoint:
    Address address
    int family
    Address other           # second address of the same proxy; while connecting fails, both are tried in turn
    int other_family        # 0: there is none
    int cluster             # number of the cluster that it belongs to
    int64_t node            # stands for the id that the discovery knows it by, 0 for none
    char label[64]          # host:port as the user knows it
    char name[256]          # host, for TLS: what the proxy's certificate must be for
    int stores              # of servers with partitions: how many stores of a topic they have, each with `partitions`
    int partitions          # 0: which partition takes a request is known before a server is chosen


ctypedef struct Health:         # what the pool knows of a proxy, whichever connections it has to it
    # Doubt: conn/balance/router
    bint doubted            # a connection to it was closed for silence, and nothing has come from it since
    int64_t until_us        # end of the avoidance; it ends earlier if the proxy sends something
    # Outliers: conn/balance/outliers
    int out                 # OutReason: it takes no frames; OR_NONE: it does
    int64_t out_until_us    # earliest time of its return
    int probes              # heartbeats answered in time since then
    int ejections           # in a row: each doubles the time
    int64_t returned_us     # its last return
    int failures            # in a row, without an answer to a frame in between
    int64_t refusals        # of the present window
    int64_t window_us       # its begin
    int64_t window_answers  # answers that had come before it
    int64_t since_us        # begin of its slow start, 0: full weight from the beginning
    bint added              # it was not in the list before the present one


ctypedef struct Shape:          # how many connections to a cluster a pool keeps, and with which proxies of it it begins
    int connections         # that take frames
    int proxies             # different proxies that these use at most
    int standbys            # further connections, without frames
    int offset              # place in the cluster of the first proxy of the connections
    int standby_offset      # and of the standbys


ctypedef struct RetryBudget:    # executor only: router.budget_take
    int64_t tokens          # thousandths of a resend
    int64_t share           # thousandths of a resend that each delivered frame earns
    int64_t refilled_us


ctypedef struct Connection      # declared below
ctypedef struct ConnectionPool


ctypedef struct ClusterPart:    # one cluster in a list of proxies
    int cluster
    int first               # index of its first endpoint
    int n
    Shape shape             # the connections that its executor wants
    # Of the lists that a pool uses: what its connections to the cluster share.  It stays when the list changes.
    int index               # in the list
    int next                # where the next look for a proxy begins, counted from `first`
    Connection** active     # connections that take frames
    int n_active
    uint32_t cursor         # where the search for the least avoided of them begins
    int64_t top_weight      # none of them has more
    int64_t peers_us        # median of the answer times of its proxies at the last comparison, 0: unknown
    int64_t swap_at_us      # when loads are compared again
    int turn                # of the standbys, when one of them is moved to another proxy
    RetryBudget budget


ctypedef struct ProxyLists:     # the proxies of all clusters; owns its arrays: conn/clusters
    Endpoint* endpoints
    int n_endpoints
    ClusterPart* parts
    int n_parts
    int* groups             # cluster by the number of the group, negative: not known; NULL: one cluster for all groups
    int* fixed              # by the same number: the partition that takes its requests, negative: any of the server's
    int n_groups
    Admission admission     # what requests show to servers


ctypedef struct ConnectionConfig:
    int ack                     # AckLevel
    int64_t ack_timeout_us
    int64_t connect_timeout_us
    int64_t retry_backoff_us
    int64_t retry_backoff_max_us
    int64_t reconnect_backoff_us
    int64_t reconnect_backoff_max_us
    int64_t heartbeat_us        # 0 = off
    int heartbeat_kind          # HeartbeatKind
    int heartbeat_retries
    int64_t avoid_us            # how long a drained node is avoided
    int late_attempts           # attempts of a frame refused with RC_FEW
    int64_t unknown_us          # how long a frame refused with RC_LATE is tried again, 0: not at all
    int64_t retry_share         # resends without success for each 1,000 delivered frames
    bint keep_outliers          # no proxy is taken out for what it does
    size_t max_reply            # largest frame of a server
    int8_t classes[CLASSES]     # RetryClass by server code
    int unknown_class           # RetryClass of all other codes


ctypedef struct LoadWindow:     # owned by the executor of its connection
    int32_t samples[30]         # ring; LOAD_UNKNOWN for an answer without a usable load
    int64_t total               # answers ever taken


ctypedef struct InFlight:       # sequence number -> pack; owned by one executor
    Pack** slots                # open addressing, linear probing; NULL is empty
    size_t mask                 # capacity - 1 (a power of two)
    size_t n


ctypedef struct ConnectionCounters:   # written by the executor, read by any thread (relaxed)
    int64_t state
    int64_t sent_bytes
    int64_t read_bytes
    int64_t sent_frames
    int64_t acked_frames
    int64_t waiting             # frames in the send queue
    int64_t in_flight
    int64_t unanswered
    int64_t load                # average, or LOAD_UNKNOWN / LOAD_STOPPED
    int64_t connects
    int64_t losses
    int64_t standby             # it is connected in case that it is needed
    int64_t out                 # OutReason of its proxy
    int64_t answer_us           # median of its newest answer times, 0 while unknown


ctypedef struct Connection:     # executor only, except `counters`
    int index
    int state                   # ConnectionState; pool.connection_enter alone writes it
    int flags                   # ConnectionFlag: work for the executor
    bint dirty                  # in the pool's dirty list
    Connection* next_dirty
    int active_slot             # index in ClusterPart.active, -1 if not there
    int endpoint                # index into ConnectionPool.endpoints, -1 without one
    int part                    # index of its cluster in ConnectionPool.lists, -1 without a listed proxy
    Endpoint peer               # a copy of its own, because the list may change
    bint retired                # its endpoint left the list; closes when nothing waits
    bint renewed                # the server ends it after an answer: the next connect need not wait
    bint standby                # it takes no frames; another connection may get its place: conn/balance/standby
    bint leaving                # goes to another proxy when nothing waits, and takes no frames until then
    int64_t weight              # thousandths, from its load and that of the others: conn/balance/router
    int64_t swapped_us          # when it became active in the place of another one, 0: it did not
    # Send queue: a heartbeat (only at a frame boundary), then frames in order.
    PackList queue
    int64_t queue_bytes
    size_t head_sent            # bytes of queue.head already written
    int gathered                # packs at the head of the queue that are being written
    Buf control
    size_t control_sent
    # Frames written and not answered, in the order of writing.
    PackList flight
    int64_t flight_bytes
    Timer timer
    # Progress, in bytes given to the connection's socket since the connect (counters.sent_bytes): conn/progress.
    int64_t acked               # bytes that the peer's host had acknowledged at the last look
    int64_t heartbeat_end       # position of the newest heartbeat's last byte
    int64_t shaken_frames       # counters.sent_frames when the newest heartbeat was asked for (WireOps.shaken)
    bint waits                  # bytes wait here or in the socket: seen at the last look, or written since
    int64_t moved_us            # with `waits`: when progress was last seen
    int64_t connect_deadline_us
    bint shaking                # connecting: the peer's host has accepted, and a handshake has begun
    int64_t reconnect_at_us
    int64_t heartbeat_at_us
    int64_t last_read_us
    int64_t avoid_until_us      # because the server asked for it
    int close_event             # reason for CF_CLOSE: a ConnectionEvent, 0 = intended
    int close_detail            # of that event
    int failures                # failed connects and losses in a row, without a reply in between
    int unanswered              # heartbeats
    # Attempts written to its socket minus matched answers.  It may be too large, but never too small: a late
    # answer to a frame that has its result is not subtracted, because it looks like an answer to an unknown number.
    int64_t owed
    int64_t read_before         # counters.read_bytes when the connection was made
    int64_t told_us             # when an ignored answer was last reported
    # Answer times in microseconds, from the last byte written to the answer: conn/balance/outliers.
    int64_t answers[8]          # ring of the newest ANSWERS_KEPT
    uint32_t n_answers          # since the connect
    uint32_t judged             # of them at the last comparison
    int64_t asked_us            # when its newest heartbeat was sent
    int64_t acked_before        # counters.acked_frames at the last failure of its proxy
    int reason_code             # of the last refusal over this connection that named no frame, 0 = none
    int64_t reason_end          # bytes that had been written (counters.sent_bytes) when this refusal came
    char reason[160]            # REASON_ROOM
    uint32_t turns[TURNS]       # requests for a server's partitions, by the number of the group
    LoadWindow load
    ConnectionCounters counters


ctypedef struct ConnectionPool:  # executor only
    const WireOps* wire
    bint in_turn                # of the wire
    ConnectionConfig config
    Connection** connections    # all slots ever made; a slot is reused, and freed only with the pool
    int n_connections
    int n_active                # connections that take frames, of all clusters
    Connection* (*choose)(ConnectionPool* pool, ClusterPart* part, int64_t now_us) noexcept nogil
    #                             choose_connection; tests compare it with other ways
    Endpoint* endpoints         # those of `lists`
    int n_endpoints
    Health* health              # of each of them
    bint doubted                # some proxy is doubted; saves looking at a proxy's health for each reply
    ProxyLists lists
    int64_t judge_at_us         # when outliers are looked for again
    int64_t look_at_us          # when connections of proxies that are out are moved
    int64_t* medians            # of answer times, sorted: working memory
    RetryBudget budget          # with which a new cluster begins
    uint32_t cursor             # the same
    PackList waiting            # packs that no connection could take
    int64_t aside               # of them: those that wait while connections to other clusters work
    PackList backoff            # packs that wait for their next attempt
    PackList settled            # packs that got their result in this round; the executor hands them over
    KeyQueue* freed             # key queues whose next pack may be sent
    InFlight in_flight
    Timers timers
    uint64_t random
    Connection* dirty
    const FrameRules* rules     # for the frames of parts; constant
    PackPool* spares            # counts the memory of packs; constant, NULL: it is not counted
    int64_t split_bytes         # extra bytes of packs that are being split
    int64_t split_waiting       # packs in `backoff` that wait for memory to be split
    uint32_t part_number        # of the newest part
    bint closing
    bint sheds                  # senders may give up unsent packs: a pack must be claimed before writing and settling
    int64_t wall_offset_ms      # wall clock minus the pool's clock, for times that are sent over the wire
    EventSink event
    void* event_context
    UnknownSink unknown         # with `event_context`; NULL: nobody listens
    int64_t* unknown_bytes      # charges of packs that wait for unknown streams, of all executors; atomic
    int64_t unknown_most        # their share: more is given up when other streams need the room; constant
    # Counters read by any thread (relaxed).
    int64_t flight_bytes        # of all connections
    int64_t unwritten           # packs that could be written now: in send queues, or waiting for a connection
    int64_t retries
    int64_t outs[5]             # proxies taken out, by OutReason
    int64_t returns
    int64_t swaps[4]            # by SwapReason
    int64_t held_back           # times that a resend waited for the retry budget
    int64_t unmatched           # replies to frames that are not pending or have no open attempt over that connection
    int64_t duplicates          # answers that came after the first attempt was given up
    int64_t copies              # messages in them
    int64_t known               # messages of which a server said that it had stored them before
    int64_t differed            # messages of which a server said that it knew their ids with other bytes
    int64_t filtered            # successes that said how long the server remembers messages
    int64_t reach               # the shortest such time in seconds since the last reading of this field; -1: none


cdef bint connection_change_allowed(int from_state, int to_state) noexcept nogil
cdef const char* connection_state_name(int state) noexcept nogil
