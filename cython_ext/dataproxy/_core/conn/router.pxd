"""Which connection a frame takes, and how long one waits.

Locality: executor; ``backoff_us``: the thread that owns ``random``.  Locks: none.
"""

from libc.stdint cimport int64_t, uint64_t

from dataproxy._core.base.rand cimport rand_below
from dataproxy._core.conn.connection cimport Doubt, Endpoint, Connection, ConnectionPool, LoadWindow, RetryBudget


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
    """Return until when (microseconds) a connection is avoided: its server asked for that, or its proxy was silent."""
    cdef int64_t silent = pool.doubts[conn.endpoint].until_us if conn.endpoint >= 0 else 0
    return silent if silent > conn.avoid_until_us else conn.avoid_until_us


cdef inline bint proxy_doubted(const ConnectionPool* pool, const Connection* conn) noexcept nogil:
    """Tell whether a connection's proxy was silent and has sent nothing since then."""
    return conn.endpoint >= 0 and pool.doubts[conn.endpoint].doubted


# Choice of a connection: the next in turn or a random one, by waiting bytes and by the proxy's load.
cdef Connection* choose_connection(ConnectionPool* pool, int64_t now_us) noexcept nogil
cdef int64_t connection_cost(const Connection* conn, bint with_load) noexcept nogil
# Proxies that were silent.
cdef void proxy_doubt(ConnectionPool* pool, const char* label, int64_t now_us) noexcept nogil
cdef void proxy_heard(ConnectionPool* pool, const char* label) noexcept nogil
cdef Doubt* doubts_of(const ConnectionPool* pool, const Endpoint* list, int n) noexcept nogil
# The last 30 loads that a proxy reported, and their weighted average.
cdef void load_clear(LoadWindow* w) noexcept nogil
cdef void load_add(LoadWindow* w, int load) noexcept nogil
cdef int load_average(const LoadWindow* w) noexcept nogil
cdef int load_average_by_slot(const LoadWindow* w) noexcept nogil
# Retry budget: bounds resends without success, so that they do not overload a cluster that already has problems.
cdef void budget_open(RetryBudget* b, int64_t share) noexcept nogil
cdef bint budget_take(RetryBudget* b, int64_t now_us) noexcept nogil
cdef void budget_earn(RetryBudget* b, bint resent) noexcept nogil
