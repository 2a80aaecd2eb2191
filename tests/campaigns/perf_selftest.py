"""A hub stands still for a second in the middle of a load: the percentiles have to show it.

``python -m tests.campaigns.perf_selftest`` (``make perf-selftest``) takes a minute and prints what each way of sending
has found.  A load test that forgets the messages which it could not send meanwhile shows a p99.9 of some milliseconds.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import Any

from dataproxy.perf import Load, Result, Second, parse_plan, run_load, text_report
from dataproxy.perf.hub import HubFigures, HubProcess, hub_process

__all__ = ["CASES", "LEAST", "frozen_run", "main"]

LEAST = 0.9  # seconds that p99.9 has at least
FROZEN = 1.0  # seconds that the hub stands still
SMALL = {"on_full": "block", "buffer_bytes": "64KiB", "linger": "1ms"}
CASES: dict[str, dict[str, Any]] = {
    "open loop": {"options": {"linger": "1ms"}},
    "small buffer, on_full=block": {"options": SMALL},
    "small buffer, Poisson arrivals": {"options": SMALL, "arrivals": "poisson"},
    "small buffer, calls of send": {"options": SMALL, "path": "send"},
    "small buffer, calls of send_batch": {"options": SMALL, "path": "send_batch", "batch": 10},
    "small buffer, tasks of asyncio": {"options": SMALL, "path": "asyncio"},
}


def frozen_run(seconds: float, rate: float, *, arrivals: str = "constant", **load: Any) -> Result:
    """Run a load against a hub's process that stands still for ``FROZEN`` seconds in its middle."""
    plan = parse_plan(f"{rate:g}:{seconds:g}", arrivals=arrivals)
    with hub_process() as hub:
        stopper = Stopper(hub, seconds / 2)
        figures = HubFigures(hub.manager_url, hub.pid)
        try:
            result = run_load(Load(hub.target, plan, max_lag=0.05, **load), hub=figures, watch=stopper.look)
        finally:
            figures.close()
            stopper.end()
    assert stopper.done, "the hub was never stopped"
    return result


class Stopper:
    """Stop a hub once a run is so old, and let it go on a while later, whatever the run does meanwhile."""

    def __init__(self, hub: HubProcess, at: float) -> None:
        self.done = False
        self._hub, self._at = hub, at
        self._thread: threading.Thread | None = None

    def look(self, second: Second) -> None:
        """Stop the hub if it is time."""
        if self._thread is None and second.at >= self._at:
            self._thread = threading.Thread(target=self._stop)
            self._thread.start()

    def end(self) -> None:
        """Wait until the hub goes on."""
        if self._thread is not None:
            self._thread.join(60)

    def _stop(self) -> None:
        self._hub.freeze()
        try:
            time.sleep(FROZEN)  # what the run has to show
            self.done = True
        finally:
            self._hub.thaw()


def main() -> int:
    """Run every case for 20 s; the status is 1 when one does not show the pause."""
    bad = 0
    for name, load in CASES.items():
        result = frozen_run(20, 5000, **load)
        p999 = result.percentile(99.9) or 0.0
        good = not result.invalid and p999 >= LEAST and result.lost == 0 and result.stored == result.counts["delivered"]
        bad += not good
        sys.stdout.write(f"== {name}: {'good' if good else 'BAD'}, p99.9 {p999:.3f} s\n{text_report(result)}\n\n")
        sys.stdout.flush()
    return 1 if bad else 0


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
