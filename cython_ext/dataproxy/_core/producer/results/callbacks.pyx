"""Callbacks that wait for the result of a pack.

Two kinds: ``add_done_callback`` gets the Delivery, and may run at once in the thread that adds it; ``on_delivery``
of a call gets one DeliveryResult for each message, always on the thread of the producer's callbacks.

Locality: GIL.  Locks: none, unless a docstring names accounting.lock.
"""

import logging

from libc.stdint cimport int64_t, uint32_t

from dataproxy._core.pack.pack cimport PackResult
from dataproxy._core.producer.results.accounting cimport WATCH_LATE, WATCH_QUEUED, accounting_watch
from dataproxy._core.producer.results.segments cimport Segments
from dataproxy._core.producer.results.completions cimport WATCH_COST, completions_add, completions_poke
from dataproxy._core.producer.results.fields cimport fields_of, with_size
from dataproxy._core.producer.handle cimport CoreHandle

from dataproxy.outcomes import Watch, delivery_result
from dataproxy.problems import callback_problem

_CALLBACKS = logging.getLogger("dataproxy.callback")


cdef int check_callback(object function) except -1:
    """Raise ConfigError for a callback that cannot be called.  Locality: GIL."""
    if not callable(function):
        raise callback_problem(function)
    return 0


cdef int _watch(CoreHandle core, PackResult* v, object entry) except -1:
    """Register ``entry``; 1 if the result is final, so that the dispatcher will not call it.  Locks: accounting.lock.
    """
    cdef int found
    core.watchers.setdefault(<size_t>v, []).append(entry)
    found = accounting_watch(&core.engine.accounting, v)
    if found == WATCH_QUEUED:               # the pack was counted with its earlier callbacks
        completions_add(&core.engine.completions, WATCH_COST)
    return 1 if found == WATCH_LATE else 0


cdef int _call_here(CoreHandle core, object function, object argument) except -1:
    try:
        function(argument)
    except Exception:
        if core._callback_failed is not None:
            core._callback_failed(function)
        else:
            _CALLBACKS.exception("the callback %r raised", function)
    return 0


cdef int watch_done(CoreHandle core, PackResult* v, object function, object delivery) except -1:
    """Call ``function(delivery)`` when the result is known; at once if it is known already.  Locks: accounting.lock."""
    if _watch(core, v, Watch(function, delivery, "", "", 0, 1, None)):
        for entry in core.watchers.pop(<size_t>v, ()):
            _call_here(core, entry.function, entry.delivery)
    return 0


cdef int _watch_results(CoreHandle core, PackResult* v, object entry) except -1:
    cdef uint32_t i
    if not _watch(core, v, entry):
        return 0
    core.watchers.pop(<size_t>v, None)
    found = fields_of(v, entry)
    if not core.dispatched:
        core.late.extend(with_size(found, WATCH_COST))
        completions_add(&core.engine.completions, WATCH_COST)
        completions_poke(&core.engine.completions)
        return 0
    for part, fields in found:
        for i in range(part.messages):      # closed in the meantime: nobody else is left
            _call_here(core, part.function, delivery_result(part, i, fields))
    return 0


cdef int watch_message(
    CoreHandle core, str group_id, str stream_id, PackResult* v, uint32_t index, object own_id, object function,
) except -1:
    """Register ``function(DeliveryResult)`` for one message.  Locks: accounting.lock."""
    own_ids = None if own_id is None else (own_id,)
    return _watch_results(core, v, Watch(function, None, group_id, stream_id, index, 1, own_ids))


cdef int watch_segments(
    CoreHandle core, str group_id, str stream_id, Segments* segments, object own_ids, object function,
) except -1:
    """Register ``function(DeliveryResult)`` for each message of a batch.  Locks: accounting.lock."""
    cdef int64_t i, at = 0
    cdef uint32_t n
    for i in range(segments.n):
        n = segments.items[i].count
        ids = None if own_ids is None else own_ids[at:at + n]
        _watch_results(core, segments.items[i].pack_result, Watch(
            function, None, group_id, stream_id, segments.items[i].first, n, ids))
        at += n
    return 0
