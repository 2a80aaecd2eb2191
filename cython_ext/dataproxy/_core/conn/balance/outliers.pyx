"""Proxies that do worse than their peers: taken out, asked by heartbeats, and taken back.

A proxy is *out* while it takes no frames although it may be connected.  What is known of a proxy belongs to the proxy,
not to a connection, and to one pool: executors share nothing.

Reasons.  FAILURES: connections lost, connects failed or frames unanswered, FAILURES_OUT times without an answer to a
frame in between.  REFUSALS: at least REFUSALS_OUT frames refused for reasons of the proxy within WINDOW_US, more than
it accepted.  SLOW: the median of the newest answer times of one of its connections is SLOW_TIMES the median of the
other connections, and SLOW_US more.  SILENT: frames wait there for an answer, and nothing has come for STALL_TIMES the
median of all, at least STALL_US, and at least two looks at the socket; bytes that the network still carries count as
something that came (``progress``).  Answer times run from a frame's last written byte to its answer.

How long.  OUT_US at first, twice as long each time, up to OUT_MOST_US, and a quarter more by chance, so that many
producers do not return at once.  FORGET_US after its last return the count begins anew.

Return.  When the time is over, the proxy is *half open*: it is sent a heartbeat, and after PROBES answers that are not
slow it takes frames again, few at first (slow start in ``router``).  A slow answer begins the next time.  A proxy that
was out for failures is asked as soon as it is connected again.  Without heartbeats, or without a connection, the time
alone decides.

Peers are the proxies of the same cluster.  At most half of those to which a pool is connected are out at the same time.
If most do badly, none of them is an outlier.

Locality: executor.  Locks: none.
"""

from libc.stdint cimport uint32_t
from libc.stdio cimport snprintf

from dataproxy._core.base.rand cimport rand_below
from dataproxy._core.base.slice cimport Slice, slice_of
from dataproxy._core.conn.clusters cimport part_of
from dataproxy._core.conn.connection cimport (
    CE_OUT, CE_RETURNED, CS_ACTIVE, OR_FAILURES, OR_NONE, OR_REFUSALS, OR_SILENT, OR_SLOW, ClusterPart, Health,
)
from dataproxy._core.conn.heartbeat cimport heartbeat_at
from dataproxy._core.conn.progress cimport look_every_us
from dataproxy._core.conn.balance.standby cimport standbys_fill, standbys_look
from dataproxy._core.plat.atomic cimport relaxed_add, relaxed_store

cdef enum:
    FAILURES_OUT = 3
    REFUSALS_OUT = 8
    WINDOW_US = 10000000
    LEAST_ANSWERS = 3           # of a connection, before it is compared
    SLOW_TIMES = 3
    SLOW_US = 10000
    STALL_TIMES = 8
    STALL_US = 1000000
    JUDGE_US = 200000           # between two comparisons
    OUT_US = 10000000
    OUT_MOST_US = 300000000
    FORGET_US = 300000000
    PROBES = 2
    PROBE_US = 200000           # between them
    TEXT = 120


cdef int64_t _answers_of(const ConnectionPool* pool, int endpoint) noexcept nogil:
    cdef int64_t n = 0
    cdef int i
    for i in range(pool.n_connections):
        if pool.connections[i].endpoint == endpoint:
            n += pool.connections[i].n_answers
    return n


cdef bint _answered_since(ConnectionPool* pool, int endpoint) noexcept nogil:
    """Tell whether a proxy has answered a frame since this was last asked, over any connection."""
    cdef Connection* conn
    cdef int i
    cdef bint answered = False
    for i in range(pool.n_connections):
        conn = pool.connections[i]
        if conn.endpoint == endpoint and conn.counters.acked_frames != conn.acked_before:
            conn.acked_before = conn.counters.acked_frames
            answered = True
    return answered


cdef bint _connected(const ConnectionPool* pool, int endpoint) noexcept nogil:
    cdef int i
    for i in range(pool.n_connections):
        if pool.connections[i].endpoint == endpoint and pool.connections[i].state == CS_ACTIVE:
            return True
    return False


cdef bint _too_many(const ConnectionPool* pool, const Connection* conn) noexcept nogil:
    """Tell whether more than half of the connected proxies of a cluster would be out with that of ``conn``."""
    cdef const ClusterPart* part = part_of(pool, conn)
    cdef int i, connected = 0, out = 1
    for i in range(part.first, part.first + part.n):
        if _connected(pool, i):
            connected += 1
            if i != conn.endpoint and pool.health[i].out:
                out += 1
    return 2 * out > connected


cdef void _show(ConnectionPool* pool, int endpoint, int reason) noexcept nogil:
    cdef int i
    for i in range(pool.n_connections):
        if pool.connections[i].endpoint == endpoint:
            relaxed_store(&pool.connections[i].counters.out, reason)


cdef int64_t _rest_us(ConnectionPool* pool, Health* health, int64_t now_us) noexcept nogil:
    """Return for how long a proxy is out this time."""
    cdef int64_t span = OUT_US
    cdef int _
    if health.returned_us and now_us - health.returned_us > FORGET_US:
        health.ejections = 0
    for _ in range(min(health.ejections, 8)):
        span = min(2 * span, <int64_t>OUT_MOST_US)
    health.ejections += 1
    return span + <int64_t>rand_below(&pool.random, span // 4)


cdef void _take_out(
    ConnectionPool* pool, const Connection* conn, int reason, Slice text, int64_t now_us,
) noexcept nogil:
    cdef int i, endpoint = conn.endpoint
    cdef Health* health = &pool.health[endpoint]
    if pool.config.keep_outliers or health.out or pool.closing or (
            _connected(pool, endpoint) and _too_many(pool, conn)):
        return
    health.out = reason
    health.out_until_us = now_us + _rest_us(pool, health, now_us)
    health.probes = 0
    relaxed_add(&pool.outs[reason], 1)
    _show(pool, endpoint, reason)
    pool.event(pool.event_context, CE_OUT, pool.endpoints[endpoint].label, reason, text)
    for i in range(pool.n_connections):
        if pool.connections[i].endpoint == endpoint and pool.connections[i].state == CS_ACTIVE:
            heartbeat_at(pool, pool.connections[i], health.out_until_us)
    standbys_fill(pool, now_us)


cdef void _take_back(ConnectionPool* pool, int endpoint, int64_t now_us) noexcept nogil:
    cdef Health* health = &pool.health[endpoint]
    cdef int i, reason = health.out
    cdef bint connected = _connected(pool, endpoint)
    health.out = OR_NONE
    health.failures = 0
    health.refusals = 0
    health.window_us = 0
    health.returned_us = now_us
    health.since_us = now_us
    _show(pool, endpoint, OR_NONE)
    for i in range(pool.n_connections):
        if pool.connections[i].endpoint == endpoint:
            pool.connections[i].n_answers = 0       # what is measured from now on counts
            pool.connections[i].judged = 0
    if not connected:
        return                  # it may be connected to again
    relaxed_add(&pool.returns, 1)
    pool.event(pool.event_context, CE_RETURNED, pool.endpoints[endpoint].label, reason, slice_of(NULL, 0))


cdef void outlier_failure(ConnectionPool* pool, const Connection* conn, int64_t now_us) noexcept nogil:
    """Count a failed connect, a lost connection, or a frame that was not answered in time."""
    cdef char text[TEXT]
    cdef Health* health
    cdef int n
    if conn.endpoint < 0:
        return
    health = &pool.health[conn.endpoint]
    if _answered_since(pool, conn.endpoint):
        health.failures = 0
    health.failures += 1
    if health.failures >= FAILURES_OUT:
        n = snprintf(text, sizeof(text), "%d failures in a row", health.failures)
        _take_out(pool, conn, OR_FAILURES, slice_of(text, <size_t>n), now_us)


cdef void outlier_refusal(ConnectionPool* pool, const Connection* conn, int64_t now_us) noexcept nogil:
    """Count a frame that the proxy refused for a reason of its own."""
    cdef char text[TEXT]
    cdef Health* health
    cdef int64_t answers
    cdef int n
    if conn.endpoint < 0:
        return
    health = &pool.health[conn.endpoint]
    answers = _answers_of(pool, conn.endpoint)
    if health.refusals == 0 or now_us - health.window_us > WINDOW_US or answers < health.window_answers:
        health.refusals = 0
        health.window_us = now_us
        health.window_answers = answers - 1
    health.refusals += 1
    answers -= health.window_answers
    if health.refusals >= REFUSALS_OUT and 2 * health.refusals > answers:
        n = snprintf(text, sizeof(text), "it refused %ld of %ld frames", health.refusals, answers)
        _take_out(pool, conn, OR_REFUSALS, slice_of(text, <size_t>n), now_us)


cdef void outlier_connected(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    """Begin with a connection that was made: its slow start, or the first question to a proxy that is out."""
    cdef Health* health = &pool.health[conn.endpoint]
    cdef const Connection* other
    cdef int i
    cdef bint known = False, used = False
    conn.n_answers = 0
    conn.judged = 0
    conn.asked_us = 0
    conn.acked_before = conn.counters.acked_frames
    relaxed_store(&conn.counters.answer_us, 0)
    relaxed_store(&conn.counters.out, health.out)
    for i in range(pool.n_connections):
        other = pool.connections[i]
        if other != conn and other.state == CS_ACTIVE and other.part == conn.part:
            used = used or other.n_answers > 0
            known = known or other.endpoint == conn.endpoint
    if not known:
        health.since_us = now_us if used else 0
    if health.out == OR_FAILURES:
        health.out_until_us = now_us
    if health.out and (pool.config.heartbeat_us == 0 or _too_many(pool, conn)):
        _take_back(pool, conn.endpoint, now_us)
    elif health.out:
        heartbeat_at(pool, conn, health.out_until_us)


cdef void outlier_probed(ConnectionPool* pool, Connection* conn, int64_t now_us) noexcept nogil:
    """Note the answer to a heartbeat: a proxy that was out long enough returns after some of them."""
    cdef Health* health
    cdef int64_t took = now_us - conn.asked_us
    cdef int64_t peers_us
    if conn.endpoint < 0:
        return
    health = &pool.health[conn.endpoint]
    if not health.out or now_us < health.out_until_us or conn.asked_us == 0:
        return
    peers_us = part_of(pool, conn).peers_us
    if peers_us and took > SLOW_TIMES * peers_us + SLOW_US:
        health.probes = 0
        health.out_until_us = now_us + _rest_us(pool, health, now_us)
        heartbeat_at(pool, conn, health.out_until_us)
        return
    health.probes += 1
    if health.probes >= PROBES:
        _take_back(pool, conn.endpoint, now_us)
    else:
        heartbeat_at(pool, conn, now_us + PROBE_US)


cdef int64_t _median(const Connection* conn) noexcept nogil:
    """Return the median of the newest answer times, -1 while there are too few."""
    cdef int64_t sorted[ANSWERS_KEPT]
    cdef uint32_t i, n = min(conn.n_answers, <uint32_t>ANSWERS_KEPT)
    if n < LEAST_ANSWERS:
        return -1
    for i in range(n):
        _insert(sorted, <int>i, conn.answers[i])
    return sorted[n // 2]


cdef void _insert(int64_t* sorted, int n, int64_t value) noexcept nogil:
    cdef int at = n
    while at > 0 and sorted[at - 1] > value:
        sorted[at] = sorted[at - 1]
        at -= 1
    sorted[at] = value


cdef int64_t _middle_but(const int64_t* sorted, int n, int64_t value) noexcept nogil:
    """Return the middle one of ``sorted`` without one of its elements that is ``value``; the lower one of two."""
    cdef int middle = (n - 2) // 2
    return sorted[middle + 1] if sorted[middle] >= value else sorted[middle]


cdef void _judge_times(ConnectionPool* pool, ClusterPart* part, int64_t now_us) noexcept nogil:
    """Take out the proxies of a cluster whose answers take much longer than those of the others."""
    cdef char text[TEXT]
    cdef Connection* conn
    cdef int64_t median, peers
    cdef int i, n = 0, said
    for i in range(part.n_active):
        conn = part.active[i]
        median = _median(conn)
        relaxed_store(&conn.counters.answer_us, max(median, <int64_t>0))
        if median >= 0 and not pool.health[conn.endpoint].out:
            _insert(pool.medians, n, median)
            n += 1
    part.peers_us = max(pool.medians[(n - 1) // 2], <int64_t>1) if n else 0
    if n < 2:
        return
    for i in range(pool.n_connections):         # taking one out changes who is active
        conn = pool.connections[i]
        if conn.part != part.index or conn.active_slot < 0 or conn.n_answers == conn.judged or (
                pool.health[conn.endpoint].out):
            continue
        median = _median(conn)
        if median < 0:
            continue
        conn.judged = conn.n_answers
        peers = _middle_but(pool.medians, n, median)
        if median > SLOW_TIMES * peers + SLOW_US:
            said = snprintf(text, sizeof(text), "it answers in %ld.%ld ms, its peers in %ld.%ld ms",
                            median // 1000, median % 1000 // 100, peers // 1000, peers % 1000 // 100)
            _take_out(pool, conn, OR_SLOW, slice_of(text, <size_t>said), now_us)


cdef void _judge_silence(ConnectionPool* pool, int64_t now_us) noexcept nogil:
    """Take out the proxies that have frames to answer and have said nothing for long."""
    cdef char text[TEXT]
    cdef Connection* conn
    cdef int64_t least = max(<int64_t>STALL_US, 2 * look_every_us(&pool.config))
    cdef int64_t since, peers_us
    cdef int i, said
    for i in range(pool.n_connections):
        conn = pool.connections[i]
        if conn.active_slot < 0 or conn.flight.head == NULL:
            continue
        peers_us = part_of(pool, conn).peers_us
        if peers_us == 0:
            continue
        since = conn.flight.head.sent_us if conn.flight.head.sent_end <= conn.acked else conn.moved_us
        if conn.last_read_us <= since and now_us - since > max(STALL_TIMES * peers_us, least):
            said = snprintf(text, sizeof(text), "nothing came for %ld ms while %ld frames waited",
                            (now_us - since) // 1000, conn.flight.n)
            _take_out(pool, conn, OR_SILENT, slice_of(text, <size_t>said), now_us)


cdef void _end_by_time(ConnectionPool* pool, int64_t now_us) noexcept nogil:
    """Take back the proxies whose time is over and that no heartbeat can ask."""
    cdef int i
    for i in range(pool.n_endpoints):
        if pool.health[i].out and now_us >= pool.health[i].out_until_us and (
                pool.config.heartbeat_us == 0 or not _connected(pool, i)):
            _take_back(pool, i, now_us)


cdef void outliers_judge(ConnectionPool* pool, int64_t now_us) noexcept nogil:
    """Compare the proxies with each other, if it is time; then look after the standbys."""
    cdef int i
    if now_us < pool.judge_at_us or pool.closing:
        return
    pool.judge_at_us = now_us + JUDGE_US
    if not pool.config.keep_outliers:
        for i in range(pool.lists.n_parts):
            _judge_times(pool, &pool.lists.parts[i], now_us)
        _judge_silence(pool, now_us)
        _end_by_time(pool, now_us)
    standbys_look(pool, now_us)
