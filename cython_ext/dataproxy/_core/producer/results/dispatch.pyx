"""The dispatcher's side of the completion queue: wait without the GIL, then make one batch of Python values.

Locality: the dispatcher, GIL; released while it waits.  Locks: completions.lock; accounting.lock for a moment at the
end.
"""

from libc.stdint cimport int64_t

from dataproxy._core.pack.pack cimport OUT_DROPPED, Pack, PackList, list_pop, pool_give
from dataproxy._core.producer.results.accounting cimport accounting_turn, accounting_unwatch
from dataproxy._core.producer.results.completions cimport (
    OUTCOMES, WATCH_COST, Event, completions_add, completions_crowd, completions_take, completions_untold,
)
from dataproxy._core.producer.results.fields cimport fields_of, reports_of, with_size
from dataproxy._core.producer.handle cimport CoreHandle
from dataproxy._core.producer.ingest.owners cimport owners_give_back
from dataproxy._core.producer.results.packitems cimport pack_own_ids
from dataproxy._core.producer.results.refusals cimport refusals_detach
from dataproxy._core.producer.accumulate.streamlife cimport streams_leave, streams_tidy
from dataproxy._core.producer.accumulate.streams cimport Stream as CStream
from dataproxy._core.plat.clock cimport now_us

__all__ = ["let_go", "next_batch"]


cdef list _reports(Pack* p):
    cdef CStream* s = <CStream*>p.stream
    return with_size(reports_of(
        p, (<const char*>s.group.p)[:s.group.n].decode(), (<const char*>s.stream.p)[:s.stream.n].decode(),
        pack_own_ids(p)), p.waits)


def next_batch(CoreHandle core, double seconds):
    """Wait up to ``seconds`` for completions and return them, or None when there will be no more.

    Returns (reports, callbacks, events, lost events, untold): a report is (group id, stream id, place of
    the first message, messages, fields, the caller's ids or None, bytes), a callback (Watch, fields, bytes), an event
    (kind, label, detail, text).  Pass the bytes to ``let_go`` after the calls were made.  ``untold`` counts the
    messages whose reports were not made so far, by outcome from ``delivered`` on.
    Thread: the dispatcher alone.
    """
    cdef PackList packs
    cdef Event* events = NULL
    cdef int i, n = 0
    cdef int64_t untold[OUTCOMES]
    cdef int64_t rest, lost = 0, deadline = now_us() + <int64_t>(seconds * 1e6)
    cdef bint going
    cdef Pack* p
    g = core.engine
    with nogil:
        going = completions_take(&g.completions, &packs, &events, &n, &lost, deadline)
    owners_give_back(&g.spares)     # behind the take, which forgets that it was asked to: who returns more asks again
    if not going and not core.late:
        core.dispatched = True      # from here on callbacks run in the thread that registers them
        return None
    reports = []
    late, core.late = core.late, []
    callbacks = []
    p = list_pop(&packs)
    while p != NULL:
        if p.outcome == OUT_DROPPED:
            refusals_detach(&g.completions, p)
        if p.report:
            reports.extend(_reports(p))
        if p.pack_result != NULL and p.pack_result.watched:
            # From here on add_done_callback calls at once: it looks under the same lock, and both hold the GIL.
            rest = WATCH_COST * accounting_unwatch(&g.accounting, p.pack_result)
            for entry in core.watchers.pop(<size_t>p.pack_result, ()):
                callbacks.extend(with_size(fields_of(p.pack_result, entry), WATCH_COST))
                rest -= WATCH_COST
            if rest:
                completions_add(&g.completions, -rest)
        if not p.report:
            completions_add(&g.completions, -p.waits)
        streams_leave(&g.batcher, <CStream*>p.stream)
        pool_give(&g.spares, p)
        p = list_pop(&packs)
    streams_tidy(&g.batcher)
    callbacks.extend(late)
    said = []
    for i in range(n):
        said.append((
            events[i].kind, events[i].label.decode("utf-8", "replace"), events[i].detail,
            events[i].text.decode("utf-8", "replace")))
    completions_untold(&g.completions, untold)
    return reports, callbacks, said, lost, tuple([untold[i] for i in range(1, OUTCOMES)])


def let_go(CoreHandle core, int64_t size):
    """Count results of ``size`` bytes as reported; True while so many wait that senders may be blocked.  Any thread."""
    g = core.engine
    with nogil:
        size = completions_add(&g.completions, -size)
        accounting_turn(&g.accounting)
    return completions_crowd(&g.completions, size)
