"""Which connection a frame takes, and how long one waits.

Choice.  Two different connections are drawn at random, each with a chance in proportion to its weight; the one with
fewer bytes that wait or are unanswered gets the frame.  The result is within a small factor of the best connection
("the power of two choices", Mitzenmacher 2001), and many producers do not all run to the same proxy.  A draw takes
constant time: a connection is picked, and accepted with the chance ``weight / top_weight``.  Only where most
connections are refused in this way (they are avoided, or their proxies are out), all weights are summed up.

All this is done among the connections to the cluster that takes the frame (``clusters``).

Weight of a connection: the mean load of the active connections to its cluster divided by its own load, at least a
quarter and at most four.  A proxy whose load is unknown has weight 1, which is that of a proxy with the mean load.  For
SLOW_START_US after a proxy was found or came back, the weight of its connections rises from a tenth of that to the
whole.

Doubt about a proxy that was silent: every connection to it is avoided until the proxy sends something.  A doubt belongs
to the proxy (found by its label) and not to the connection, because connections move from one proxy to another.  A
doubt that began over one connection holds for all connections to that proxy, later ones too, and for no other proxy.

Load of a proxy: 30 samples, weighted by age with the newest heaviest.  The weights are those of the first C++ SDK
(specification 6.1): 1 for the five oldest, then 2, 3, 6, 12, and 48, 96, 192, 384, 1000 for the five newest; their sum
is 1840.  That SDK gives the weights to slots of the ring.  So, once the ring is full, the newest sample may have weight
1, and slot 29 dominates for 30 heartbeats.  ``load_average`` gives the weights by age, as intended;
``load_average_by_slot`` serves for comparison with the C++ SDK.  Both use only samples above zero, as that SDK does.

Retry budget: a token bucket for resends.  A resend takes a token.  Every delivered frame adds a share of a token, and a
delivered resend gives its token back.  BUDGET_FLOOR tokens are added each second.  So a resend that succeeds costs
nothing, and resends that fail are bounded by a share of the successes plus BUDGET_FLOOR a second.  Each cluster has a
budget of its own.

Locality: executor, except where a function says otherwise.  Locks: none.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy, strcmp

from dataproxy._core.conn.clusters cimport same_proxy
from dataproxy._core.conn.connection cimport LOAD_UNKNOWN, LOAD_WINDOW, ONE_WEIGHT, Endpoint

cdef enum:
    ONE = ONE_WEIGHT
    IDLE_LOAD = 10              # added to loads before they are compared: small ones say little
    LEAST_WEIGHT = 250
    MOST_WEIGHT = 4000
    SLOW_START_US = 10000000
    SLOW_START_LEAST = 100
    DRAWS = 8                   # before all weights are summed up
    BUDGET_FLOOR = 10           # resends a second that are always allowed
    SECOND_US = 1000000

cdef int[30] WEIGHTS = [
    1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 6, 6, 6, 6, 6, 12, 12, 12, 12, 12, 48, 96, 192, 384, 1000,
]


cdef int64_t connection_bytes(const Connection* conn) noexcept nogil:
    """Return the bytes that wait on ``conn`` or are unanswered there."""
    return conn.queue_bytes + conn.flight_bytes


cdef int64_t candidate_weight(const ConnectionPool* pool, const Connection* conn, int64_t now_us) noexcept nogil:
    """Return the weight in thousandths with which an active connection is drawn; 0: it is no candidate."""
    cdef const Health* health = &pool.health[conn.endpoint]
    cdef int64_t age
    if health.out or avoided_until(pool, conn) > now_us:
        return 0
    age = now_us - health.since_us
    if age >= SLOW_START_US or health.since_us == 0:
        return conn.weight
    return max(conn.weight * max(ONE * age // SLOW_START_US, <int64_t>SLOW_START_LEAST) // ONE, <int64_t>1)


cdef void weigh_connections(ClusterPart* part) noexcept nogil:
    """Set the weights of the active connections to a cluster by the loads that their proxies reported."""
    cdef int64_t sum = 0, known = 0, mean, weight
    cdef Connection* conn
    cdef int i
    for i in range(part.n_active):
        conn = part.active[i]
        if conn.counters.load > LOAD_UNKNOWN:
            sum += conn.counters.load
            known += 1
    mean = sum // known if known else 0
    part.top_weight = ONE
    for i in range(part.n_active):
        conn = part.active[i]
        weight = ONE
        if conn.counters.load > LOAD_UNKNOWN:
            weight = ONE * (mean + IDLE_LOAD) // (conn.counters.load + IDLE_LOAD)
        conn.weight = min(max(weight, <int64_t>LEAST_WEIGHT), <int64_t>MOST_WEIGHT)
        part.top_weight = max(part.top_weight, conn.weight)


cdef Connection* _draw_slowly(
    ConnectionPool* pool, const ClusterPart* part, const Connection* but, int64_t now_us,
) noexcept nogil:
    """Draw a connection other than ``but`` by weight from the sum of all; NULL: there is no candidate."""
    cdef int64_t sum = 0, weight, place
    cdef Connection* conn
    cdef int i
    for i in range(part.n_active):
        if part.active[i] != but:
            sum += candidate_weight(pool, part.active[i], now_us)
    place = <int64_t>rand_below(&pool.random, <uint64_t>sum)
    for i in range(part.n_active):
        conn = part.active[i]
        weight = candidate_weight(pool, conn, now_us) if conn != but else 0
        if place < weight:
            return conn
        place -= weight
    return NULL


cdef Connection* draw_connection(
    ConnectionPool* pool, const ClusterPart* part, const Connection* but, int64_t now_us,
) noexcept nogil:
    """Draw a connection to a cluster with a chance in proportion to its weight; NULL: there is no candidate.

    ``but`` is not drawn.
    """
    cdef Connection* conn
    cdef int64_t weight
    cdef int _
    for _ in range(DRAWS):
        conn = part.active[rand_below(&pool.random, <uint64_t>part.n_active)]
        if conn == but:
            continue
        weight = candidate_weight(pool, conn, now_us)
        if weight > 0 and (weight >= part.top_weight
                           or <int64_t>rand_below(&pool.random, <uint64_t>part.top_weight) < weight):
            return conn
    return _draw_slowly(pool, part, but, now_us)


cdef Connection* _least_avoided(ConnectionPool* pool, ClusterPart* part, int64_t now_us) noexcept nogil:
    """Return the connection whose avoidance ends first; of several, the one with the fewest bytes, in turn."""
    cdef Connection* best = NULL
    cdef Connection* conn
    cdef int64_t least = 0, until
    cdef uint32_t i
    for i in range(<uint32_t>part.n_active):
        conn = part.active[(part.cursor + i) % <uint32_t>part.n_active]
        until = avoided_until(pool, conn)
        until = until if until > now_us else now_us
        if best == NULL or until < least or until == least and connection_bytes(conn) < connection_bytes(best):
            best = conn
            least = until
    part.cursor += 1
    return best


cdef Connection* choose_connection(ConnectionPool* pool, ClusterPart* part, int64_t now_us) noexcept nogil:
    """Return the connection for the next frame of a cluster, or NULL if none is active."""
    cdef Connection* a
    cdef Connection* b
    if part.n_active < 2:
        return part.active[0] if part.n_active else NULL
    a = draw_connection(pool, part, NULL, now_us)
    if a == NULL:
        return _least_avoided(pool, part, now_us)
    b = draw_connection(pool, part, a, now_us)
    return b if b != NULL and connection_bytes(b) < connection_bytes(a) else a


cdef void proxy_doubt(ConnectionPool* pool, const char* label, int64_t now_us) noexcept nogil:
    """Begin or renew the doubt about a proxy; does nothing if the proxy has left the list."""
    cdef int64_t until = now_us + pool.config.avoid_us
    cdef int i
    for i in range(pool.n_endpoints):
        if strcmp(pool.endpoints[i].label, label) == 0:
            pool.health[i].doubted = True
            pool.doubted = True
            if pool.health[i].until_us < until:
                pool.health[i].until_us = until


cdef void proxy_heard(ConnectionPool* pool, const char* label) noexcept nogil:
    """End the doubt about a proxy that has sent something."""
    cdef int i
    pool.doubted = False
    for i in range(pool.n_endpoints):
        if strcmp(pool.endpoints[i].label, label) == 0:
            pool.health[i].doubted = False
            pool.health[i].until_us = 0
        pool.doubted = pool.doubted or pool.health[i].doubted


cdef bint _had_cluster(const ConnectionPool* pool, int cluster) noexcept nogil:
    cdef int i
    for i in range(pool.lists.n_parts):
        if pool.lists.parts[i].cluster == cluster and pool.lists.parts[i].n > 0:
            return True
    return False


cdef void _inherit(const ConnectionPool* pool, Health* health, const Endpoint* one) noexcept nogil:
    """Take over what is known of a proxy.  Only a doubt holds for whatever proxy is found at the same address."""
    cdef int k
    for k in range(pool.n_endpoints):
        if same_proxy(one, &pool.endpoints[k]):
            memcpy(health, &pool.health[k], sizeof(Health))
            health.added = False
            return
        if strcmp(one.label, pool.endpoints[k].label) == 0 and pool.health[k].doubted:
            health.doubted = True
            health.until_us = max(health.until_us, pool.health[k].until_us)


cdef Health* health_of(const ConnectionPool* pool, const ProxyLists* lists) noexcept nogil:
    """Return what is known of the proxies of new lists, or NULL if there is no memory."""
    cdef Health* out = <Health*>calloc(<size_t>lists.n_endpoints + 1, sizeof(Health))
    cdef const ClusterPart* part
    cdef int i, k
    cdef bint had
    if out == NULL:
        return NULL
    for k in range(lists.n_parts):
        part = &lists.parts[k]
        had = _had_cluster(pool, part.cluster)
        for i in range(part.first, part.first + part.n):
            out[i].added = had
            _inherit(pool, &out[i], &lists.endpoints[i])
    return out


cdef void load_clear(LoadWindow* w) noexcept nogil:
    """Forget all samples: the connection is new, or has a new socket."""
    cdef int i
    for i in range(LOAD_WINDOW):
        w.samples[i] = LOAD_UNKNOWN
    w.total = 0


cdef void load_add(LoadWindow* w, int load) noexcept nogil:
    """Store the load of one heartbeat answer; LOAD_UNKNOWN takes a place too, so that older samples keep their age."""
    w.samples[w.total % LOAD_WINDOW] = load
    w.total += 1


cdef int load_average(const LoadWindow* w) noexcept nogil:
    """Return the average by age: LOAD_UNKNOWN without a known sample, 0 if all known ones are 0.

    The average is ``sum(load * weight) / sum(weight)`` over samples above zero.  With fewer than 30 samples, the
    newest still has weight 1000, the one before it 384, and so on.
    """
    cdef int64_t weighted = 0, weights = 0, kept, age
    cdef int sample
    cdef bint known = False
    kept = w.total if w.total < LOAD_WINDOW else LOAD_WINDOW
    for age in range(kept):
        sample = w.samples[(w.total - 1 - age) % LOAD_WINDOW]
        if sample == LOAD_UNKNOWN:
            continue
        known = True
        if sample > 0:
            weighted += <int64_t>sample * WEIGHTS[LOAD_WINDOW - 1 - age]
            weights += WEIGHTS[LOAD_WINDOW - 1 - age]
    if not known:
        return LOAD_UNKNOWN
    return <int>(weighted // weights) if weights else 0


cdef int load_average_by_slot(const LoadWindow* w) noexcept nogil:
    """Return the average as the first C++ SDK computes it, with weights by slot; 0 without samples."""
    cdef int64_t weighted = 0, weights = 0
    cdef int i
    for i in range(LOAD_WINDOW):
        if w.samples[i] > 0:
            weighted += <int64_t>w.samples[i] * WEIGHTS[i]
            weights += WEIGHTS[i]
    return <int>(weighted // weights) if weights else 0


cdef void budget_open(RetryBudget* b, int64_t share) noexcept nogil:
    """Fill the bucket; ``share`` is in thousandths.  Locality: the executor's creator."""
    b.tokens = BUDGET_BURST * ONE
    b.share = share
    b.refilled_us = 0


cdef bint budget_take(RetryBudget* b, int64_t now_us) noexcept nogil:
    """Take a token for one resend; False if there is none.  Locality: executor."""
    cdef int64_t drip = (now_us - b.refilled_us) * (BUDGET_FLOOR * ONE) // SECOND_US if b.refilled_us else 0
    if drip > 0 or b.refilled_us == 0:
        b.tokens = min(b.tokens + drip, <int64_t>(BUDGET_BURST * ONE))
        b.refilled_us = now_us
    if b.tokens < ONE:
        return False
    b.tokens -= ONE
    return True
