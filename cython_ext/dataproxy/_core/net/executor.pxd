"""Executor: one thread, one epoll set, one pool of connections."""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.clock cimport Clock
from dataproxy._core.base.forks cimport ForkNode
from dataproxy._core.pack.pack cimport Pack, PackList, PackPool
from dataproxy._core.pack.settled cimport SettledHook
from dataproxy._core.conn.framing cimport FrameRules
from dataproxy._core.conn.connection cimport (
    ConnectionConfig, ConnectionCounters, ConnectionPool, EventSink, ProxyLists, UnknownSink,
)
from dataproxy._core.net.poller cimport PollEvent, Poller, Wakeup
from dataproxy._core.net.recvbuf cimport RecvBuf
from dataproxy._core.net.tlsholder cimport TlsHolder
from dataproxy._core.net.transport cimport Transport, TransportOps, TransportOptions
from dataproxy._core.plat.atomic cimport atomic_load, relaxed_load
from dataproxy._core.plat.thread cimport pthread_mutex_t
from dataproxy._core.wire.api cimport WireOps


cdef enum:
    READY_PACKS = 128           # of two sendmsg: one is written while the next is gathered


ctypedef struct Channel         # declared below


ctypedef struct Channel:        # the socket of one connection; executor only
    Transport transport
    RecvBuf received
    bint open
    int interest
    Channel* next               # in the list that a forked child reads; constant


ctypedef struct ExecutorHooks:  # functions of the layer above; called on the executor's thread
    void* context           # of tick and event
    SettledHook settled
    int64_t (*tick)(void* context, int64_t now_us) noexcept nogil       # returns its next due time, or -1
    EventSink event
    UnknownSink unknown
    int64_t* unknown_bytes
    int64_t unknown_most


ctypedef struct ExecutorCounts:     # what an executor counts by itself
    int64_t retries
    int64_t held_back       # times that a resend waited for the retry budget
    int64_t unmatched       # replies to frames that are not pending or have no open attempt over that connection
    int64_t duplicates      # answers that came after the first attempt was given up
    int64_t copies          # messages in them
    int64_t known           # messages of which a server said that it had stored them before
    int64_t differed        # messages of which a server said that it knew their ids with other bytes
    int64_t filtered        # successes that said how long the server remembers messages
    int64_t outs[5]         # proxies taken out, by OutReason
    int64_t returns         # proxies taken back
    int64_t swaps[4]        # standbys that became active, by SwapReason


ctypedef struct ConnectionCopy:  # of one connection, for statistics
    char label[64]
    int cluster
    ConnectionCounters counters


ctypedef struct Executor:
    int index
    ConnectionPool pool         # executor only (counters: relaxed)
    Channel** channels          # by connection index; executor only
    int n_channels
    Channel* newest             # list of all channels; none is ever removed, so it is consistent at any time; atomic
    ForkNode at_fork
    Poller poller
    Wakeup wakeup
    FrameRules rules            # constant
    PackPool* spares
    ExecutorHooks hooks         # constant
    TransportOptions options    # constant
    const TransportOps* transport   # constant
    TlsHolder* tls              # settings for connections; NULL: they are plain; constant, one of its users
    const Clock* clock          # constant
    int64_t tick_due_us         # executor only
    int64_t busy_poll_us        # how long it looks for events before it sleeps; constant
    int64_t posted              # packs in the inbox, and those being taken out of it; atomic
    # Inbox: everything below is guarded by lock.
    pthread_mutex_t lock
    PackList inbox
    Pack* dropped               # oldest of the packs that senders gave up and that are still in some list
    Pack* last_dropped
    ProxyLists new_lists
    bint has_lists          # new_lists were given and not taken yet
    bint tick_asked
    bint yield_asked            # packs of unknown streams have to make room
    bint stop_asked
    pthread_mutex_t registry    # guards the connection table, which readers of statistics read


cdef int executor_open(
    Executor* e, int index, const WireOps* wire, const ConnectionConfig* config, const FrameRules* rules,
    PackPool* spares, const ExecutorHooks* hooks, bint sheds, bint nagle, int64_t wall_offset_ms, TlsHolder* tls,
) noexcept nogil
cdef void executor_seed(Executor* e, uint64_t seed) noexcept nogil
cdef void executor_retire(Executor* e) noexcept nogil
cdef void executor_free(Executor* e) noexcept nogil
cdef void executor_post(Executor* e, Pack* p) noexcept nogil
cdef void executor_drop(Executor* e, Pack* p) noexcept nogil
cdef void executor_ask_tick(Executor* e) noexcept nogil
cdef void executor_ask_yield(Executor* e) noexcept nogil
cdef void executor_wake(Executor* e) noexcept nogil
cdef int executor_set_proxies(Executor* e, const ProxyLists* lists) noexcept nogil
cdef void executor_stop(Executor* e) noexcept nogil
cdef bint executor_round(Executor* e, const PollEvent* ready, int n) noexcept nogil
cdef void executor_end(Executor* e) noexcept nogil
cdef void executor_run(Executor* e) noexcept nogil
cdef void executor_count(Executor* e, ExecutorCounts* sums) noexcept nogil
cdef int64_t executor_take_reach(Executor* e) noexcept nogil
cdef ConnectionCopy* executor_connections(Executor* e, int* n) noexcept nogil


cdef inline int64_t executor_flight_bytes(const Executor* e) noexcept nogil:
    """Return the bytes of the frames that are written and not answered.  Locality: any thread.  Locks: none."""
    return relaxed_load(&e.pool.flight_bytes)


cdef inline int64_t executor_room(const Executor* e) noexcept nogil:
    """Return how many packs more could be written soon, at most 0 if enough wait to be written.

    Locality: any thread.  Locks: none.  A pack that is taken out of the inbox is counted twice for a moment, never not.
    """
    return READY_PACKS - atomic_load(&e.posted) - relaxed_load(&e.pool.unwritten)
