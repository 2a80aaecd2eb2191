"""The dispatcher's side of the completion queue: wait without the GIL, then one batch of Python values."""

from libc.stdint cimport int64_t

from dataproxy._core.base.pack cimport OUT_DROPPED, Pack, PackList, list_pop, pool_give
from dataproxy._core.client.completions cimport Event, completions_take
from dataproxy._core.client.facts cimport facts_of, reports_of
from dataproxy._core.client.handle cimport CoreHandle
from dataproxy._core.client.packitems cimport pack_own_ids
from dataproxy._core.client.refusals cimport refusals_detach
from dataproxy._core.client.streamlife cimport streams_tidy
from dataproxy._core.client.streams cimport Stream as CStream, stream_release
from dataproxy._core.plat.clock cimport now_us
from dataproxy._core.plat.thread cimport pthread_mutex_lock, pthread_mutex_unlock

__all__ = ["next_batch"]


cdef list _reports(Pack* p):
    cdef CStream* s = <CStream*>p.stream
    return reports_of(
        p, (<const char*>s.group.p)[:s.group.n].decode(), (<const char*>s.stream.p)[:s.stream.n].decode(),
        pack_own_ids(p))


def next_batch(CoreHandle core, double seconds):
    """Wait up to ``seconds`` for completions and return them, or None when no more will ever come.

    Returns (reports, callbacks, events, lost events): a report is (group id, stream id, place of
    the first message, messages, facts, the caller's ids or None), a callback (Watch, facts), an event (kind, label,
    detail, text).
    Thread: the dispatcher alone.
    """
    cdef PackList packs
    cdef Event* events = NULL
    cdef int i, n = 0
    cdef int64_t lost = 0, deadline = now_us() + <int64_t>(seconds * 1e6)
    cdef bint going
    cdef Pack* p
    g = core.engine
    with nogil:
        going = completions_take(&g.completions, &packs, &events, &n, &lost, deadline)
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
        if p.verdict != NULL and p.verdict.watched:
            # From here on add_done_callback calls at once: it looks under the same lock, and both hold the GIL.
            pthread_mutex_lock(&g.books.lock)
            p.verdict.watched = False
            pthread_mutex_unlock(&g.books.lock)
            for entry in core.watchers.pop(<size_t>p.verdict, ()):
                callbacks.extend(facts_of(p.verdict, entry))
        stream_release(&g.batcher.streams, <CStream*>p.stream)
        pool_give(&g.spares, p)
        p = list_pop(&packs)
    streams_tidy(&g.batcher)
    callbacks.extend(late)
    said = []
    for i in range(n):
        said.append((
            events[i].kind, events[i].label.decode("utf-8", "replace"), events[i].detail,
            events[i].text.decode("utf-8", "replace")))
    return reports, callbacks, said, lost
