"""What the threads of a consumer hand over to each other, under one lock."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.address cimport Address
from dataproxy._core.base.slice cimport Slice
from dataproxy._core.consumer.flow cimport FlowRules
from dataproxy._core.consumer.tubepack cimport TubePack
from dataproxy._core.net.poller cimport Wakeup
from dataproxy._core.plat.thread cimport pthread_cond_t, pthread_mutex_t


cdef enum CommandKind:
    CM_CALL = 0             # number, service, method, timeout; data: the request
    CM_HOLD = 1             # number: of the hold; data: the topic; filters; partition, offset, paused
    CM_RELEASE = 2          # number, until_us; code: PackCode of packs that it ends
    CM_DROP = 3             # number, code
    CM_CONFIRM = 4          # pack
    CM_ROLL_BACK = 5        # pack
    CM_PAUSE = 6            # number
    CM_RESUME = 7           # number
    CM_RULES = 8            # rules: of the group, then of the cluster
    CM_FOLLOW = 9           # number, peer: where its broker is now


ctypedef struct Peer:
    Address address
    int family
    char label[64]
    char name[256]


ctypedef struct Command:    # freed by the loop
    int kind
    int64_t number
    int32_t service
    int32_t method
    int64_t time_us         # a limit, or a moment
    int32_t partition
    int32_t code
    int64_t offset
    int64_t end             # of a partition's store; -1: not known
    bint paused
    Peer peer
    TubePack* pack          # one user of it
    FlowRules* rules        # two, owned
    Slice* filters          # owned, as all their bytes: they follow `data` in its block
    int n_filters
    uint8_t* data           # owned
    size_t n
    Command* next


cdef enum EventKind:
    EK_ANSWER = 0           # number; code: RpcStatus; data: the answer, or exception NUL trace
    EK_FAULT = 1            # number; code: CallFault; detail
    EK_RELEASED = 2         # number of the hold
    EK_LOST = 3             # number of the hold; code: a broker's
    EK_TOLD = 4             # number of the hold, code; a broker refused to give a pack: for the log
    EK_BROKEN = 5           # number of the hold; code: CallFault, detail; a call had no answer: for the log


ctypedef struct Event:      # freed by who takes it, with `event_free`
    int kind
    int64_t number
    int32_t code
    int32_t detail
    uint8_t* data           # behind the struct, in the same block; or in `block`
    uint8_t* block          # owned; NULL: none
    size_t n
    size_t cut              # bytes of `data` that are the exception's name
    Event* next


ctypedef struct Tally:      # messages and packs; fetched = confirmed + rolled_back + expired + held
    int64_t packs[4]        # by PackOutcome; PO_HELD: fetched
    int64_t messages[4]
    int64_t bytes           # of payloads that were fetched
    int64_t broken          # messages with a wrong checksum
    int64_t filtered        # messages that a broker sent in spite of the filters
    int64_t empty           # answers without messages
    int64_t refused         # answers with another code than 200 and 404


ctypedef struct Exchange:
    pthread_mutex_t lock    # guards everything but `loop` and `aio`
    pthread_cond_t ready    # a pack can be taken, or a pack was settled, or there will be no more
    pthread_cond_t driven   # there are events, or the driver was called
    Wakeup loop             # of the fetching thread
    Wakeup aio              # of an asyncio loop; used if `awaited`
    bint awaited            # constant from the start
    Command* first_command
    Command* last_command
    Event* first_event
    Event* last_event
    TubePack* first_ready
    TubePack* last_ready
    int64_t n_ready
    bint called             # the driver was
    bint ended              # nothing will be ready any more
    bint stop_asked
    bint missed             # an event had no memory: what waits for it would wait for ever
    Tally tally


cdef int exchange_open(Exchange* x) noexcept nogil
cdef void exchange_close(Exchange* x) noexcept nogil
# Any thread: a command, which is taken over; it wakes the loop.
cdef void exchange_post(Exchange* x, Command* c) noexcept nogil
cdef void exchange_stop(Exchange* x) noexcept nogil
cdef void command_free(Command* c) noexcept nogil
cdef void event_free(Event* e) noexcept nogil
# The application.
cdef TubePack* exchange_take(Exchange* x, int64_t now_us) noexcept nogil
cdef bint exchange_wait_ready(Exchange* x, const TubePack* settled, int64_t until_us) noexcept nogil
cdef void exchange_end(Exchange* x) noexcept nogil
# The driver of the member.
cdef Event* exchange_events(Exchange* x) noexcept nogil
cdef bint exchange_wait_events(Exchange* x, int64_t until_us) noexcept nogil
cdef void exchange_call(Exchange* x) noexcept nogil
# The fetching thread, but for what says otherwise.
cdef Command* exchange_commands(Exchange* x, bint* stop) noexcept nogil
cdef int exchange_tell(
    Exchange* x, int kind, int64_t number, int32_t code, int32_t detail, Slice first, Slice second,
) noexcept nogil
# An answer that lies in a block, which is taken over with ST_OK.
cdef int exchange_hand(
    Exchange* x, int kind, int64_t number, int32_t code, Slice data, uint8_t* block) noexcept nogil
cdef void exchange_passed(Exchange* x, const TubePack* p) noexcept nogil
cdef void exchange_fetched(Exchange* x, TubePack* p) noexcept nogil
cdef bint exchange_withdraw(Exchange* x, TubePack* p) noexcept nogil
cdef int64_t exchange_taken(Exchange* x, const TubePack* p) noexcept nogil
cdef void exchange_count(
    Exchange* x, int64_t broken, int64_t filtered, int64_t empty, int64_t refused) noexcept nogil
cdef void exchange_tally(Exchange* x, Tally* out) noexcept nogil        # any thread
cdef void exchange_settle(Exchange* x, TubePack* p, int outcome, int64_t code) noexcept nogil
