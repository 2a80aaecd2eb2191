"""The hub's table of faults (which fault, where, at which of the matching events), and their state for a connection.

The table only decides; it uses no socket and no session.  Server loops ask it only while `armed` has the bit of their
point, so without faults each point costs one load and one branch.

The state for a connection: counters, replies held back, how it is frozen.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.plat.thread cimport pthread_mutex_t


cdef enum FaultSizes:
    FAULTS_MOST = 64            # rules of one table
    FAULT_NAME = 255            # bytes of a group or a stream
    FAULT_TEXT = 255            # bytes of an error text
    FAULT_GARBAGE = 1024


cdef enum FaultPoint:           # where a rule is asked; bits
    POINT_CONNECT = 1           # a connection was accepted
    POINT_DATA = 2              # a whole data request was received
    POINT_HEARTBEAT = 4
    POINT_BYTES = 8             # bytes of a connection are about to be read, or were


cdef enum FaultAction:          # bits
    DO_REFUSE = 1
    DO_NO_REPLY = 2
    DO_DELAY = 4
    DO_COPIES = 8
    DO_FOREIGN = 16
    DO_REVERSE = 32
    DO_SLICE = 64
    DO_GARBAGE = 128
    DO_CORRUPT = 256
    DO_CLOSE = 512
    DO_FREEZE = 1024
    DO_LOAD = 2048
    DO_SLOW = 4096
    DO_REPLY = 2 | 4 | 8 | 16 | 32 | 64 | 128 | 256     # those that concern a reply


cdef enum FaultStage:           # when DO_CLOSE closes
    STAGE_BEFORE_STORE = 0
    STAGE_AFTER_STORE = 1       # stored, not answered
    STAGE_AFTER_REPLY = 2


cdef enum FaultSide:            # what DO_FREEZE freezes; bits
    SIDE_READ = 1
    SIDE_WRITE = 2


cdef enum FaultNumber:          # which request DO_FOREIGN answers
    NUMBER_FAR = 0              # one that no client has open
    NUMBER_NEXT = 1
    NUMBER_PREVIOUS = 2
    NUMBER_OTHER = 3            # the newest of another connection
    NUMBER_SETTLED = 4          # the last one of this connection whose answer was changed


ctypedef struct FaultWhat:      # the parameters of actions, each read by its own action alone
    int actions
    int code                    # DO_REFUSE
    int load                    # DO_LOAD: 0..65534, -1 unknown
    int copies                  # DO_COPIES: times the reply is sent
    int batch                   # DO_REVERSE: replies collected before they go out, last one first
    int stage                   # DO_CLOSE
    int side                    # DO_FREEZE
    int number                  # DO_FOREIGN: FaultNumber
    bint reset                  # DO_CLOSE
    uint8_t mask                # DO_CORRUPT: bits turned over
    int64_t corrupt_at          # DO_CORRUPT: index in the reply, from its end if negative
    int64_t delay_us            # DO_DELAY
    int64_t rate                # DO_SLOW: bytes a second
    int64_t frozen_by           # DO_FREEZE, DO_SLOW: id of the rule
    int64_t reversed_by         # DO_REVERSE: id of the rule
    size_t text_n               # DO_REFUSE: 0 = as a proxy in that state answers
    size_t garbage_n            # DO_GARBAGE
    char text[FAULT_TEXT + 1]
    uint8_t garbage[FAULT_GARBAGE]


ctypedef struct FaultRule:
    int64_t id
    int points                  # FaultPoint bits
    # Where; the others match everything.
    int listener                # -1: any
    int64_t connection          # number of the connection at its listener, from 1; 0: any
    bint has_group
    bint has_stream
    size_t group_n
    size_t stream_n
    uint8_t group[FAULT_NAME]
    uint8_t stream[FAULT_NAME]
    # When, in events that match.
    bint each                   # every connection is counted for itself
    int64_t after               # number of events that pass before the first fault
    int64_t every               # of the rest, every k-th; 0 and 1: all
    int64_t first               # of the rest, only the first n; 0: all
    int64_t times               # most faults; 0: no limit
    int64_t at_byte             # POINT_BYTES: received bytes of the connection
    uint64_t share              # fires for this share of 2**64 of the events; 0: for all
    uint64_t random             # state of the generator
    FaultWhat what
    # Guarded by the table's mutex.
    int64_t seen
    int64_t fired


ctypedef struct FaultTally:     # of one connection: counters of the rules with `each`
    int64_t id[FAULTS_MOST]
    int64_t seen[FAULTS_MOST]


ctypedef struct FaultEvent:
    int listener
    int64_t connection
    Slice group
    Slice stream
    FaultTally** tally          # made when a rule needs it


ctypedef struct FaultSeen:      # the number of a request
    bint known
    int listener
    int64_t connection
    uint32_t number


ctypedef struct FaultTable:
    int64_t armed               # atomic: the FaultPoint bits of all rules
    pthread_mutex_t mutex       # guards all fields below; a leaf
    int count
    int64_t last_id
    FaultRule* rules[FAULTS_MOST]   # in the order they were added
    FaultSeen newest[2]         # requests of two connections, that of the newest first


cdef int faults_init(FaultTable* t) noexcept nogil
cdef void faults_free(FaultTable* t) noexcept nogil
cdef int64_t faults_add(FaultTable* t, const FaultRule* rule) noexcept nogil    # its id; ST_FULL is -1, no memory -2
cdef bint faults_remove(FaultTable* t, int64_t id, int64_t* seen, int64_t* fired) noexcept nogil
cdef bint faults_has(FaultTable* t, int64_t id) noexcept nogil
cdef bint faults_counts(FaultTable* t, int64_t id, int64_t* seen, int64_t* fired) noexcept nogil
# Count the event in each rule that matches and put together what fires; false when nothing does.
cdef bint faults_judge(FaultTable* t, int point, const FaultEvent* event, FaultWhat* out) noexcept nogil
# Note the number of a request.
cdef void faults_note(FaultTable* t, const FaultEvent* event, uint32_t number) noexcept nogil
# Find the newest request of another connection; false when there was none.
cdef bint faults_other(FaultTable* t, const FaultEvent* event, uint32_t* number) noexcept nogil
# Bytes that may be read before the next byte trigger: -1 without one.  `received` is what the connection got so far.
cdef int64_t faults_room(FaultTable* t, const FaultEvent* event, int64_t received) noexcept nogil
# After a read: what fires at exactly this many received bytes.
cdef bint faults_reached(FaultTable* t, const FaultEvent* event, int64_t received, FaultWhat* out) noexcept nogil
# Bytes a second that the connection is read with, 0 for no limit; counts a firing.
cdef int64_t faults_rate(FaultTable* t, const FaultEvent* event) noexcept nogil


ctypedef struct Held:       # one block: the struct, then `n` bytes of reply; n 0: the session is read again
    Held* next
    uint64_t session
    int64_t due_us
    bint single             # written byte by byte
    size_t n


ctypedef struct SessionFaults:  # owned by the session
    FaultTally* tally       # NULL until a rule counts by connection
    int64_t frozen_by       # id of the rule, 0: not frozen
    bint judged             # the first frame in the receive buffer was judged before it froze the session
    bint mute               # replies stay where they are
    bint deaf               # hung up while frozen, and therefore out of the poller
    bint resets             # its close is a reset
    bint answered           # by a changed answer: the last request so far, of this number
    uint32_t answered_number
    size_t single           # so many unsent bytes are written one by one
    Held* reversed          # the newest reply first
    int reversed_count
    int64_t reversed_by     # id of the rule


cdef SessionFaults* faultsession_new() noexcept nogil       # NULL: no memory
cdef void faultsession_free(SessionFaults* f) noexcept nogil
cdef Held* held_new(size_t n) noexcept nogil                # NULL: no memory
cdef uint8_t* held_bytes(Held* held) noexcept nogil
cdef void held_insert(Held** list, Held* held) noexcept nogil   # by time, behind those of the same time
cdef void held_free_all(Held* held) noexcept nogil
