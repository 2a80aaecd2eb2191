"""The one thread that calls user code and writes the log, in batches."""

from __future__ import annotations

import contextlib
import logging
import queue
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dataproxy._core.producer.results.dispatch import let_go, next_batch
from dataproxy._core.producer.results.outcomes import results
from dataproxy.lasterror import why
from dataproxy.logs import Log, Repeats, left_out, logger
from dataproxy.numbers import (
    BROKER_CODES,
    CE_CONNECT_FAILED,
    CE_CONNECTED,
    CE_DEAF,
    CE_DRAINED,
    CE_FRAMING,
    CE_HANDSHAKE,
    CE_LOST,
    CE_MISDIRECTED,
    CE_OUT,
    CE_PROTOCOL,
    CE_REFUSED,
    CE_RETURNED,
    CE_SILENT,
    CE_SWAPPED,
    CE_UNEXPECTED,
    CE_UNKNOWN_FRAME,
    CE_UNKNOWN_GROUP,
    OR_FAILURES,
    OR_REFUSALS,
    OR_SILENT,
    OR_SLOW,
    SR_LOAD,
    SR_LOST,
    SR_OUT,
)
from dataproxy.outcomes import DeliveryResult, ResultFields, Watch
from dataproxy.process.threads import start_quiet
from dataproxy.producer.results.callbacks import CallbackPlace

if TYPE_CHECKING:
    from dataproxy.producer.producer import Producer

__all__ = ["Dispatcher", "EventLog"]

_LOG = logger("conn")
_ACKS = logger("ack")
_ROUTE = logger("route")
_CALLBACKS = logger("callback")

# Of each event: logger, level, text with address and detail.
_EVENTS: dict[int, tuple[Log, int, str]] = {
    CE_CONNECTED: (_LOG, logging.INFO, "connected to %s"),
    CE_CONNECT_FAILED: (_LOG, logging.WARNING, "could not connect to %s: %s"),
    CE_HANDSHAKE: (_LOG, logging.WARNING, "the connection to %s is not ready: %s"),
    CE_LOST: (_LOG, logging.WARNING, "lost the connection to %s: %s"),
    CE_SILENT: (_LOG, logging.WARNING, "%s did not answer within ack_timeout; its connection is replaced"),
    CE_PROTOCOL: (_LOG, logging.ERROR, "%s sent bytes that are not a reply; its connection is replaced"),
    CE_UNKNOWN_FRAME: (_LOG, logging.WARNING, "%s sent a frame of unknown type %s; skipped"),
    CE_DRAINED: (_ACKS, logging.WARNING, "%s accepts no data (code %s); it is not used for some seconds"),
    CE_REFUSED: (_ACKS, logging.WARNING, "%s refused a frame with code %s"),
    CE_DEAF: (_LOG, logging.WARNING, "%s answered no heartbeat; its connection is replaced"),
    CE_FRAMING: (
        _LOG,
        logging.ERROR,
        "%s could not find frames in the data it received (code %s); its connection is replaced",
    ),
    CE_MISDIRECTED: (
        _ACKS,
        logging.WARNING,
        "%s answered a frame that was not sent over this connection; the answer is ignored",
    ),
    CE_UNEXPECTED: (
        _ACKS,
        logging.INFO,
        "%s answered an unknown frame (a late or repeated answer, or a frame never sent); the answer is ignored",
    ),
    CE_UNKNOWN_GROUP: (
        _ROUTE,
        logging.WARNING,
        (
            "group %r is unknown to %s (code %s): its messages are sent again for unknown_group_timeout, and take"
            " at most a quarter of the buffer; if the Manager has just approved it, this ends by itself within a"
            " minute, otherwise correct the name or have the group approved"
        ),
    ),
    CE_OUT: (_ROUTE, logging.WARNING, "%s is out of use for a while, since %s"),
    CE_RETURNED: (_ROUTE, logging.INFO, "%s is in use again; it was out since %s"),
    CE_SWAPPED: (_ROUTE, logging.INFO, "the standby %s came into use, since another proxy %s"),
    13: (_LOG, logging.ERROR, "an illegal change of state of the connection to %s was not made; please report this"),
}
_OUTS = {
    OR_FAILURES: "it failed several times in a row",
    OR_REFUSALS: "it refused most frames",
    OR_SLOW: "it answers much later than its peers",
    OR_SILENT: "frames wait there and nothing comes",
}
_SWAPS = {SR_LOST: "was lost", SR_OUT: "is out of use", SR_LOAD: "is busier"}
_WORDS = {CE_OUT: _OUTS, CE_RETURNED: _OUTS, CE_SWAPPED: _SWAPS}
_WITH_DETAIL = {CE_UNKNOWN_FRAME, CE_DRAINED, CE_REFUSED, CE_FRAMING}
_OF_CONNECTIONS = {
    CE_CONNECTED,
    CE_CONNECT_FAILED,
    CE_LOST,
    CE_SILENT,
    CE_PROTOCOL,
    CE_DRAINED,
    CE_DEAF,
    CE_FRAMING,
    CE_HANDSHAKE,
}
_EACH = {CE_CONNECTED, CE_OUT, CE_RETURNED, CE_SWAPPED}  # the kinds of events that are logged every time
_REPEAT_SECONDS = 10.0
_REMEMBERED = 1000  # groups
_TIDY_SECONDS = 5.0  # between two searches for unused handles, which calls by name have made
_IDLE_SECONDS = 3600.0
_AT_ONCE = 256  # results that are made before they are handed over: so few that they start no garbage collection


class EventLog:
    """Turn events of the core into log records; equal events at most once in ten seconds, except rare ones."""

    def __init__(self) -> None:
        self._repeats = Repeats()
        self._unknown: set[str] = set()

    def write(self, kind: int, address: str, detail: int, said: str = "") -> None:
        """Log one event, with the proxy's message ``said``.  Dispatcher's thread."""
        logger, level, text = _EVENTS[kind]
        if kind == CE_UNKNOWN_GROUP:
            self._tell_unknown(said, address, detail)
            return
        if not logger.isEnabledFor(level):
            return
        again = 0 if kind in _EACH else self._repeats.count((kind, address, detail))
        if again is None:
            return
        values = [address]
        if kind in (CE_CONNECT_FAILED, CE_LOST, CE_HANDSHAKE):
            values.append(why(kind, detail, said))
            said = ""
        elif kind == CE_PROTOCOL:
            text = "%s was taken for a DataProxy, and " + why(kind, detail, said) if detail else text
        elif kind in _WORDS:
            values.append(_WORDS[kind].get(detail, str(detail)))
        elif kind in _WITH_DETAIL:
            values.append(str(detail))
        elif detail:
            text += " (code %s)"
            values.append(str(detail))
        if said:
            text += ": %r"
            values.append(said)
        text += left_out(again)
        logger.log(level, text, *values)

    def _tell_unknown(self, group: str, address: str, code: int) -> None:
        """Log that a proxy does not know a group: once for each group, as long as this log lives."""
        logger, level, text = _EVENTS[CE_UNKNOWN_GROUP]
        if group in self._unknown or len(self._unknown) >= _REMEMBERED:
            level = logging.DEBUG
        self._unknown.add(group)
        logger.log(level, text, group, address, code)


class UntoldLog:
    """Log, at most once in ten seconds, how many reports were dropped because callbacks were too slow."""

    def __init__(self) -> None:
        self._said = 0
        self._last = -_REPEAT_SECONDS

    def write(self, untold: Sequence[int], *, final: bool = False) -> None:
        """Log the messages, counted by outcome, that were dropped since the last record.  Dispatcher's thread."""
        count = sum(untold)
        now = time.monotonic()
        if count == self._said or (now - self._last < _REPEAT_SECONDS and not final):
            return
        _CALLBACKS.warning(
            "callbacks are slower than results: on_delivery was not called for %d messages (since the producer was"
            " opened %d delivered, %d failed, %d expired, %d dropped, %d sent); all are counted, see stats().untold",
            count - self._said, *untold,
        )  # fmt: skip
        self._said = count
        self._last = now


class Dispatcher:
    """Drain the completion queue of one producer: write the log, and hand callbacks to their CallbackPlace.

    While it waits it has no reference to the producer, so that the producer can be garbage.  Its finalizer then hands
    the producer to ``leave``, and the dispatcher closes it.
    """

    def __init__(
        self, core: Producer, on_delivery: Callable[[DeliveryResult], object] | None, place: CallbackPlace
    ) -> None:
        self._core = weakref.ref(core)
        self._news = core._completions_wait()
        self._kept: Producer | None = None
        self._left: queue.SimpleQueue[Producer] = queue.SimpleQueue()  # a SimpleQueue: finalizers may call its ``put``
        self._readiness = core._readiness
        self._look_in = _IDLE_SECONDS
        self._tidied = 0.0
        self._named = False  # whether calls by name keep handles, which refer to the producer
        self._on_delivery = on_delivery
        self._place = place
        self._events = EventLog()
        self._calls: list[tuple[Callable[[Any], object], Sequence[Any]]] = []
        self._waiting = 0  # arguments in ``_calls``
        self._bytes = 0  # buffer bytes that the results in ``_calls`` hold
        self._at_once = _AT_ONCE
        self._untold = UntoldLog()
        self._last_untold: Sequence[int] = (0, 0, 0, 0, 0)

    def run(self) -> None:
        """Work until the queue ends; the body of the dispatcher's thread."""
        going = True
        while going:
            try:
                going = self._round()
            except Exception:  # noqa: BLE001 - whatever it is, the results that come are others'
                _CALLBACKS.exception("results could not be handed over: some callbacks were perhaps not called")
        self._kept = None

    def keep(self, core: Producer) -> None:
        """Keep the producer until the queue has ended: its engine may be freed from then on.  Any thread."""
        self._kept = core

    def leave(self, core: Producer) -> None:
        """Take a producer that is garbage and was not closed.  Any thread, in the producer's finalizer."""
        self._kept = core
        self._left.put(core)
        core._poke()

    def _producer(self) -> Producer:
        """Return the producer.  If it is garbage, wait until its finalizer has handed it over."""
        core = self._kept or self._core()
        while core is None:
            with contextlib.suppress(queue.Empty):
                core = self._left.get(timeout=_IDLE_SECONDS)
                self._left.put(core)
        return core

    def _tidy(self, core: Producer) -> None:
        """Start to close a producer that was handed to ``leave``; drop unused handles of calls by name."""
        now = time.monotonic()
        due = self._named and now - self._tidied >= _TIDY_SECONDS
        if due or not self._named:
            self._tidied = now
        self._named = core._keeps_names(due)
        if self._left.empty():
            return
        self._left.get_nowait()
        try:
            start_quiet("dataproxy-close", core._close_left)
        except RuntimeError:  # no room for another thread, or the interpreter is ending
            core._close_left()

    def _round(self) -> bool:
        """Wait for completions and handle them; False when no more will come.

        It is a separate function, so that no local variable keeps objects of the application during the next wait.
        """
        self._news.wait(min(_TIDY_SECONDS if self._named else _IDLE_SECONDS, self._look_in))
        core = self._producer()
        batch = next_batch(core, 0.0)
        if batch is None:
            self._untold.write(self._last_untold, final=True)
            return False
        self._tidy(core)  # a producer that is handed over after this starts the next round
        reports, watches, events, lost, self._last_untold = batch
        self._untold.write(self._last_untold)
        try:
            self._take_events(core, events)
        except Exception:  # noqa: BLE001 - whatever it is, the results are to be told
            _LOG.exception("events of connections were not worked off")
        look_in = self._readiness.look(core)
        self._look_in = _IDLE_SECONDS if look_in is None else look_in
        if lost:
            _LOG.warning("%d events were not logged: there were too many", lost)
        if self._on_delivery is not None:
            for group_id, stream_id, first, count, fields, own_ids, size in reports:
                self._run(
                    Watch(self._on_delivery, None, group_id, stream_id, first, count, own_ids), fields, size, core
                )
        for watch, fields, size in watches:
            self._run(watch, fields, size, core)
        self._hand_over(core)
        return True

    def _take_events(self, core: Producer, events: Sequence[tuple[int, str, int, str]]) -> None:
        """Log events of connections, and pass them on to who looks for proxies."""
        for kind, address, detail, said in events:
            self._events.write(kind, address, detail, said)
            if kind in (CE_REFUSED, CE_DRAINED) and detail > BROKER_CODES:
                core._source.lost()
            if kind in _OF_CONNECTIONS:
                self._readiness.hear(kind)
                if kind != CE_CONNECTED:
                    core._source.lost()

    def _run(self, watch: Watch, fields: ResultFields, size: int, core: Producer) -> None:
        if watch.delivery is not None:
            self._bytes += size
            self._add(watch.function, [watch.delivery], core)
            return
        for number in range(0, watch.messages, _AT_ONCE):
            made = results(watch, fields, number, min(watch.messages - number, _AT_ONCE))
            if number + _AT_ONCE >= watch.messages:
                self._bytes += size  # with the last results of this watch
            self._add(watch.function, made, core)

    def _add(self, function: Callable[[Any], object], arguments: list[Any], core: Producer) -> None:
        self._calls.append((function, arguments))
        self._waiting += len(arguments)
        if self._waiting >= self._at_once:
            self._hand_over(core)

    def _hand_over(self, core: Producer) -> None:
        calls, self._calls, self._waiting = self._calls, [], 0
        if calls:
            self._place.run(calls)
        if self._bytes:
            size, self._bytes = self._bytes, 0
            self._at_once = 1 if let_go(core, size) else _AT_ONCE  # senders wait for these bytes
