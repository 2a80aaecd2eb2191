"""One consistent copy of the accounting, and one of each connection.

Locality: GIL.  Locks: none, unless a docstring names them.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from dataproxy._core.base.hist cimport HIST_SLOTS, Hist, hist_bound, hist_percentile, hist_up_to
from dataproxy._core.producer.results.completions cimport (
    OUTCOMES, Trouble, completions_last_trouble, completions_untold,
)
from dataproxy._core.producer.engine cimport Engine
from dataproxy._core.producer.results.undelivered cimport undelivered_counts
from dataproxy._core.net.executor cimport Executor
from dataproxy._core.conn.connection cimport LOAD_STOPPED, LOAD_UNKNOWN, Link, LinkCounters, LinkPool, link_state_name
from dataproxy._core.plat.atomic cimport atomic_load, relaxed_load, relaxed_store
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock


# Upper bounds in seconds: those of the OpenTelemetry conventions for the duration of a messaging operation.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)


cdef dict _latency_dict(const Hist* h):
    """Return a latency histogram as the fields of ``Latency``."""
    out = {"count": h.n, "sum": h.total / 1e6, "max": h.largest / 1e6 if h.n else None}
    for name, percent in (("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p999", 99.9)):
        out[name] = hist_percentile(h, percent) / 1e6 if h.n else None
    out["buckets"] = tuple([(bound, hist_up_to(h, <int64_t>(bound * 1e6))) for bound in _BOUNDS])
    return out


cdef dict _pools_dict(Engine* g):
    """Return the sums of what each executor counts by itself.  Locality: GIL."""
    cdef int64_t held_back = 0, retries = 0, unmatched = 0, duplicates = 0
    cdef int64_t copies = 0, known = 0, differed = 0, filtered = 0
    cdef LinkPool* pool
    cdef int i
    for i in range(g.n_executors):
        pool = &g.executors[i].pool
        held_back += relaxed_load(&pool.held_back)
        retries += relaxed_load(&pool.retries)
        unmatched += relaxed_load(&pool.unmatched)
        duplicates += relaxed_load(&pool.duplicates)
        copies += relaxed_load(&pool.copies)
        known += relaxed_load(&pool.known)
        differed += relaxed_load(&pool.differed)
        filtered += relaxed_load(&pool.filtered)
    return {
        "held_back": held_back, "retries": retries, "unmatched": unmatched, "duplicates_possible": duplicates,
        "copies_possible": copies, "duplicates_filtered": known, "conflicts": differed, "filtered_frames": filtered,
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
    cdef int64_t accepted, accepted_bytes, open_messages, charged, in_flight, frames, delivered, failed, expired
    cdef int64_t dropped, maybe_delivered, memory, results
    cdef int64_t untold[OUTCOMES]
    cdef int64_t delivered_bytes, resent, settled, released, kept = 0, not_kept = 0
    cdef int64_t codes[64]
    cdef int64_t counts[64]
    cdef Hist latency
    cdef int i, n
    pthread_mutex_lock(&g.batcher.lock)
    pthread_mutex_lock(&g.accounting.lock)
    accepted = g.batcher.accepted
    accepted_bytes = g.batcher.accepted_bytes
    open_messages = g.batcher.open_messages
    charged = g.batcher.charged
    in_flight = g.accounting.in_flight
    frames = g.accounting.in_flight_packs
    delivered = g.accounting.delivered
    failed = g.accounting.failed
    expired = g.accounting.expired
    dropped = g.accounting.dropped
    maybe_delivered = g.accounting.maybe_delivered
    delivered_bytes = g.accounting.delivered_bytes
    resent = g.accounting.resent
    settled = g.accounting.settled_packs
    released = atomic_load(&g.accounting.released)
    memory = atomic_load(&g.spares.in_use)
    n = g.accounting.n_codes
    for i in range(n):
        codes[i] = g.accounting.codes[i]
        counts[i] = g.accounting.code_counts[i]
    memcpy(&latency, &g.accounting.latency, sizeof(Hist))
    pthread_mutex_unlock(&g.accounting.lock)
    pthread_mutex_unlock(&g.batcher.lock)
    results = atomic_load(&g.completions.bytes)
    completions_untold(&g.completions, untold)
    undelivered_counts(&g.undelivered, &kept, &not_kept)
    return {
        "accepted": accepted, "accepted_bytes": accepted_bytes, "open": open_messages, "in_flight": in_flight,
        "in_flight_frames": frames, "delivered": delivered, "failed": failed, "expired": expired,
        "dropped": dropped, "maybe_delivered": maybe_delivered,
        "delivered_bytes": delivered_bytes, "settled_frames": settled, "resent": resent,
        "buffered_bytes": charged - released,
        "memory_bytes": memory, "results_bytes": results,
        "untold": {"delivered": untold[1], "failed": untold[2], "expired": untold[3], "dropped": untold[4]},
        "undelivered_bytes": kept, "not_kept": not_kept,
        "codes": {codes[i]: counts[i] for i in range(n)},
        "trouble": trouble_tuple(g),
        "latency": _latency_dict(&latency),
        **_pools_dict(g),
    }


cdef int64_t take_reach(Engine* g) noexcept nogil:
    """Return how many seconds servers remember message ids: the shortest time told since the last call, -1: none.

    Locality: one thread, with nothing in flight.
    Locks: none.
    """
    cdef int64_t shortest = -1, one
    cdef int i
    for i in range(g.n_executors):
        one = relaxed_load(&g.executors[i].pool.reach)
        relaxed_store(&g.executors[i].pool.reach, -1)
        if one >= 0 and (shortest < 0 or one < shortest):
            shortest = one
    return shortest


cdef dict latency_steps(Engine* g):
    """Return the histogram of latencies: upper bound in us -> messages.  Locality: GIL.  Locks: takes accounting.lock.
    """
    cdef Hist latency
    cdef int i
    pthread_mutex_lock(&g.accounting.lock)
    memcpy(&latency, &g.accounting.latency, sizeof(Hist))
    pthread_mutex_unlock(&g.accounting.lock)
    return {hist_bound(i): latency.counts[i] for i in range(HIST_SLOTS) if latency.counts[i]}


ctypedef struct LinkCopy:
    char label[64]
    LinkCounters counters


cdef void _copy(Link* link, LinkCopy* out) noexcept nogil:
    cdef LinkCounters* c = &link.counters
    memcpy(out.label, link.peer.label, sizeof(out.label))
    out.counters.state = relaxed_load(&c.state)
    out.counters.sent_bytes = relaxed_load(&c.sent_bytes)
    out.counters.read_bytes = relaxed_load(&c.read_bytes)
    out.counters.sent_frames = relaxed_load(&c.sent_frames)
    out.counters.acked_frames = relaxed_load(&c.acked_frames)
    out.counters.waiting = relaxed_load(&c.waiting)
    out.counters.in_flight = relaxed_load(&c.in_flight)
    out.counters.unanswered = relaxed_load(&c.unanswered)
    out.counters.load = relaxed_load(&c.load)
    out.counters.connects = relaxed_load(&c.connects)
    out.counters.losses = relaxed_load(&c.losses)


cdef dict _link_dict(int executor, LinkCopy* copy):
    cdef LinkCounters* c = &copy.counters
    return {
        "executor": executor,
        "address": copy.label.decode("utf-8", "replace"),
        "state": link_state_name(<int>c.state).decode(),
        "sent_bytes": c.sent_bytes,
        "read_bytes": c.read_bytes,
        "sent_frames": c.sent_frames,
        "acked_frames": c.acked_frames,
        "waiting_frames": c.waiting,
        "in_flight_frames": c.in_flight,
        "unanswered_heartbeats": c.unanswered,
        "load": "stopped" if c.load == LOAD_STOPPED else (None if c.load == LOAD_UNKNOWN else c.load),
        "connects": c.connects,
        "losses": c.losses,
    }


cdef LinkCopy* _copies(Executor* e, int* n) noexcept nogil:
    """Return copies of all links of an executor (to be freed), or NULL.  Locks: takes registry."""
    cdef LinkCopy* out
    cdef int i
    pthread_mutex_lock(&e.registry)
    n[0] = e.pool.n_links
    out = <LinkCopy*>malloc(<size_t>(n[0] + 1) * sizeof(LinkCopy))
    if out != NULL:
        for i in range(n[0]):
            _copy(e.pool.links[i], &out[i])
    pthread_mutex_unlock(&e.registry)
    return out


cdef list link_list(Engine* g):
    """Return a dict for each link.  Locality: GIL.  Locks: takes each executor's registry lock in turn."""
    cdef LinkCopy* copies
    cdef int i, j, n = 0
    out = []
    for i in range(g.n_executors):
        copies = _copies(g.executors[i], &n)
        if copies == NULL:
            raise MemoryError("no memory for statistics")
        try:
            for j in range(n):
                out.append(_link_dict(i, &copies[j]))
        finally:
            free(copies)
    return out
