"""Which connection a frame takes, and how long one waits.

Choice.  There are two candidates: the next connection in turn and a random one.  The cheaper of the two is chosen.
This takes constant time, and the result is within a small factor of the best connection ("the power of two choices",
Mitzenmacher 2001).  The cost of a connection is the number of bytes that wait or are unanswered there.  It is scaled by
the proxy's load if both loads are known.

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
nothing, and resends that fail are bounded by a share of the successes plus BUDGET_FLOOR a second.

Locality: executor, except where a function says otherwise.  Locks: none.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy, strcmp

from dataproxy._core.conn.connection cimport LOAD_UNKNOWN, LOAD_WINDOW

cdef enum:
    IDLE_COST = 4096        # so that load decides between idle connections
    LOAD_CAP = 1000
    BUDGET_BURST = 256      # resends that may be under way without any success
    BUDGET_FLOOR = 10       # resends a second that are always allowed
    ONE = 1000
    SECOND_US = 1000000

cdef int[30] WEIGHTS = [
    1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 6, 6, 6, 6, 6, 12, 12, 12, 12, 12, 48, 96, 192, 384, 1000,
]


cdef int64_t connection_cost(const Connection* conn, bint with_load) noexcept nogil:
    """Return what one more frame on ``conn`` costs; smaller is better."""
    cdef int64_t waits = conn.queue_bytes + conn.flight_bytes + IDLE_COST
    cdef int64_t load = 0
    if with_load:
        load = conn.counters.load if conn.counters.load < LOAD_CAP else LOAD_CAP
    return waits * (100 + load)


cdef bint _cheaper(const Connection* a, const Connection* b) noexcept nogil:
    cdef bint with_load = a.counters.load > LOAD_UNKNOWN and b.counters.load > LOAD_UNKNOWN
    return connection_cost(a, with_load) < connection_cost(b, with_load)


cdef Connection* _least_avoided(ConnectionPool* pool, int64_t now_us) noexcept nogil:
    """Return the connection whose avoidance ends first; of several, the cheapest."""
    cdef Connection* best = NULL
    cdef Connection* conn
    cdef int64_t least = 0, until
    cdef uint32_t i
    for i in range(<uint32_t>pool.n_active):
        conn = pool.active[(pool.cursor + i) % <uint32_t>pool.n_active]     # in turn while they cost the same
        until = avoided_until(pool, conn)
        until = until if until > now_us else now_us
        if best == NULL or until < least or until == least and _cheaper(conn, best):
            best = conn
            least = until
    return best


cdef Connection* choose_connection(ConnectionPool* pool, int64_t now_us) noexcept nogil:
    """Return the connection for the next frame, or NULL if none is active."""
    cdef Connection* a
    cdef Connection* b
    if pool.n_active == 0:
        return NULL
    a = pool.active[pool.cursor % <unsigned int>pool.n_active]
    pool.cursor += 1
    if pool.n_active > 1:
        b = pool.active[rand_below(&pool.random, <unsigned long>pool.n_active)]
        if avoided_until(pool, a) > now_us or avoided_until(pool, b) <= now_us and _cheaper(b, a):
            a = b
    if avoided_until(pool, a) > now_us:
        a = _least_avoided(pool, now_us)
    return a


cdef void proxy_doubt(ConnectionPool* pool, const char* label, int64_t now_us) noexcept nogil:
    """Begin or renew the doubt about a proxy; does nothing if the proxy has left the list."""
    cdef int64_t until = now_us + pool.config.avoid_us
    cdef int i
    for i in range(pool.n_endpoints):
        if strcmp(pool.endpoints[i].label, label) == 0:
            pool.doubts[i].doubted = True
            if pool.doubts[i].until_us < until:
                pool.doubts[i].until_us = until


cdef void proxy_heard(ConnectionPool* pool, const char* label) noexcept nogil:
    """End the doubt about a proxy that has sent something."""
    cdef int i
    for i in range(pool.n_endpoints):
        if strcmp(pool.endpoints[i].label, label) == 0:
            pool.doubts[i].doubted = False
            pool.doubts[i].until_us = 0


cdef Doubt* doubts_of(const ConnectionPool* pool, const Endpoint* list, int n) noexcept nogil:
    """Return the doubts about the proxies of a new list, or NULL if there is no memory."""
    cdef Doubt* out = <Doubt*>calloc(<size_t>n, sizeof(Doubt))
    cdef int i, k
    if out == NULL:
        return NULL
    for i in range(n):
        for k in range(pool.n_endpoints):
            if strcmp(list[i].label, pool.endpoints[k].label) == 0:
                memcpy(&out[i], &pool.doubts[k], sizeof(Doubt))
                break
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


cdef void budget_earn(RetryBudget* b, bint resent) noexcept nogil:
    """Count one delivered frame; ``resent``: it took a token before.  Locality: executor."""
    b.tokens = min(b.tokens + b.share + (ONE if resent else 0), <int64_t>(BUDGET_BURST * ONE))
