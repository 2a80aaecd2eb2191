"""Which connection a frame takes, and how long one waits.

Locality: executor; ``backoff_us``: the thread that owns ``random``.  Locks: none.
"""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.rand cimport rand_below
from dataproxy._core.conn.connection cimport (
    ONE_WEIGHT, ClusterPart, Connection, ConnectionPool, Health, LoadWindow, ProxyLists, RetryBudget,
)

cdef enum:
    BUDGET_BURST = 256          # resends that may be under way without any success


cdef inline int64_t backoff_us(int attempt, int64_t base_us, int64_t max_us, uint64_t* random) noexcept nogil:
    """Return the wait in microseconds before retry number ``attempt`` (1 = the first retry)."""
    cdef int64_t span = base_us
    while attempt > 1 and span < max_us:
        span *= 2
        attempt -= 1
    if span > max_us:
        span = max_us
    return <int64_t>rand_below(random, <uint64_t>span + 1)


cdef inline int64_t avoided_until(const ConnectionPool* pool, const Connection* conn) noexcept nogil:
    """Return until when (microseconds) a connection is avoided.

    Its server asked for that, or its proxy was silent, or its proxy is out.
    """
    cdef int64_t until = conn.avoid_until_us
    cdef const Health* health
    if conn.endpoint >= 0:
        health = &pool.health[conn.endpoint]
        until = max(until, health.until_us)
        if health.out:
            until = max(until, health.out_until_us)
    return until


cdef inline bint proxy_doubted(const ConnectionPool* pool, const Connection* conn) noexcept nogil:
    """Tell whether a connection's proxy was silent and has sent nothing since then."""
    return conn.endpoint >= 0 and pool.health[conn.endpoint].doubted


# Choice of a connection: two are drawn by weight, and the one with fewer bytes on it is taken.
cdef Connection* choose_connection(ConnectionPool* pool, ClusterPart* part, int64_t now_us) noexcept nogil
cdef Connection* draw_connection(
    ConnectionPool* pool, const ClusterPart* part, const Connection* but, int64_t now_us) noexcept nogil
cdef int64_t candidate_weight(const ConnectionPool* pool, const Connection* conn, int64_t now_us) noexcept nogil
cdef int64_t connection_bytes(const Connection* conn) noexcept nogil
cdef void weigh_connections(ClusterPart* part) noexcept nogil
# Proxies that were silent.
cdef void proxy_doubt(ConnectionPool* pool, const char* label, int64_t now_us) noexcept nogil
cdef void proxy_heard(ConnectionPool* pool, const char* label) noexcept nogil
cdef Health* health_of(const ConnectionPool* pool, const ProxyLists* lists) noexcept nogil
# The last 30 loads that a proxy reported, and their weighted average.
cdef void load_clear(LoadWindow* w) noexcept nogil
cdef void load_add(LoadWindow* w, int load) noexcept nogil
cdef int load_average(const LoadWindow* w) noexcept nogil
cdef int load_average_by_slot(const LoadWindow* w) noexcept nogil
# Retry budget: bounds resends without success, so that they do not overload a cluster that already has problems.
cdef void budget_open(RetryBudget* b, int64_t share) noexcept nogil
cdef bint budget_take(RetryBudget* b, int64_t now_us) noexcept nogil


cdef inline void budget_earn(RetryBudget* b, bint resent) noexcept nogil:
    """Count one delivered frame; ``resent``: it took a token before.  Locality: executor."""
    b.tokens = min(b.tokens + b.share + (ONE_WEIGHT if resent else 0), <int64_t>(BUDGET_BURST * ONE_WEIGHT))
