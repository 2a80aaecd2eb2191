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
from dataproxy._core.wire.api cimport WireOps


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
    LOAD_WINDOW = 30        # answers whose loads are averaged
    LOAD_UNKNOWN = -1
    LOAD_STOPPED = -2


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


cdef enum RetryClass:       # the numbers of dataproxy.codes.RetryClass
    RC_OK = 0
    RC_NODE = 1             # another node
    RC_BACK = 2             # back off, any node
    RC_LATE = 3             # configuration that may come late: retry slowly and a few times
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


# `text` (may be empty) is what the server said; it is borrowed.
ctypedef void (*EventSink)(void* context, int event, const char* label, int detail, Slice text) noexcept nogil


ctypedef struct Endpoint:
    Address address
    int family
    Address other           # second address of the same proxy; while connecting fails, both are tried in turn
    int other_family        # 0: there is none
    char label[64]          # host:port as the user knows it


ctypedef struct Doubt:          # about a proxy
    bint doubted            # a connection to it was closed for silence, and nothing has come from it since
    int64_t until_us        # end of the avoidance; it ends earlier if the proxy sends something


ctypedef struct ConnectionConfig:
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
    int late_attempts           # attempts of a frame refused with RC_LATE or RC_FEW
    int64_t retry_share         # resends without success for each 1,000 delivered frames
    size_t max_reply            # largest frame of a server
    int8_t classes[256]         # RetryClass by server code
    int unknown_class           # RetryClass of all other codes


ctypedef struct LoadWindow:     # owned by the executor of its connection
    int32_t samples[30]         # ring; LOAD_UNKNOWN for an answer without a usable load
    int64_t total               # answers ever taken


ctypedef struct RetryBudget:    # executor only: router.budget_take
    int64_t tokens          # thousandths of a resend
    int64_t share           # thousandths of a resend that each delivered frame earns
    int64_t refilled_us


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


ctypedef struct Connection:     # executor only, except `counters`
    int index
    int state                   # ConnectionState; pool.connection_enter alone writes it
    int flags                   # ConnectionFlag: work for the executor
    bint dirty                  # in the pool's dirty list
    Connection* next_dirty
    int active_slot             # index in ConnectionPool.active, -1 if not there
    int endpoint                # index into ConnectionPool.endpoints, -1 without one
    Endpoint peer               # a copy of its own, because the list may change
    bint retired                # its endpoint left the list; closes when nothing waits
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
    bint waits                  # bytes wait here or in the socket: seen at the last look, or written since
    int64_t moved_us            # with `waits`: when progress was last seen
    int64_t connect_deadline_us
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
    int64_t told_us             # when an ignored answer was last reported
    int reason_code             # of the last refusal over this connection that named no frame, 0 = none
    int64_t reason_end          # bytes that had been written (counters.sent_bytes) when this refusal came
    char reason[160]            # REASON_ROOM
    LoadWindow load
    ConnectionCounters counters


ctypedef struct ConnectionPool:  # executor only
    const WireOps* wire
    ConnectionConfig config
    Connection** connections    # all slots ever made; a slot is reused, and freed only with the pool
    int n_connections
    Connection** active         # connections that take frames
    int n_active
    uint32_t cursor             # round-robin
    Endpoint* endpoints
    Doubt* doubts               # about each of them: conn/router
    int n_endpoints
    int next_endpoint
    PackList waiting            # packs that no connection could take
    PackList backoff            # packs that wait for their next attempt
    PackList settled            # packs that got their result in this round; the executor hands them over
    KeyQueue* freed             # key queues whose next pack may be sent
    InFlight in_flight
    Timers timers
    uint64_t random
    RetryBudget budget
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
    # Counters read by any thread (relaxed).
    int64_t flight_bytes        # of all connections
    int64_t unwritten           # packs that could be written now: in send queues, or waiting for a connection
    int64_t retries
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
