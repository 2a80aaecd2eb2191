"""Interface of a wire protocol for io and the layers above: tables of pure functions over bytes.

A wire has no sockets, clocks, locks or Python objects.  Time is an argument.  Every function is reentrant and may
run on any thread.  Slices in results borrow from the bytes that were passed in.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from dataproxy._core.base.buf cimport Buf
from dataproxy._core.base.slice cimport Slice, slice_of


cdef enum EventKind:
    EV_ACK = 1              # answer to a data frame
    EV_HEARTBEAT_ACK = 2
    EV_UNKNOWN = 3          # a whole frame that this wire does not know; it is skipped


cdef enum HeartbeatKind:
    HB_BINARY = 8
    HB_MESSAGE = 1


cdef enum ItemForm:         # how the items of a pack body are laid out
    ITEM_LENGTH = 0         # u32 length, body
    ITEM_ATTRS = 1          # u32 length, body, u32 length, attribute text
    ITEM_LINES = 2          # bodies joined by LF
    ITEM_OBJECTS = 3        # what `arrange` made of ITEM_ATTRS: protobuf messages, field 1 of each holds fields 1 to 3


cdef enum AckLevel:         # which answer a frame asks for
    ACK_SOURCE = 0          # the proxy's own, when it has accepted the frame
    ACK_SINK = 1            # one from behind the proxy's message queue, when the frame is stored there
    ACK_NONE = 2            # none


ctypedef struct FamilyForm:     # what messages of a family (FrameSpec) can carry
    int items               # ItemForm of messages that consist of a body alone
    Slice least             # with ITEM_ATTRS: the attribute text of messages that have none; else empty
    bint ids                # they can have ids that the caller chooses
    bint text               # they are UTF-8, and not blank
    bint arranged           # their items are written again before they are framed: WireOps.arrange
    bint single             # a frame has one of them, and moves its bytes


ctypedef struct WireEvent:
    int kind                # EventKind
    int msg_type
    bint has_seq
    uint32_t seq            # with has_seq: the sequence number that is answered
    int code                # acks: 0 is success, else the server's error code
    int known               # acks: messages that were not stored, because they are stored already
    Slice message           # acks: the server's error text
    Slice node              # acks: the answering node's own name (dpIp)
    Slice text              # acks: the whole attribute text
    int load                # heartbeat acks: 0..65534, or -1 when unknown
    int reach               # acks: seconds for which the server remembers such messages; -1: not given
    int differed            # acks: messages whose id was known with other bytes, stored or not
    uint8_t closes          # the server ends the connection after this answer
    uint8_t unsure          # with `closes` and a code: the frame may be stored all the same


ctypedef struct FrameSpec:  # fields of one frame besides its items
    int family              # the wire's number of a layout of frames (InLong: the message type of the plain form)
    int items               # ItemForm
    bint compressed         # the body is one snappy block
    uint32_t seq
    uint32_t count          # messages, 1..65535
    int64_t data_time_ms
    Slice attrs             # groupId=...&streamId=...[&key=value]
    Slice id                # the pack's own id, an attribute of the frame; empty: none
    size_t apart            # bytes of the body that lie elsewhere: they count, and are not in the buffer
    Slice body              # the items, where they lie; `tail_room` may depend on them
    int ack                 # AckLevel
    Slice origin            # address of the sending host for a trace; empty: no trace
    int64_t origin_ms       # when the frame was begun, for a trace
    Slice sender            # the client's own name, where servers want one
    size_t proof_n          # bytes of the Admission.proof that `place` writes
    int64_t answer_ms       # how long the client waits for an answer


ctypedef struct Admission:  # what a client shows to servers with each request, given to it by those who admit it
    int64_t token
    size_t proof_n          # 0: none is asked for
    char proof[400]


cdef enum RequestAction:
    REQ_STORE = 1           # store `entry`, then send `reply` (if not empty)
    REQ_REPLY = 2           # nothing to store: send `reply` (if not empty) now
    REQ_CLOSE = 3           # close the connection without a byte
    REQ_CALL = 4            # not for the store: `call_kind` says who answers it


cdef enum CallKind:
    CALL_CONTROL = 1        # who is a member of what, and reads what
    CALL_FETCH = 2          # stored messages are asked for
    CALL_CONFIRM = 3        # messages that were fetched count as read


ctypedef struct FrameMark:      # how far the first frame of a stream was looked at; all zero before its first byte
    uint64_t place[4]           # the wire's own


ctypedef struct Request:    # what a server does with one frame; used again for the next, after request_begin
    int action              # RequestAction
    int code                # error code that `reply` carries, 0 for success
    int msg_type            # for logs and tests
    bint heartbeat          # it carries no messages
    Slice group             # borrowed from the frame; valid until the frame's bytes go
    Slice stream
    uint32_t records
    int64_t data_time_ms
    bint order              # syncSend=true
    Slice partition_key
    int32_t partition       # of the group that the request names; -1: the server chooses it
    int call_kind           # CallKind; this and the next six with REQ_CALL
    uint32_t serial         # what the answer has to carry
    int32_t version
    int32_t service
    int32_t method
    Slice call              # the message of the request, borrowed from the frame or from `scratch`
    Slice fields            # of the header, which was read and is good; where the wire says so
    bint unanswered         # with REQ_STORE: a success gets no answer; a refusal is made from `reply`
    bint closes             # the connection ends after this answer
    Buf reply               # the answer to send (after the commit for REQ_STORE)
    Buf entry               # InLongMsg container to store, without `body`
    Slice body              # part of the container, borrowed from the frame, that belongs into `entry` at `body_at`
    size_t body_at
    Buf scratch             # the wire's own working memory


cdef inline void request_begin(Request* r) noexcept nogil:
    """Forget the frame before, whatever wire read it.  Locality: server loop."""
    r.action = REQ_CLOSE
    r.code = 0
    r.msg_type = 0
    r.heartbeat = False
    r.group = slice_of(NULL, 0)
    r.stream = slice_of(NULL, 0)
    r.records = 0
    r.data_time_ms = 0
    r.order = False
    r.partition_key = slice_of(NULL, 0)
    r.partition = -1
    r.call_kind = 0
    r.serial = 0
    r.version = 0
    r.service = 0
    r.method = 0
    r.call = slice_of(NULL, 0)
    r.fields = slice_of(NULL, 0)
    r.unanswered = False
    r.closes = False
    r.reply.n = 0
    r.entry.n = 0
    r.body = slice_of(NULL, 0)
    r.body_at = 0
    r.scratch.n = 0


ctypedef struct NumberedNames:  # names that a server's mapping gives to numeric ids; the slices outlive the request
    bint has_group
    bint has_stream
    bint translate          # store the names instead of the numbers
    Slice group             # at most 255 bytes each
    Slice stream


ctypedef struct ServerProfile:  # settings of the server role; constant while the server runs
    bint compat             # copy the reference server's quirks (else: strict)
    bint compress_entries   # msg-compressed
    bint borrow_body        # a body that is stored unchanged need not be copied to `entry`: see Request.body
    int service_code        # 0, or the code that every data request gets (1 not ready, 2 stopped)
    int load                # answer to heartbeats, -1 unknown
    Slice node_ip           # dpIp=
    Slice peer              # numeric address of the client
    size_t max_frame        # 0: no limit
    int port                # with compat: written into the trace, where an address is expected
    uint32_t partitions     # of each group, for requests that name one
    size_t max_message      # bytes of one message, for wires whose messages have a limit of their own
    int64_t least_token     # requests of data have to show a number from here on ...
    int64_t most_token      # ... to here; -1: nobody is asked for one
    bint (*known)(void* context, Slice group, Slice stream) noexcept nogil   # NULL: every topic is known
    # Look up numeric ids; NULL: requests that use them are refused.
    void (*numbered)(void* context, uint32_t group_num, uint32_t stream_num, NumberedNames* out) noexcept nogil
    void* context           # of both


ctypedef struct StoredItem:     # one message of a container whose messages have attributes of their own
    Slice id                    # its own id, empty without one
    Slice body


ctypedef struct StoredIds:      # how the messages of a container are named; borrowed from it and from `scratch`
    Slice pack                  # together with the index, the id of messages without an id of their own; may be empty
    Slice payload               # with count 0: the bytes of all messages, none of which has an id of its own
    size_t count                # else: the StoredItems


ctypedef struct WireOps:
    const char* name
    size_t head_room        # bytes a frame needs before its body
    # Answers carry no number: a client writes one request at a time to a connection, and the next answer is its.
    bint in_turn
    bint shaken             # a server may keep its answers until a heartbeat asks for one
    size_t spread           # bytes that one byte of a body becomes in a frame, at most
    bint any_order          # a client finds the request of an answer by its number: a server need not keep their order
    # Find the first frame in p[0:n]: ST_OK with *size, ST_NEED_DATA (with *size, or 0 while unknown),
    # ST_LIMIT (frame over max_frame) or ST_PROTOCOL (stream out of step; close).
    int (*delimit)(const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil
    # The same for a reader that gets a frame in many parts: `mark` has what was looked at, and nothing is looked at
    # twice.  NULL: `delimit` needs no more than the first bytes.
    int (*delimit_on)(FrameMark* mark, const uint8_t* p, size_t n, size_t max_frame, size_t* size) noexcept nogil
    # --- client role
    # Parse one whole frame from a server.  ST_OK or ST_PROTOCOL.
    int (*parse_reply)(const uint8_t* p, size_t n, WireEvent* event) noexcept nogil
    # Describe a family; ST_INVALID: there is none with this number.
    int (*family)(int number, FamilyForm* out) noexcept nogil
    int (*heartbeat)(int kind, int64_t now_ms, Buf* out) noexcept nogil     # NULL: servers answer none
    size_t (*tail_room)(const FrameSpec* spec) noexcept nogil   # bytes a frame needs after its body
    # Write the items of a pack again, in the same bytes and as ITEM_OBJECTS, and return their size; 0: a field
    # overflows.  NULL: items are framed as they are.
    size_t (*arrange)(const FrameSpec* spec, uint8_t* items, size_t n) noexcept nogil
    # Write header and trailer around the body at buf[head_room : head_room + body_n]; buf has tail_room bytes behind
    # the body.  On ST_OK the frame begins at buf[*start] and has *size bytes, those among them that spec.apart counts
    # and buf does not have.  ST_LIMIT: a field overflows.
    int (*frame)(const FrameSpec* spec, uint8_t* buf, size_t body_n, size_t* start, size_t* size) noexcept nogil
    # Turn the body that `frame` has changed where it lay into the n bytes that it was.  NULL: `frame` changes none.
    void (*restore)(uint8_t* body, size_t n) noexcept nogil
    # Write the name of the server (host:port) into a request that `frame` or `heartbeat` made.  NULL: they name none.
    void (*address)(uint8_t* request, size_t n, Slice server) noexcept nogil
    # Write into a request that `frame` made which partition of which store of the server takes it, and the client's
    # admission; a negative partition leaves what is written there.  The size stays the same.  NULL: requests name
    # neither.
    void (*place)(uint8_t* request, int store, int partition, const Admission* admission) noexcept nogil
    # Append `count` items of a pack in the form ITEM_ATTRS, each with its own name, so that the name stays the same in
    # a frame with a part of the pack.  ends[2 * i] gets the end of item i in p, ends[2 * i + 1] its end in `out`,
    # counted from the old end of `out`.  ST_OK, ST_INVALID (items of this form have no names), ST_PROTOCOL (no such
    # items) or ST_NO_MEMORY.
    int (*name_items)(const uint8_t* p, size_t n, int items, uint32_t count, Slice id, uint32_t* ends,
                      Buf* out) noexcept nogil
    # --- server role; all NULL: this wire has only the client's
    # Judge one whole frame.  Always fills `out`; ST_OK or ST_NO_MEMORY.
    int (*serve)(const ServerProfile* profile, const uint8_t* p, size_t n, int64_t now_ms, Request* out) noexcept nogil
    # Turn a success reply made by `serve` into a refusal with this code and text, appended to `out`.
    int (*refuse)(const uint8_t* reply, size_t n, int code, const char* message, Buf* out) noexcept nogil
    # The same, but the reply stays a success and tells how many messages the server knew before (WireEvent).
    int (*tell_known)(const uint8_t* reply, size_t n, int64_t known, int64_t differed, int64_t reach,
                      Buf* out) noexcept nogil
    # The same for a wire whose answers tell where the request's entry was stored: every success is written again.
    # NULL: they do not.
    int (*tell_stored)(const uint8_t* reply, size_t n, uint32_t partition, uint64_t offset, Buf* out) noexcept nogil
    # Read the ids of a stored container; `items` gets the StoredItems.  ST_OK, ST_PROTOCOL or ST_NO_MEMORY.
    int (*stored_ids)(const uint8_t* p, size_t n, Buf* scratch, Buf* items, StoredIds* out) noexcept nogil
    # Write a container again without some messages (StoredIds.count is not 0), appended to `out`.  Left out are: of
    # messages with an id of their own, those that have `dropped` set; with `plain`, all messages without one.  Without
    # `plain`, each of these gets an id of its own, the one that its place gave it.
    # ST_OK, ST_PROTOCOL, ST_LIMIT (the result is too large), ST_NO_MEMORY.
    int (*without)(const uint8_t* p, size_t n, const uint8_t* dropped, bint plain, Buf* scratch,
                   Buf* out) noexcept nogil
    # Change the number in a reply made by `serve`, so that it answers another request; the length stays the same.
    void (*misaddress)(uint8_t* reply, size_t n, uint32_t seq) noexcept nogil
