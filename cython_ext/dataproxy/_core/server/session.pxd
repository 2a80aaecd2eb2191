"""One accepted connection, and the table of all connections of one server loop."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.server.calls cimport Endpoint
from dataproxy._core.server.faults.table cimport FaultWhat, SessionFaults
from dataproxy._core.server.holders cimport HOLDING_KINDS, Holder, Holding
from dataproxy._core.server.peers cimport Peer
from dataproxy._core.base.address cimport ADDRESS_TEXT
from dataproxy._core.net.poller cimport Poller
from dataproxy._core.net.recvbuf cimport RecvBuf
from dataproxy._core.net.transport cimport Transport
from dataproxy._core.wire.api cimport FrameMark, WireOps


cdef enum CloseReason:
    CLOSE_NONE = 0
    CLOSE_PEER = 1          # the peer ended the stream
    CLOSE_RESET = 2         # reading or writing failed
    CLOSE_PROTOCOL = 3      # out of step, or a frame that is answered by closing
    CLOSE_OVERSIZE = 4      # a frame over max_frame
    CLOSE_IDLE = 5
    CLOSE_REPLIES = 6       # too many unread replies (compat)
    CLOSE_MEMORY = 7        # no memory, or the budget of half-received frames is used up
    CLOSE_REFUSED = 8       # over max_connections
    CLOSE_STOPPED = 9       # the hub stops
    CLOSE_FAULT = 10        # a fault was asked for
    CLOSE_TLS = 11          # the handshake failed, or a record was not what the keys say
    CLOSE_ANSWERED = 12     # the answer was the connection's last: the peer asked for that, or its code says so
    CLOSE_REASONS = 13


cdef enum Hold:             # why a session is not read; bits
    HOLD_REPLIES = 1        # too many answers are unread, or will be; whole frames may wait in `received`
    HOLD_QUEUE = 2          # too much is waiting for the store
    HOLD_ENDING = 4         # nothing more will be read: close once everything is answered
    HOLD_FROZEN = 8         # a fault
    HOLD_SLOW = 16          # a fault: not read for a moment


ctypedef struct Answer:     # one block: the struct, then `n` bytes; waits until every earlier request is answered
    Answer* next
    int64_t place
    FaultWhat* fault        # what goes wrong with it once it is its turn, NULL: nothing; owned
    size_t n


ctypedef struct Session:    # owned by one server loop
    Session* idle_prev      # by last activity, oldest first
    Session* idle_next
    Session* dirty_next     # has replies to write at the end of the round
    Session* parked_prev    # HOLD_QUEUE
    Session* parked_next
    Session* resumed_next   # may go on with the frames that it has received
    Session* grave_next     # closed, freed at the end of the round
    uint64_t id             # generation << 32 | slot
    int64_t active_us       # last activity, for the idle limit
    int64_t pending         # entries on their way through the store, calls, and replies that a fault holds back
    int64_t places          # places given to requests that have an answer, or go to the store
    int64_t answered        # the last place whose answer was given; answers go out in the order of places
    Answer* waiting         # answers whose turn has not come, by place
    Answer* waiting_last
    size_t waiting_bytes
    size_t owed_bytes       # answers of the entries that are on their way through the store, and of calls
    Peer* peer              # of a producer of DataProxy: what is known of it; NULL: nothing
    Holder* holder          # the address that its memory is counted for
    Holding holdings[HOLDING_KINDS]
    int64_t number          # of the connection at its listener, from 1
    int64_t received_bytes
    SessionFaults* faults   # NULL until a fault looks at the session
    Transport transport
    FrameMark mark          # of the frame that `received` begins with
    RecvBuf received        # at most one half-received frame between rounds, unless HOLD_REPLIES or HOLD_FROZEN
    Buf output              # replies; those before output_start are written
    size_t output_start
    int interest            # what the poller was told
    int hold                # Hold bits
    int listener            # index of the listener that accepted it
    const WireOps* wire     # of that listener
    int reason              # CloseReason of HOLD_ENDING
    bint dirty
    bint resumed
    bint parked
    bint lingers            # all answers are sent; bytes that come are discarded until the peer ends the stream too
    bint closed
    int confirms            # positions of consumers that are on their way to the store
    bint remoting           # it speaks RocketMQ's protocol; only then the next three are used
    Endpoint near
    Endpoint far
    void* line              # server/rocketmq/lines; one block, NULL: nothing yet
    void* polls             # what it asks for and waits for (server/tubemq/fetches); one block, NULL: nothing yet
    uint8_t source_n
    char source[ADDRESS_TEXT]   # numeric address of the peer


ctypedef struct SessionTable:
    Session** slots         # NULL where free
    uint32_t* generations
    uint32_t* vacant        # stack of free slots
    uint32_t vacant_n
    uint32_t size           # slots in use or vacant
    uint32_t room
    int64_t count
    Session* idle_first
    Session* idle_last


cdef void table_init(SessionTable* t) noexcept nogil
cdef void table_free(SessionTable* t) noexcept nogil            # closes and frees every session left
cdef Session* table_add(SessionTable* t, size_t receive_limit) noexcept nogil       # NULL: no memory
cdef Session* table_find(SessionTable* t, uint64_t id) noexcept nogil               # NULL: closed meanwhile
cdef void table_remove(SessionTable* t, Session* s) noexcept nogil      # the caller frees it with session_free
cdef void table_touch(SessionTable* t, Session* s, int64_t now_us) noexcept nogil

cdef void session_free(Session* s) noexcept nogil
cdef Slice session_source(Session* s) noexcept nogil
cdef int session_reply(Session* s, Slice reply) noexcept nogil              # ST_OK or ST_NO_MEMORY
cdef int session_keep(Session* s, int64_t place, Slice reply, const FaultWhat* what) noexcept nogil     # until its turn
cdef Answer* session_next(Session* s) noexcept nogil        # the kept answer whose turn it is, or NULL; the caller's
cdef void answer_free(Answer* answer) noexcept nogil
cdef size_t session_unsent(const Session* s) noexcept nogil
cdef int session_flush(Session* s, size_t* sent) noexcept nogil             # ST_OK, ST_WANT_WRITE, ST_SYSTEM
cdef int session_linger(Session* s) noexcept nogil                          # ST_OK or ST_SYSTEM
cdef bint session_delivered(const Session* s) noexcept nogil
cdef int session_discard(Session* s) noexcept nogil             # ST_OK, ST_EOF when the peer has ended, ST_SYSTEM
cdef int session_watch(Session* s, Poller* p) noexcept nogil                # tell the poller what matters now
