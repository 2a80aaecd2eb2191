"""Life of the connections of one executor: endpoints, connects, losses, heartbeats, deadlines.

Every function takes the time as an argument and asks for socket work through ``Connection.flags``.

Locks: none.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset, strcmp, strlen

from dataproxy._core.base.buf cimport buf_free
from dataproxy._core.pack.pack cimport (
    OUT_EXPIRED, OUT_FAILED, PK_BACKOFF, PK_IN_FLIGHT, PK_QUEUED, PK_SETTLED, PK_TAKEN, PK_WAITING, Pack, PackList,
    pack_state_name,
)
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.base.status cimport ST_NO_MEMORY, ST_OK
from dataproxy._core.base.timers cimport (
    Timer, timer_init, timers_arm, timers_cancel, timers_init, timers_pop,
)
from dataproxy._core.base.address cimport Address
from dataproxy._core.conn.balance.router cimport (
    backoff_us, budget_open, choose_connection, health_of, load_clear, proxy_doubt, proxy_doubted,
)
from dataproxy._core.conn.balance.outliers cimport outlier_connected, outlier_failure, outliers_judge
from dataproxy._core.conn.balance.places cimport (
    busy_connections, connection_leave, connection_rest, connection_use, endpoint_used, find_endpoint, pick_endpoint,
)
from dataproxy._core.conn.balance.standby cimport standbys_fill
from dataproxy._core.conn.clusters cimport lists_copy, lists_free, part_at, part_of, parts_adopt
from dataproxy._core.conn.heartbeat cimport heartbeat_due, connection_silent
from dataproxy._core.conn.inflight cimport inflight_free, inflight_init
from dataproxy._core.conn.keyqueues cimport key_queue_enter, key_queues_abort
from dataproxy._core.conn.connection cimport (
    LC_ACK_TIMEOUT, LC_CONNECTION_LOST, LC_TIMEOUT, CE_CONNECTED, CE_CONNECT_FAILED, CE_DEAF, CE_LOST, CE_SILENT,
    CE_STATE, CF_CLOSE, CF_CONNECT, CF_LOOK, LOAD_STOPPED, LOAD_UNKNOWN, CS_ACTIVE, CS_BACKOFF, CS_CLOSED,
    CS_CONNECTING, CS_IDLE, ONE_WEIGHT, TK_CONNECTION, TURNS, ClusterPart, Connection, ConnectionConfig, ConnectionPool,
    Endpoint, EventSink, Health, ProxyLists,
    connection_change_allowed,
    connection_state_name,
)
from dataproxy._core.conn.progress cimport look_every_us, progress_begin, progress_look, progress_stalled
from dataproxy._core.conn.retry cimport retry_due, retry_expired, retry_unanswered, route, route_waiting
from dataproxy._core.conn.sendq cimport mark_dirty
from dataproxy._core.conn.settle cimport detach, settle_delivered, settle_failed
from dataproxy._core.plat.assertion cimport DP_CHECKED, dp_assert
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_load, relaxed_store
from dataproxy._core.wire.api cimport ACK_SINK, WireOps


cdef enum:
    SMALL_FRAME = 65536     # bytes of a frame that every server accepts
    CHECKED_PACKS = 256     # of one list, where a debug build looks at all lists in each round
    HANDSHAKE_US = 1500000  # without an end of the handshake, until that is told: people wait two seconds for a word


cdef const char* UNHEARD = "nothing was heard"     # known to dataproxy/lasterror.py


cdef int connections_open(
    ConnectionPool* pool, const WireOps* wire, const ConnectionConfig* config, EventSink event, void* context,
) noexcept nogil:
    """Make an empty pool; ST_OK or ST_NO_MEMORY.  Locality: the executor's creator."""
    memset(pool, 0, sizeof(ConnectionPool))
    pool.wire = wire
    pool.in_turn = wire.in_turn
    memcpy(&pool.config, config, sizeof(ConnectionConfig))
    if wire.heartbeat == NULL:
        pool.config.heartbeat_us = 0
    pool.event = event
    pool.event_context = context
    pool.reach = -1
    pool.choose = choose_connection
    timers_init(&pool.timers)
    budget_open(&pool.budget, config.retry_share)
    return inflight_init(&pool.in_flight)


cdef void connections_free(ConnectionPool* pool) noexcept nogil:
    """Release the pool; no pack may be in it.  Locality: any thread, after the executor ended."""
    cdef int i
    for i in range(pool.n_connections):
        buf_free(&pool.connections[i].control)
        free(pool.connections[i])
    free(pool.connections)
    lists_free(&pool.lists)
    free(pool.health)
    free(pool.medians)
    inflight_free(&pool.in_flight)
    memset(pool, 0, sizeof(ConnectionPool))


cdef void connection_enter(ConnectionPool* pool, Connection* conn, int state) noexcept nogil:
    """Change the state of a connection; nothing else writes ``Connection.state``.  Locality: executor.

    An illegal change is not made, and reported: the connection keeps what belongs to its state, such as its socket.
    """
    cdef char text[64]
    cdef int n
    if not connection_change_allowed(conn.state, state):
        dp_assert(False, "the change of state is legal: connection %d goes from %s to %s",
                  conn.index, connection_state_name(conn.state), connection_state_name(state))
        n = snprintf(
            text, sizeof(text), "from %s to %s", connection_state_name(conn.state), connection_state_name(state))
        pool.event(pool.event_context, CE_STATE, conn.peer.label, 0, slice_of(text, <size_t>n))
        return
    conn.state = state
    if state == CS_ACTIVE:
        connection_use(pool, conn)
    else:
        connection_rest(pool, conn)
    relaxed_store(&conn.counters.state, state)
    if state != CS_ACTIVE:
        relaxed_store(&conn.counters.load, LOAD_STOPPED)


cdef void _start_connect(ConnectionPool* pool, Connection* conn, int endpoint, int64_t now_us) noexcept nogil:
    conn.endpoint = endpoint
    conn.part = part_at(pool, endpoint)
    memcpy(&conn.peer, &pool.endpoints[endpoint], sizeof(Endpoint))
    conn.retired = False
    conn.shaking = False
    relaxed_store(&conn.counters.out, pool.health[endpoint].out)
    conn.connect_deadline_us = now_us + pool.config.connect_timeout_us
    connection_enter(pool, conn, CS_CONNECTING)
    timers_arm(&pool.timers, &conn.timer, conn.connect_deadline_us)
    relaxed_add(&conn.counters.connects, 1)
    mark_dirty(pool, conn, CF_CONNECT)


cdef void _turn_endpoint(ConnectionPool* pool, const Connection* conn) noexcept nogil:
    """Let the next connect to a proxy that ``conn`` could not reach try its other address.

    The choice of the address is stored for the proxy, so a connection that later returns to the proxy tries the other
    one.
    """
    cdef Endpoint* one
    cdef Address address
    cdef int family
    if conn.endpoint < 0 or pool.endpoints[conn.endpoint].other_family == 0:
        return
    one = &pool.endpoints[conn.endpoint]
    if memcmp(&one.address, &conn.peer.address, sizeof(Address)) != 0:
        return                          # another connection has changed it already
    memcpy(&address, &one.address, sizeof(Address))
    family = one.family
    memcpy(&one.address, &one.other, sizeof(Address))
    one.family = one.other_family
    memcpy(&one.other, &address, sizeof(Address))
    one.other_family = family


cdef Connection* _new_connection(ConnectionPool* pool) noexcept nogil:
    cdef Connection* conn = <Connection*>calloc(1, sizeof(Connection))
    cdef size_t room = <size_t>(pool.n_connections + 1)
    cdef Connection** connections = <Connection**>realloc(pool.connections, room * sizeof(Connection*))
    cdef int64_t* medians = <int64_t*>realloc(pool.medians, room * sizeof(int64_t))
    cdef int i
    if connections != NULL:
        pool.connections = connections
    if medians != NULL:
        pool.medians = medians
    if conn == NULL or connections == NULL or medians == NULL:
        free(conn)
        return NULL
    conn.index = pool.n_connections
    conn.state = CS_IDLE
    conn.active_slot = -1
    conn.endpoint = -1
    conn.part = -1
    conn.weight = ONE_WEIGHT
    conn.counters.load = LOAD_UNKNOWN
    for i in range(<int>TURNS):         # processes that start together do not all begin with the same partition
        conn.turns[i] = <uint32_t>(pool.random >> (i % 32)) * (<uint32_t>2 * i + 1)
    timer_init(&conn.timer, TK_CONNECTION, conn)
    load_clear(&conn.load)
    pool.connections[pool.n_connections] = conn
    pool.n_connections += 1
    return conn


cdef int _make_connections(ConnectionPool* pool, ClusterPart* part, bint standby, int64_t now_us) noexcept nogil:
    """Connect to a cluster until it has the connections that it shall have, standbys or others.

    Returns ST_OK or ST_NO_MEMORY.
    """
    cdef int busy = busy_connections(pool, part, standby)
    cdef int i, wanted = part.shape.standbys if standby else part.shape.connections
    cdef Connection* conn
    part.next = (part.shape.standby_offset if standby else part.shape.offset) % part.n
    for i in range(pool.n_connections):
        conn = pool.connections[i]
        if conn.state == CS_IDLE and busy < wanted:
            _begin(pool, part, conn, standby, now_us)
            busy += 1
    while busy < wanted:        # a retired connection keeps its slot until its frames have results
        conn = _new_connection(pool)
        if conn == NULL:
            return ST_NO_MEMORY
        _begin(pool, part, conn, standby, now_us)
        busy += 1
    return ST_OK


cdef void _begin(
    ConnectionPool* pool, ClusterPart* part, Connection* conn, bint standby, int64_t now_us,
) noexcept nogil:
    _let_stand_by(conn, standby)
    _start_connect(pool, conn, pick_endpoint(pool, part, conn), now_us)


cdef void _let_stand_by(Connection* conn, bint standby) noexcept nogil:
    conn.standby = standby
    relaxed_store(&conn.counters.standby, standby)


cdef void _use_standbys(ConnectionPool* pool) noexcept nogil:
    """Let standbys be connections like the others where these are too few, and retire those that are too many."""
    cdef Connection* conn
    cdef const ClusterPart* part
    cdef int i
    for i in range(pool.n_connections):
        conn = pool.connections[i]
        if not conn.standby or conn.part < 0 or conn.state == CS_IDLE:
            continue
        part = part_of(pool, conn)
        if busy_connections(pool, part, False) < part.shape.connections:
            _let_stand_by(conn, False)
            connection_use(pool, conn)
        elif busy_connections(pool, part, True) > part.shape.standbys:
            _retire(pool, conn)


cdef bint _in_slice(const ClusterPart* part, int endpoint) noexcept nogil:
    """Tell whether a proxy is one of those of its cluster with which this pool would begin."""
    return (endpoint - part.first - part.shape.offset % part.n + part.n) % part.n < part.shape.connections


cdef void _welcome(ConnectionPool* pool, ClusterPart* part) noexcept nogil:
    """Let some connections go on to proxies that are new in the list, so that many producers share those too.

    Only as many as there are new proxies among those with which this pool would begin, and at most a quarter at once.
    """
    cdef Connection* conn
    cdef int i, moves = 0
    if part.shape.connections >= part.n:
        return
    for i in range(part.first, part.first + part.n):
        if pool.health[i].added and _in_slice(part, i) and not endpoint_used(pool, i):
            moves += 1
    moves = min(moves, max(1, part.shape.connections // 4))
    part.next = part.shape.offset % part.n
    for i in range(pool.n_connections):
        conn = pool.connections[i]
        if moves > 0 and conn.part == part.index and conn.active_slot >= 0 and not _in_slice(part, conn.endpoint):
            connection_leave(pool, conn)
            moves -= 1


cdef void _find_again(ConnectionPool* pool, Connection* conn) noexcept nogil:
    """Find the proxy of a connection in new lists, and use the connection if it is there."""
    conn.active_slot = -1
    if conn.state == CS_IDLE:
        return
    conn.endpoint = find_endpoint(pool, &conn.peer)
    if conn.endpoint < 0:
        _retire(pool, conn)
        return
    conn.retired = False
    conn.part = part_at(pool, conn.endpoint)
    if conn.peer.node == 0:
        conn.peer.node = pool.endpoints[conn.endpoint].node     # from now on another id is another proxy
    connection_use(pool, conn)


cdef int connections_endpoints(ConnectionPool* pool, const ProxyLists* lists, int64_t now_us) noexcept nogil:
    """Take new lists of proxies, with the connections wanted for each cluster.

    Locality: executor.  ST_OK, or ST_NO_MEMORY (nothing changed).  A connection whose proxy is still listed is kept,
    except those that ``_welcome`` moves.  A connection whose proxy left the list takes no new frames, and is closed
    when no frame waits on it.
    """
    cdef ProxyLists copy
    cdef Health* health = health_of(pool, lists)
    cdef int i
    if health == NULL or lists_copy(&copy, lists) != ST_OK:
        free(health)
        return ST_NO_MEMORY
    if not parts_adopt(pool, &copy):
        lists_free(&copy)
        free(health)
        return ST_NO_MEMORY
    lists_free(&pool.lists)
    free(pool.health)
    memcpy(&pool.lists, &copy, sizeof(ProxyLists))
    pool.endpoints = pool.lists.endpoints
    pool.n_endpoints = pool.lists.n_endpoints
    pool.health = health
    pool.n_active = 0
    for i in range(pool.n_connections):
        _find_again(pool, pool.connections[i])
    _use_standbys(pool)
    route_waiting(pool, now_us)         # a connection that was being closed takes frames again if its proxy came back
    for i in range(pool.lists.n_parts):
        if pool.lists.parts[i].n > 0 and not _connect_part(pool, &pool.lists.parts[i], now_us):
            break               # the next list comes, and until then there are the connections that could be made
    standbys_fill(pool, now_us)
    route_waiting(pool, now_us)
    return ST_OK if pool.n_connections > 0 or pool.n_endpoints == 0 else ST_NO_MEMORY


cdef bint _connect_part(ConnectionPool* pool, ClusterPart* part, int64_t now_us) noexcept nogil:
    """Make the connections that a cluster shall have; False if there is no memory."""
    if _make_connections(pool, part, False, now_us) != ST_OK or _make_connections(pool, part, True, now_us) != ST_OK:
        return False
    _welcome(pool, part)
    return True


cdef void _retire(ConnectionPool* pool, Connection* conn) noexcept nogil:
    """Stop using a connection whose proxy left the list, or that is not needed; its frames may still be answered."""
    conn.retired = True
    connection_rest(pool, conn)         # no new frames
    conn.endpoint = -1
    conn.part = -1
    if conn.queue.head == NULL and conn.flight.head == NULL:
        mark_dirty(pool, conn, CF_CLOSE)
    # else its timer is armed for ack_timeout at most: then it closes if no frame is left


cdef void connections_submit(ConnectionPool* pool, Pack* p, int64_t now_us) noexcept nogil:
    """Take a sealed, framed pack; its result comes through ``pool.settled``.  Locality: executor."""
    dp_assert(p.state == PK_TAKEN, "a pack that is submitted is in no list: state=%s, seq=%u",
              pack_state_name(p.state), p.seq)
    if p.deadline_us <= now_us:
        settle_failed(pool, p, OUT_EXPIRED, LC_TIMEOUT)
        return
    timers_arm(&pool.timers, &p.timer, p.deadline_us)
    if p.key_queue == NULL or key_queue_enter(pool, p):
        route(pool, p, now_us)


cdef void connections_shaking(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    """Note that the peer's host has accepted a connection, and that a handshake is under way.  Locality: executor.

    If it takes long, ``CF_LOOK`` asks for a word about it (``CE_HANDSHAKE``).  It goes on: ``connect_timeout`` alone
    ends it, because an honest peer may be slow.
    """
    if conn.state == CS_CONNECTING and not conn.shaking:
        conn.shaking = True
        timers_arm(&pool.timers, &conn.timer, min(now_us + <int64_t>HANDSHAKE_US, conn.connect_deadline_us))


cdef void connections_connected(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    """Begin to use a connection whose connect succeeded.  Locality: executor."""
    cdef bint doubted = proxy_doubted(pool, conn)
    dp_assert(conn.state == CS_CONNECTING, "a connection that was made was connecting: state=%s, connection=%d",
              connection_state_name(conn.state), conn.index)
    load_clear(&conn.load)
    conn.head_sent = 0
    conn.control.n = 0
    conn.control_sent = 0
    conn.unanswered = 0
    if not conn.renewed:
        conn.avoid_until_us = 0
    if doubted:
        proxy_doubt(pool, conn.peer.label, now_us)      # the time of the doubt begins now that the proxy can be asked
    conn.last_read_us = now_us
    conn.owed = 0
    conn.read_before = relaxed_load(&conn.counters.read_bytes)
    conn.renewed = False
    conn.reason_code = 0
    conn.heartbeat_at_us = now_us if doubted or conn.standby else now_us + pool.config.heartbeat_us
    progress_begin(pool, conn, now_us)
    connection_enter(pool, conn, CS_ACTIVE)
    relaxed_store(&conn.counters.load, LOAD_UNKNOWN)
    relaxed_store(&conn.counters.unanswered, 0)
    if conn.endpoint >= 0:
        outlier_connected(pool, conn, now_us)
    _arm(pool, conn, now_us)
    pool.event(pool.event_context, CE_CONNECTED, conn.peer.label, 0, slice_of(NULL, 0))
    standbys_fill(pool, now_us)
    route_waiting(pool, now_us)


cdef void _give_back(ConnectionPool* pool, Connection* conn, int code, int64_t now_us) noexcept nogil:
    """Route all frames of a lost connection again, in order: unanswered ones first, then unwritten ones.

    ``code`` is the reason for the loss: whether this side closed a silent connection, or the connection broke.
    """
    cdef Pack* p
    cdef int64_t n = conn.flight.n
    conn.head_sent = 0
    while n > 0:
        n -= 1
        p = conn.flight.head
        if now_us >= p.deadline_us:
            retry_expired(pool, p)
        else:
            retry_unanswered(pool, p, code, now_us)
    n = conn.queue.n
    while n > 0:
        n -= 1
        p = conn.queue.head
        if p.answered:
            settle_delivered(pool, p)
        elif now_us >= p.deadline_us:
            retry_expired(pool, p)
        else:
            detach(pool, p)
            p.code = code
            route(pool, p, now_us)
    dp_assert(conn.queue.n == 0 and conn.flight.n == 0, "a lost connection has no frames: queue.n=%ld, flight.n=%ld",
              conn.queue.n, conn.flight.n)
    dp_assert(conn.queue_bytes == 0 and conn.flight_bytes == 0,
              "a lost connection has no bytes: queue_bytes=%ld, flight_bytes=%ld", conn.queue_bytes, conn.flight_bytes)


cdef void _doubt(ConnectionPool* pool, const Connection* conn, int64_t now_us) noexcept nogil:
    """Avoid the proxy of a silent connection until it sends something; its other connections send a heartbeat at once.

    A connection whose last heartbeat has no answer yet sends none.
    """
    cdef Connection* other
    cdef int i
    proxy_doubt(pool, conn.peer.label, now_us)
    for i in range(pool.n_connections):
        other = pool.connections[i]
        if other == conn or other.state != CS_ACTIVE or strcmp(other.peer.label, conn.peer.label) != 0:
            continue
        if other.unanswered == 0:
            other.heartbeat_at_us = now_us
            _arm(pool, other, now_us)


cdef Slice _suspicion(const Connection* conn, int event, char* text, size_t room) noexcept nogil:
    """Return a text for the end of a connection on which bytes were sent.

    For a large frame that was unanswered: the peer's limit may be smaller.  Else, for a peer that has never sent
    anything: ``UNHEARD``; it may expect TLS.
    """
    cdef const Pack* p = conn.flight.head
    cdef size_t largest = 0
    cdef int n
    if event != CE_LOST:
        return slice_of(NULL, 0)
    while p != NULL:
        largest = max(largest, p.frame_n)
        p = p.next
    if conn.head_sent > 0 and conn.queue.head != NULL:
        largest = max(largest, conn.queue.head.frame_n)
    if largest <= SMALL_FRAME:
        if largest > 0 and relaxed_load(&conn.counters.read_bytes) == conn.read_before:
            return slice_of(UNHEARD, strlen(UNHEARD))
        return slice_of(NULL, 0)
    n = snprintf(text, room, "a frame of %zu bytes", largest)
    return slice_of(text, <size_t>n)


cdef void connections_lost(
    ConnectionPool* pool, Connection* conn, int event, int detail, int64_t now_us,
) noexcept nogil:
    """Act on a failed connect or a lost connection; the executor has closed the socket.

    Locality: executor.  A standby takes its place, if there is one.  The connection connects again after a backoff: to
    a proxy that no connection uses, else to its own as long as other connections to the cluster work, else to the next
    of the list.  If a proxy could not be reached, its other address is tried next.  A connection that its server ends
    after an answer (``renewed``) is no failure, and is made again at once.
    """
    cdef char text[48]
    if conn.state == CS_IDLE or conn.state == CS_CLOSED:
        return
    if conn.state == CS_BACKOFF and not conn.retired and not pool.closing:
        return                  # it has no socket, and its proxy left the list and came back before it was closed
    conn.flags = 0
    conn.close_event = 0
    conn.close_detail = 0
    if conn.state == CS_CONNECTING:
        conn.renewed = False
        _turn_endpoint(pool, conn)
    if not conn.leaving:
        relaxed_add(&conn.counters.losses, 1)
    timers_cancel(&pool.timers, &conn.timer)
    if event:
        pool.event(pool.event_context, event, conn.peer.label, detail, _suspicion(conn, event, text, sizeof(text)))
    if not (conn.leaving or conn.renewed):
        conn.failures += 1
    if event == CE_SILENT or event == CE_DEAF:
        _doubt(pool, conn, now_us)
    if conn.retired or pool.closing:
        connection_enter(pool, conn, CS_IDLE)
        conn.endpoint = -1
        conn.part = -1
        _let_stand_by(conn, False)
    else:
        connection_enter(pool, conn, CS_BACKOFF)
        conn.reconnect_at_us = now_us
        if not conn.renewed:
            conn.reconnect_at_us += backoff_us(
                conn.failures, pool.config.reconnect_backoff_us, pool.config.reconnect_backoff_max_us, &pool.random)
        timers_arm(&pool.timers, &conn.timer, conn.reconnect_at_us)
    conn.leaving = False
    if event and not conn.renewed:
        outlier_failure(pool, conn, now_us)
    standbys_fill(pool, now_us)
    _give_back(pool, conn, LC_ACK_TIMEOUT if event == CE_SILENT else LC_CONNECTION_LOST, now_us)
    relaxed_store(&conn.counters.waiting, 0)
    relaxed_store(&conn.counters.in_flight, 0)


cdef void _arm(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    """Arm an active connection's timer for the earliest time at which something must be checked."""
    cdef int64_t due = now_us + (look_every_us(&pool.config) if conn.waits else pool.config.ack_timeout_us)
    if conn.waits and conn.moved_us + pool.config.ack_timeout_us < due:
        due = conn.moved_us + pool.config.ack_timeout_us
    if pool.config.heartbeat_us and conn.heartbeat_at_us < due:
        due = conn.heartbeat_at_us
    if (conn.flight.head != NULL and pool.config.ack != ACK_SINK
            and conn.flight.head.sent_us + pool.config.ack_timeout_us < due):
        due = conn.flight.head.sent_us + pool.config.ack_timeout_us
    timers_arm(&pool.timers, &conn.timer, due if due > now_us else now_us + 1000)


cdef void _ask_silent(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    """Ask a peer by a heartbeat whether it lives, if frames wait for sink acks and nothing came for ``ack_timeout``.

    A sink ack comes when the message queue behind the proxy has stored the frame, however long that takes, and from
    many servers it never comes: so a missing one says nothing about the connection.
    """
    cdef int64_t timeout = pool.config.ack_timeout_us
    cdef const Pack* oldest = conn.flight.head
    if pool.config.heartbeat_us == 0 or oldest == NULL or oldest.sent_us > now_us - timeout:
        return
    if conn.last_read_us > now_us - timeout:
        return
    if conn.unanswered == 0:
        conn.heartbeat_at_us = now_us
    elif conn.heartbeat_end <= conn.acked and conn.heartbeat_at_us - pool.config.heartbeat_us <= now_us - timeout:
        connection_silent(pool, conn, CE_SILENT)


cdef void _ack_timeouts(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    cdef Pack* p
    cdef int64_t oldest = now_us - pool.config.ack_timeout_us
    if progress_stalled(pool, conn, now_us):
        connection_silent(pool, conn, CE_SILENT)
        return
    if pool.config.ack == ACK_SINK:
        _ask_silent(pool, conn, now_us)
        return
    while conn.flight.head != NULL and conn.flight.head.sent_us <= oldest:
        p = conn.flight.head
        if conn.last_read_us <= p.sent_us or pool.in_turn:
            # No reply came since the proxy had to answer, or its answer could not be told from the next one:
            # the connection is treated as lost.
            connection_silent(pool, conn, CE_SILENT)
            return
        outlier_failure(pool, conn, now_us)
        retry_unanswered(pool, p, LC_ACK_TIMEOUT, now_us)


cdef void _check_list(const PackList* packs, int state, int conn, int64_t bytes) noexcept nogil:
    """Check that a list is whole, that its packs are in ``state`` and on ``conn``, and that their frames are ``bytes``.

    ``conn``: -1 for a list of no connection; then ``bytes`` is not compared.
    """
    cdef const Pack* p = packs.head
    cdef const Pack* before = NULL
    cdef int64_t n = 0, sum = 0
    while p != NULL and n < CHECKED_PACKS:
        dp_assert(p.prev == before, "a pack knows its neighbour: seq=%u, place %ld of %ld", p.seq, n, packs.n)
        dp_assert(p.state == state, "a pack's state names its list: seq=%u is %s in the list of packs that are %s",
                  p.seq, pack_state_name(p.state), pack_state_name(state))
        dp_assert(conn < 0 or p.conn == conn, "a pack names its connection: seq=%u, connection=%d, not %d",
                  p.seq, p.conn, conn)
        sum += <int64_t>p.frame_n
        n += 1
        before = p
        p = p.next
    if p != NULL:
        return                          # the rest is looked at when the list is shorter
    dp_assert(n == packs.n and packs.tail == before, "a list holds what it counts: %ld packs, n=%ld", n, packs.n)
    dp_assert(conn < 0 or sum == bytes, "a list's bytes are those of its frames: %ld bytes, sum=%ld", bytes, sum)


cdef void _check(const ConnectionPool* pool) noexcept nogil:
    """Compare lists, states and counters of a pool with each other.  Locality: executor."""
    cdef const Connection* conn
    cdef int64_t flight_bytes = 0, unwritten = pool.waiting.n - pool.aside
    cdef int i
    _check_list(&pool.waiting, PK_WAITING, -1, 0)
    _check_list(&pool.backoff, PK_BACKOFF, -1, 0)
    _check_list(&pool.settled, PK_SETTLED, -1, 0)
    for i in range(pool.n_connections):
        conn = pool.connections[i]
        dp_assert(conn.state == CS_ACTIVE or (conn.queue.n == 0 and conn.flight.n == 0 and conn.active_slot < 0),
                  "frames are on an active connection: state=%s, queue.n=%ld, flight.n=%ld, active_slot=%d",
                  connection_state_name(conn.state), conn.queue.n, conn.flight.n, conn.active_slot)
        dp_assert(conn.active_slot < 0 or not (conn.standby or conn.leaving or conn.retired),
                  "what takes frames is no standby, nor leaves: connection=%d, standby=%d, leaving=%d, retired=%d",
                  conn.index, conn.standby, conn.leaving, conn.retired)
        dp_assert(conn.part == (part_at(pool, conn.endpoint) if conn.endpoint >= 0 else -1),
                  "part is the cluster of the proxy: connection=%d, endpoint=%d, part=%d",
                  conn.index, conn.endpoint, conn.part)
        dp_assert(conn.active_slot < 0 or (conn.part >= 0 and part_of(pool, conn).active[conn.active_slot] == conn),
                  "active_slot names the connection: active_slot=%d, connection=%d", conn.active_slot, conn.index)
        dp_assert(conn.queue.head == NULL or conn.head_sent < conn.queue.head.frame_n,
                  "head_sent < frame_n: head_sent=%zu, frame_n=%zu", conn.head_sent, conn.queue.head.frame_n)
        dp_assert(relaxed_load(&conn.counters.waiting) == conn.queue.n, "waiting = queue.n: waiting=%ld, queue.n=%ld",
                  conn.counters.waiting, conn.queue.n)
        dp_assert(relaxed_load(&conn.counters.in_flight) == conn.flight.n,
                  "in_flight = flight.n: in_flight=%ld, flight.n=%ld", conn.counters.in_flight, conn.flight.n)
        _check_list(&conn.queue, PK_QUEUED, conn.index, conn.queue_bytes)
        _check_list(&conn.flight, PK_IN_FLIGHT, conn.index, conn.flight_bytes)
        flight_bytes += conn.flight_bytes
        unwritten += conn.queue.n
    dp_assert(relaxed_load(&pool.flight_bytes) == flight_bytes,
              "flight_bytes is the sum of all connections: flight_bytes=%ld, sum=%ld", pool.flight_bytes, flight_bytes)
    dp_assert(relaxed_load(&pool.unwritten) == unwritten,
              "unwritten is the sum of all lists: unwritten=%ld, sum=%ld", pool.unwritten, unwritten)


cdef void _connection_timer(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    cdef int endpoint
    dp_assert(conn.state != CS_IDLE and conn.state != CS_CLOSED, "a connection without a proxy has no timer: state=%s",
              connection_state_name(conn.state))
    if conn.state == CS_CONNECTING and now_us < conn.connect_deadline_us:
        timers_arm(&pool.timers, &conn.timer, conn.connect_deadline_us)
        mark_dirty(pool, conn, CF_LOOK)
    elif conn.state == CS_CONNECTING:
        connection_silent(pool, conn, CE_CONNECT_FAILED)
    elif conn.state == CS_BACKOFF and not conn.retired:
        endpoint = conn.endpoint
        if not conn.renewed or endpoint < 0:
            endpoint = pick_endpoint(pool, part_of(pool, conn), conn)
        _start_connect(pool, conn, endpoint, now_us)
    elif conn.state == CS_ACTIVE:
        if (conn.retired or conn.leaving) and conn.queue.head == NULL and conn.flight.head == NULL:
            mark_dirty(pool, conn, CF_CLOSE)
            return
        mark_dirty(pool, conn, CF_LOOK)


cdef void connections_looked(ConnectionPool* pool, Connection* conn, int64_t held, int64_t now_us) noexcept nogil:
    """Check the progress of an active connection whose socket still holds ``held`` bytes.  Locality: executor."""
    progress_look(pool, conn, held, now_us)
    _ack_timeouts(pool, conn, now_us)
    if not (conn.flags & CF_CLOSE):
        heartbeat_due(pool, conn, now_us)
    _arm(pool, conn, now_us)


cdef void connections_expire(ConnectionPool* pool, int64_t now_us) noexcept nogil:
    """Act on every timer that is due.  Locality: executor."""
    cdef Timer* timer = timers_pop(&pool.timers, now_us)
    while timer != NULL:
        if timer.kind == TK_CONNECTION:
            _connection_timer(pool, <Connection*>timer.owner, now_us)
        else:
            retry_due(pool, <Pack*>timer.owner, now_us)
        timer = timers_pop(&pool.timers, now_us)
    outliers_judge(pool, now_us)
    if DP_CHECKED:
        _check(pool)


cdef void connections_abort(ConnectionPool* pool, int code) noexcept nogil:
    """Fail everything that has no result yet, and close all connections.  Locality: executor."""
    cdef int i
    cdef Connection* conn
    pool.closing = True
    while pool.waiting.head != NULL:
        settle_failed(pool, pool.waiting.head, OUT_FAILED, code)
    while pool.backoff.head != NULL:
        settle_failed(pool, pool.backoff.head, OUT_FAILED, code)
    for i in range(pool.n_connections):
        conn = pool.connections[i]
        while conn.flight.head != NULL:
            settle_failed(pool, conn.flight.head, OUT_FAILED, code)
        while conn.queue.head != NULL:
            if conn.queue.head.answered:
                settle_delivered(pool, conn.queue.head)
            else:
                settle_failed(pool, conn.queue.head, OUT_FAILED, code)
        mark_dirty(pool, conn, CF_CLOSE)
    key_queues_abort(pool, code)
    if DP_CHECKED:
        _check(pool)


cdef Connection* connections_take_dirty(ConnectionPool* pool) noexcept nogil:
    """Return a connection that needs socket work, or NULL; the executor clears its flags.

    Locality: executor.
    """
    cdef Connection* conn = pool.dirty
    if conn != NULL:
        pool.dirty = conn.next_dirty
        conn.dirty = False
    return conn
