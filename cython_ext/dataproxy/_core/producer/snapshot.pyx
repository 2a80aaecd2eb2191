"""One consistent copy of the accounting, and one of each connection.

Locality: GIL.  Locks: none, unless a docstring names them.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memset

from dataproxy._core.base.hist cimport HIST_SLOTS, Hist, hist_bound, hist_percentile, hist_up_to
from dataproxy._core.pack.pack cimport (
    OUT_DELIVERED, OUT_DROPPED, OUT_EXPIRED, OUT_FAILED, OUT_SENT, pool_bytes,
)
from dataproxy._core.producer.accumulate.batcher cimport batcher_counts
from dataproxy._core.producer.accumulate.state cimport BatcherCounts
from dataproxy._core.producer.results.accounting cimport AccountingCounts, accounting_latency
from dataproxy._core.producer.results.completions cimport (
    OUTCOMES, Trouble, completions_bytes, completions_last_trouble, completions_untold,
)
from dataproxy._core.producer.engine cimport Engine
from dataproxy._core.producer.results.undelivered cimport undelivered_counts
from dataproxy._core.net.executor cimport (
    ExecutorCounts, ConnectionCopy, executor_count, executor_connections, executor_take_reach,
)
from dataproxy._core.conn.connection cimport (
    CS_ACTIVE, LOAD_STOPPED, LOAD_UNKNOWN, ConnectionCounters, connection_state_name,
)


# Upper bounds in seconds: those of the OpenTelemetry conventions for the duration of a messaging operation.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)


# By OutReason and by SwapReason.
_OUT = (None, "failures", "refusals", "slow", "silent")
_SWAPPED = (None, "lost", "out", "load")


cdef dict _latency_dict(const Hist* h):
    """Return a latency histogram as the fields of ``Latency``."""
    out = {"count": h.n, "sum": h.total / 1e6, "max": h.largest / 1e6 if h.n else None}
    for name, percent in (("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p999", 99.9)):
        out[name] = hist_percentile(h, percent) / 1e6 if h.n else None
    out["buckets"] = tuple([(bound, hist_up_to(h, <int64_t>(bound * 1e6))) for bound in _BOUNDS])
    return out


cdef dict _balance_dict(const ExecutorCounts* n):
    """Return how often which change was made to the proxies in use."""
    out = {f"out_{word}": n.outs[i] for i, word in enumerate(_OUT) if word}
    out["returned"] = n.returns
    out.update({f"swapped_{word}": n.swaps[i] for i, word in enumerate(_SWAPPED) if word})
    return out


cdef dict _pools_dict(Engine* g):
    """Return the sums of what each executor counts by itself.  Locality: GIL."""
    cdef ExecutorCounts n
    cdef int i
    memset(&n, 0, sizeof(ExecutorCounts))
    for i in range(g.n_executors):
        executor_count(g.executors[i], &n)
    return {
        "held_back": n.held_back, "retries": n.retries, "unmatched": n.unmatched, "duplicates_possible": n.duplicates,
        "copies_possible": n.copies, "duplicates_filtered": n.known, "conflicts": n.differed,
        "filtered_frames": n.filtered, "balance": _balance_dict(&n),
    }


cdef tuple trouble_tuple(Engine* g):
    """Return the last failure in the form that `dataproxy.lasterror` takes, None without one.  Locality: GIL."""
    cdef Trouble trouble
    completions_last_trouble(&g.completions, &trouble)
    if trouble.kind == 0:
        return None
    return (
        trouble.kind, trouble.detail, trouble.label.decode("utf-8", "replace"), trouble.text.decode("utf-8", "replace"),
        (g.clock.now_us() - trouble.at_us) / 1e6, bool(trouble.healed))


cdef dict counts_dict(Engine* g):
    """Return all counters, read at one moment.  Locality: GIL.  Locks: takes batcher.lock, then accounting.lock.

    The locks are held only while numbers are copied; no Python object is made meanwhile.
    """
    cdef BatcherCounts b
    cdef AccountingCounts k
    cdef int64_t untold[OUTCOMES]
    cdef int64_t kept = 0, not_kept = 0
    cdef int i
    batcher_counts(&g.batcher, &g.accounting, &b, &k)
    completions_untold(&g.completions, untold)
    undelivered_counts(&g.undelivered, &kept, &not_kept)
    return {
        "accepted": b.accepted, "accepted_bytes": b.accepted_bytes, "open": b.open_messages, "in_flight": k.in_flight,
        "in_flight_frames": k.in_flight_packs, "delivered": k.delivered, "sent": k.sent, "failed": k.failed,
        "expired": k.expired, "dropped": k.dropped, "maybe_delivered": k.maybe_delivered,
        "delivered_bytes": k.delivered_bytes, "settled_frames": k.settled_packs, "resent": k.resent,
        "buffered_bytes": b.charged - k.released,
        "memory_bytes": pool_bytes(&g.spares), "results_bytes": completions_bytes(&g.completions),
        "untold": {
            "delivered": untold[<int>OUT_DELIVERED], "failed": untold[<int>OUT_FAILED],
            "expired": untold[<int>OUT_EXPIRED], "dropped": untold[<int>OUT_DROPPED], "sent": untold[<int>OUT_SENT],
        },
        "undelivered_bytes": kept, "not_kept": not_kept,
        "codes": {k.codes[i]: k.code_counts[i] for i in range(k.n_codes)},
        "trouble": trouble_tuple(g),
        "latency": _latency_dict(&k.latency),
        **_pools_dict(g),
    }


cdef int64_t take_reach(Engine* g) noexcept nogil:
    """Return how many seconds servers remember message ids: the shortest time told since the last call, -1: none.

    Locality: one thread, with nothing in flight.
    """
    cdef int64_t shortest = -1, one
    cdef int i
    for i in range(g.n_executors):
        one = executor_take_reach(g.executors[i])
        if one >= 0 and (shortest < 0 or one < shortest):
            shortest = one
    return shortest


cdef dict latency_steps(Engine* g):
    """Return the histogram of latencies: upper bound in us -> messages.  Locality: GIL.  Locks: takes accounting.lock.
    """
    cdef Hist latency
    cdef int i
    accounting_latency(&g.accounting, &latency)
    return {hist_bound(i): latency.counts[i] for i in range(HIST_SLOTS) if latency.counts[i]}


cdef dict _connection_dict(int executor, ConnectionCopy* copy):
    cdef ConnectionCounters* c = &copy.counters
    return {
        "executor": executor,
        "address": copy.label.decode("utf-8", "replace"),
        "state": connection_state_name(<int>c.state).decode(),
        "role": "standby" if c.standby else "active",
        "out": _OUT[c.out],
        "sent_bytes": c.sent_bytes,
        "read_bytes": c.read_bytes,
        "sent_frames": c.sent_frames,
        "acked_frames": c.acked_frames,
        "waiting_frames": c.waiting,
        "in_flight_frames": c.in_flight,
        "unanswered_heartbeats": c.unanswered,
        "load": "stopped" if c.load == LOAD_STOPPED else (None if c.load == LOAD_UNKNOWN else c.load),
        "answer_time": c.answer_us / 1e6 if c.answer_us else None,
        "connects": c.connects,
        "losses": c.losses,
    }


cdef set active_clusters(Engine* g):
    """Return the numbers of the clusters to which a connection is active.

    Locality: GIL.  Locks: takes each executor's registry lock in turn.
    """
    cdef ConnectionCopy* copies
    cdef int i, j, n = 0
    out = set()
    for i in range(g.n_executors):
        copies = executor_connections(g.executors[i], &n)
        if copies == NULL:
            raise MemoryError("no memory for statistics")
        for j in range(n):
            if copies[j].counters.state == CS_ACTIVE:
                out.add(copies[j].cluster)
        free(copies)
    return out


cdef list connection_list(Engine* g):
    """Return a dict for each connection.  Locality: GIL.  Locks: takes each executor's registry lock in turn."""
    cdef ConnectionCopy* copies
    cdef int i, j, n = 0
    out = []
    for i in range(g.n_executors):
        copies = executor_connections(g.executors[i], &n)
        if copies == NULL:
            raise MemoryError("no memory for statistics")
        try:
            for j in range(n):
                out.append(_connection_dict(i, &copies[j]))
        finally:
            free(copies)
    return out
