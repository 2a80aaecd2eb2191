"""One of three proxies is killed at half load, again and again: what fails, and how soon the rate is back."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from dataproxy import Producer
from dataproxy.config import load_producer_config
from tests.campaigns.chaos.processes import HubProcess
from tests.campaigns.histories.history import Dip, History
from tests.campaigns.histories.laws import RECOVERY_SECONDS, judge

__all__ = ["failover"]

_BODY = b"x" * 200
_SAMPLE = 0.02
_WINDOW = 0.2
_BEFORE = 1.5
_SHARE = 0.9


class Load:
    """Send batches at a rate and sample how much was delivered."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.rate = 0.0  # messages a second; 0: as fast as it goes
        self.samples: list[tuple[float, int]] = []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._send), threading.Thread(target=self._sample)]
        for thread in self.threads:
            thread.start()

    def _send(self) -> None:
        due = time.monotonic()
        batch = [_BODY] * 100
        while not self.stopping.is_set():
            self.producer.send_batch("s", batch)
            if self.rate:
                due = max(due + len(batch) / self.rate, time.monotonic() - 0.1)
                self.stopping.wait(max(0.0, due - time.monotonic()))
            else:
                due = time.monotonic()

    def _sample(self) -> None:
        while not self.stopping.wait(_SAMPLE):
            self.samples.append((time.monotonic(), self.producer.report().delivered))

    def between(self, start: float, end: float) -> float:
        """Return the delivered messages a second between two times."""
        inside = [sample for sample in list(self.samples) if start <= sample[0] <= end]
        if len(inside) < 2:
            return 0.0
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])

    def recovered(self, fault_at: float, wanted: float) -> float | None:
        """Return from when on the rate of a fifth of a second is back."""
        for at, _ in list(self.samples):
            if at >= fault_at + _WINDOW and self.between(at - _WINDOW, at) >= wanted:
                return at
        return None

    def stop(self) -> None:
        """Send no more."""
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def failover(folder: Path, kills: int) -> tuple[dict[str, object], list[str]]:
    """Kill ``kills`` times; return the facts and the violations."""
    hubs = [HubProcess(folder, f"hub{i}", durable=False) for i in range(3)]
    history = History()
    pauses: list[float] = []
    try:
        for hub in hubs:
            hub.start()
        target = "tcp://" + ",".join(f"127.0.0.1:{hub.port}" for hub in hubs)
        config = load_producer_config(target, group_id="g", connections=3, buffer_bytes="32MiB", retry_budget=100000)
        with Producer(config=config) as producer:
            load = Load(producer)
            time.sleep(3.0)
            ceiling = load.between(time.monotonic() - 2.0, time.monotonic())
            load.rate = ceiling / 2
            time.sleep(2.0)
            for n in range(kills):
                hub = hubs[n % 3]
                before = load.between(time.monotonic() - _BEFORE, time.monotonic())
                at = time.monotonic()
                hub.kill()
                time.sleep(RECOVERY_SECONDS + 0.5)
                back = load.recovered(at, _SHARE * before)
                history.dips.append(Dip(at, back))
                pauses.append(99.0 if back is None else back - at)
                hub.start()
                time.sleep(_BEFORE + 1.0)
            load.stop()
            report = producer.flush()
    finally:
        for hub in hubs:
            hub.close()
    found = [f"{v.law} {v.text}" for v in judge(history)]
    if report.failed or report.expired or report.dropped:
        found.append(f"S3 {report} has messages that failed although two of three hubs worked")
    pauses.sort()
    facts: dict[str, object] = {
        "kills": kills, "ceiling_per_second": round(ceiling), "messages": report.accepted,
        "failed": report.failed + report.expired, "recovery_p50": round(pauses[len(pauses) // 2], 3),
        "recovery_p99": round(pauses[min(len(pauses) - 1, int(len(pauses) * 0.99))], 3), "violations": len(found),
    }  # fmt: skip
    return facts, found
