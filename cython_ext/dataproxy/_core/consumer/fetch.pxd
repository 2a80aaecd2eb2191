"""The partitions that a consumer holds, and what is asked of brokers for them.  No sockets and no clock are in here."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from dataproxy._core.base.slice cimport Slice
from dataproxy._core.consumer.exchange cimport Command, Exchange, Peer
from dataproxy._core.consumer.flow cimport FlowRules, FlowState
from dataproxy._core.consumer.connection cimport Connection, PendingCall
from dataproxy._core.consumer.tubepack cimport TubePack
from dataproxy._core.plat.thread cimport pthread_mutex_t
from dataproxy._core.wire.tubemq.rpc cimport Answer


cdef enum HoldState:        # each held partition is in exactly one
    HS_IDLE = 0             # its next pack can be asked for
    HS_DELAYED = 1          # at `due_us` it can
    HS_FROZEN = 2           # paused
    HS_ASKED = 3            # a pack was asked for
    HS_READY = 4            # its pack waits for the application, or the application has it
    HS_CONFIRMING = 5       # the broker was told that it was consumed
    HOLD_STATES = 6


ctypedef struct Hold:       # one partition; the fetching thread alone, but for what readers of statistics copy
    int64_t number          # constant, as everything before `state`
    Connection* connection
    uint8_t* topic          # owned
    size_t topic_n
    int32_t partition
    Slice* filters          # owned
    int n_filters
    int state
    bint paused
    bint releasing
    int64_t until_us        # of a release
    int64_t why             # of a release: PackCode of a pack that it ends
    int64_t due_us          # of HS_DELAYED
    bint ahead              # HS_CONFIRMING: the next pack was asked for together with the confirm
    int64_t kept_free       # bytes of the limit that are kept free for the pack that was asked for; 0: none was
    int64_t needs           # bytes of its last pack, if there was no room for that one
    TubePack* pack          # one use; HS_READY and HS_CONFIRMING
    int64_t next_us         # when the pack after the newest one may be asked for, by the rules
    int64_t nothing_ms      # wait after the last answer without messages
    FlowState flow
    int64_t offset          # where the next pack begins, as the broker said last; relaxed
    int64_t max_offset      # relaxed
    int64_t backlog         # bytes; relaxed


ctypedef struct HoldCopy:   # of one partition, for statistics
    int64_t number
    int64_t offset
    int64_t max_offset
    int64_t backlog


ctypedef struct FetchHooks:
    void* context
    # The connection to a server, new or known; NULL without memory.
    Connection* (*connection)(void* context, const Peer* peer) noexcept nogil


ctypedef struct Fetch:
    FetchHooks hooks        # constant, as everything before `holds`
    Exchange* exchange
    uint8_t* client         # owned
    size_t client_n
    uint8_t* group          # owned
    size_t group_n
    int64_t call_us         # limit of a call
    int64_t confirm_us      # limit of a pack that is out
    int64_t nothing_ms      # longest wait after an answer without messages
    int64_t most_bytes      # of packs that were fetched and have no outcome
    pthread_mutex_t registry    # a leaf
    Hold** holds            # changed under registry, read by the fetching thread without it
    int n_holds
    int cap
    int cursor              # whose turn it is to be asked for
    FlowRules rules[2]      # of the group, of the cluster
    int64_t held_bytes      # of packs without an outcome
    int64_t asked           # packs that were asked for and have not come
    int64_t kept_free       # bytes of the limit that are kept free for them
    int64_t largest         # bytes that the next one may have, by those that came last
    int64_t states[6]       # holds by HoldState; relaxed


cdef int fetch_open(
    Fetch* f, Exchange* x, Slice client, Slice group, const FetchHooks* hooks,
) noexcept nogil
cdef void fetch_free(Fetch* f) noexcept nogil
cdef void fetch_command(Fetch* f, Command* c, int64_t now_us) noexcept nogil
cdef void fetch_call_ended(
    Fetch* f, Connection* conn, const PendingCall* call, const Answer* answer, int fault, int detail, int64_t now_us,
    int64_t wall_ms,
) noexcept nogil
cdef void fetch_lost(Fetch* f, const Connection* conn, int64_t now_us) noexcept nogil
cdef void fetch_advance(Fetch* f, int64_t now_us) noexcept nogil
cdef int64_t fetch_due(Fetch* f, int64_t now_us) noexcept nogil
cdef void fetch_end(Fetch* f) noexcept nogil
cdef HoldCopy* fetch_holds(Fetch* f, int* n) noexcept nogil
cdef bint fetch_balances(const Fetch* f) noexcept nogil
