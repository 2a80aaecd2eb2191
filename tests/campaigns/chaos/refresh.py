"""The Manager's list changes every second under load: what fails, and how long results take beside quiet times.

Quiet and changing phases alternate.  Of each phase the p99 of result times is taken, and of each kind of phases the
median of these: what else a machine does for some seconds decides nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median

from dataproxy import DeliveryResult, Producer
from dataproxy.config import load_producer_config
from tests.campaigns.chaos.manager import Manager
from tests.campaigns.chaos.processes import HubProcess

__all__ = ["MOST_TIMES_QUIET", "refresh"]

#: The p99 of result times while lists change, in times of the p99 while they stay.
MOST_TIMES_QUIET = 1.5

_HUBS = 4
_PHASE_SECONDS = 5.0
_CHANGE_SECONDS = 1.0
_EVERY_SECONDS = 0.002
_BESIDE = [b"x" * 200] * 20  # messages sent with each one whose result is timed


class _Changes(logging.Handler):
    """Count the lists that the producer took into use."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.seen = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Note one line of the log."""
        self.seen += record.getMessage().startswith("the proxy list changed")


class _Load:
    """Send at a steady rate; ``times`` has a list for each phase of a kind: seconds until the result."""

    def __init__(self, producer: Producer) -> None:
        self._stream = producer.stream("s")
        self._stopping = threading.Event()
        self.times: dict[str, list[list[float]]] = {"quiet": [], "changing": []}
        self._now: list[float] = []
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def begin(self, kind: str) -> None:
        """Begin a phase: what is sent from now on belongs to it."""
        self._now = []
        self.times[kind].append(self._now)

    def _send(self) -> None:
        due = time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            self._stream.send(b"x" * 200, on_delivery=self._timer(due, self._now))
            self._stream.send_batch(_BESIDE)
            due += _EVERY_SECONDS

    @staticmethod
    def _timer(due: float, times: list[float]) -> Callable[[DeliveryResult], None]:
        def note(_result: DeliveryResult) -> None:
            times.append(time.monotonic() - due)

        return note

    def stop(self) -> None:
        """Send no more."""
        self._stopping.set()
        self._thread.join()


def _percentile(phases: list[list[float]], share: float) -> float:
    """Return the median of a percentile of all phases, in milliseconds."""
    each = [1000 * sorted(times)[int(len(times) * share)] for times in phases if times]
    return median(each) if each else 0.0


def _play(load: _Load, manager: Manager, ports: list[int], seconds: float) -> int:
    """Let phases follow each other; return how many lists were given."""
    lists = 0
    end = time.monotonic() + seconds
    for phase in count():
        if time.monotonic() >= end:
            return lists
        load.begin("changing" if phase % 2 else "quiet")
        until = time.monotonic() + _PHASE_SECONDS
        while time.monotonic() < until:
            if phase % 2:
                lists += 1
                manager.ports = [port for i, port in enumerate(ports) if i != lists % _HUBS]
            time.sleep(_CHANGE_SECONDS)
    return lists


def refresh(folder: Path, seconds: float) -> tuple[dict[str, object], list[str]]:
    """Send for so long; return the facts and the messages that were lost, in words."""
    hubs = [HubProcess(folder, f"hub{i}", durable=False) for i in range(_HUBS)]
    ports = [hub.port for hub in hubs]
    manager = Manager(ports[1:])
    changes, log = _Changes(), logging.getLogger("dataproxy.route")
    before = log.level
    log.addHandler(changes)
    log.setLevel(logging.INFO)
    try:
        for hub in hubs:
            hub.start()
        config = load_producer_config(manager.url, group_id="g", discovery_interval=1)
        with Producer(config=config) as producer:
            load = _Load(producer)
            try:
                lists = _play(load, manager, ports, seconds)
            finally:
                load.stop()
            report = producer.flush()
            stats = producer.stats()
    finally:
        log.removeHandler(changes)
        log.setLevel(before)
        manager.close()
        for hub in hubs:
            hub.close()
    found = []
    if report.failed or report.expired or report.dropped:
        found.append(f"S3 {report} has messages that failed although their proxies worked")
    if changes.seen < lists // 2:
        found.append(f"of {lists} lists only {changes.seen} were taken into use")
    quiet, changing = load.times["quiet"], load.times["changing"]
    facts: dict[str, object] = {
        "seconds": seconds, "messages": report.accepted, "failed": report.failed + report.expired + report.dropped,
        "lists": lists, "used": changes.seen, "questions": manager.asked, "resent_frames": stats.retries,
        "timed": sum(len(times) for times in (*quiet, *changing)), "phases": len(quiet) + len(changing),
        "quiet_p50_ms": round(_percentile(quiet, 0.5), 2), "quiet_p99_ms": round(_percentile(quiet, 0.99), 2),
        "changing_p50_ms": round(_percentile(changing, 0.5), 2),
        "changing_p99_ms": round(_percentile(changing, 0.99), 2),
        "times_quiet": round(_percentile(changing, 0.99) / max(_percentile(quiet, 0.99), 1e-6), 2),
    }  # fmt: skip
    return facts, found
