"""The one thread that calls user code and writes the log, in batches."""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable
from typing import Any

from dataproxy._core.client.dispatch import next_batch
from dataproxy._core.client.handle import CoreHandle
from dataproxy.logs import logger
from dataproxy.outcomes import DeliveryResult, Facts, delivered, delivery_error

__all__ = ["Dispatcher", "EventLog"]

_LOG = logger("conn")
_ACKS = logger("ack")
_CALLBACKS = logger("callback")

# Numbers of io/link.pxd's LinkEvent: logger, level, text with address and detail.
_EVENTS: dict[int, tuple[logging.Logger, int, str]] = {
    1: (_LOG, logging.INFO, "connected to %s"),
    2: (_LOG, logging.WARNING, "could not connect to %s: %s"),
    3: (_LOG, logging.WARNING, "lost the connection to %s: %s"),
    4: (_LOG, logging.WARNING, "%s does not answer; its connection is replaced"),
    5: (_LOG, logging.ERROR, "%s sent bytes that are no reply; its connection is replaced"),
    6: (_LOG, logging.WARNING, "%s sent a frame of unknown type %s; skipped"),
    7: (_ACKS, logging.WARNING, "%s takes no data (code %s); it is left alone for a while"),
    8: (_ACKS, logging.WARNING, "%s refused a frame with code %s"),
}
_WITH_DETAIL = {2, 3, 6, 7, 8}
_REPEAT_SECONDS = 10.0


class EventLog:
    """Turn events of the core into log records; equal warnings come at most once in ten seconds."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, str, int], float] = {}
        self._suppressed: dict[tuple[int, str, int], int] = {}

    def write(self, kind: int, address: str, detail: int) -> None:
        """Log one event.  Dispatcher's thread."""
        logger, level, text = _EVENTS[kind]
        if not logger.isEnabledFor(level):
            return
        key = (kind, address, detail)
        now = time.monotonic()
        if level >= logging.WARNING and now - self._last.get(key, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            self._suppressed[key] = self._suppressed.get(key, 0) + 1
            return
        self._last[key] = now
        again = self._suppressed.pop(key, 0)
        if again:
            text += f" ({again} more like this were not logged)"
        logger.log(level, text, *((address, _detail(kind, detail)) if kind in _WITH_DETAIL else (address,)))


def _detail(kind: int, detail: int) -> str:
    if kind in (2, 3):
        if detail == 0:
            return "connect_timeout passed" if kind == 2 else "closed by the proxy"
        return f"{errno.errorcode.get(detail, detail)}, {os.strerror(detail)}"
    return str(detail)


class Dispatcher:
    """Drain the completion queue of one producer; user callbacks run here and nowhere else."""

    def __init__(self, core: CoreHandle, on_delivery: Callable[[DeliveryResult], object] | None) -> None:
        self._core = core
        self._on_delivery = on_delivery
        self._events = EventLog()
        self.callback_errors = 0

    def run(self) -> None:
        """Work until the queue ends; the body of the dispatcher's thread."""
        while True:
            batch = next_batch(self._core, 3600.0)
            if batch is None:
                return
            reports, callbacks, events, lost = batch
            for kind, address, detail in events:
                self._events.write(kind, address, detail)
            if lost:
                _LOG.warning("%d events came too fast to be logged", lost)
            for report in reports:
                self._deliver(*report)
            for function, delivery in callbacks:
                self._call(function, delivery)

    def _deliver(
        self, group_id: str, stream_id: str, count: int, facts: Facts, own_ids: list[str | None] | None
    ) -> None:
        function = self._on_delivery
        if function is None:
            return
        for index in range(count):
            own = own_ids[index] if own_ids else None
            if facts[0] == 1:
                result = DeliveryResult(group_id, stream_id, delivered(facts, index, own), None)
            else:
                result = DeliveryResult(group_id, stream_id, None, delivery_error(facts, index, own))
            self._call(function, result)

    def _call(self, function: Callable[[Any], object], argument: Any) -> None:
        try:
            function(argument)
        except Exception:  # noqa: BLE001 - the application's own code; its error is its own
            self.callback_errors += 1
            _CALLBACKS.exception("the callback %r raised", function)
