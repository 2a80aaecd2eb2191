"""Load a proxy at a planned rate and print throughput, latency percentiles and the books.

The load is open: every message has a planned time that does not depend on earlier answers.  Who falls behind
sends at once what is due, and the lag behind the plan is reported, so that a slow server cannot hide.

    python examples/load_test.py --rate 200000 --threads 2 --size 200 --duration 10
    python examples/load_test.py --rate 0 --target tcp://host:46801    # as fast as it goes
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict

from local_hub import target_or_hub

import dataproxy

TICK = 0.001  # seconds between two looks at the plan
BURST = 1000  # messages between two looks at the clock when there is no plan
BOOKS = ("accepted", "delivered", "failed", "expired", "dropped", "pending")


class Sender(threading.Thread):
    """Send one thread's share of the plan to its own stream."""

    def __init__(self, stream: dataproxy.Stream, body: bytes, rate: float, duration: float) -> None:
        super().__init__(daemon=True)
        self.sent = 0
        self.worst_lag = 0.0
        self.lag_sum = 0.0
        self.error: dataproxy.DataProxyError | None = None
        self.stopping = threading.Event()
        self._stream, self._body, self._rate, self._duration = stream, body, rate, duration

    def run(self) -> None:
        """Send until the time is over."""
        try:
            if self._rate > 0:
                self._planned()
            else:
                self._unplanned()
        except dataproxy.DataProxyError as error:
            self.error = error

    def _planned(self) -> None:
        send, body, rate = self._stream.send_nowait, self._body, self._rate
        started = time.perf_counter()
        total = int(rate * self._duration)
        while self.sent < total and not self.stopping.is_set():
            now = time.perf_counter() - started
            due = min(total, int(now * rate) + 1)
            for number in range(self.sent, due):
                lag = time.perf_counter() - started - number / rate
                send(body)
                self.lag_sum += lag
                self.worst_lag = max(self.worst_lag, lag)
            self.sent = due
            time.sleep(TICK)

    def _unplanned(self) -> None:
        send, body = self._stream.send_nowait, self._body
        end = time.perf_counter() + self._duration
        while time.perf_counter() < end and not self.stopping.is_set():
            for _ in range(BURST):
                send(body)
            self.sent += BURST


def load(target: str, chosen: argparse.Namespace) -> dict[str, object]:
    """Run the load and return what was measured; times in seconds."""
    body = (b"0123456789abcdef" * (chosen.size // 16 + 1))[: chosen.size]
    share = chosen.rate / chosen.threads
    with dataproxy.Producer(target, group_id=chosen.group, connections=chosen.connections) as producer:
        senders = [
            Sender(producer.stream(f"load_{number}"), body, share, chosen.duration) for number in range(chosen.threads)
        ]
        started = time.perf_counter()
        for sender in senders:
            sender.start()
        try:
            for sender in senders:
                sender.join()
        except KeyboardInterrupt:
            for sender in senders:
                sender.stopping.set()
        producer.flush(timeout=60)
        seconds = time.perf_counter() - started
        stats = producer.stats()
    for sender in senders:
        if sender.error is not None:
            raise sender.error
    sent = sum(sender.sent for sender in senders)
    return {
        "planned_rate": chosen.rate,
        "threads": chosen.threads,
        "size": chosen.size,
        "sent": sent,
        "seconds": seconds,
        "rate": stats.delivered / seconds,
        "body_bytes_per_second": stats.delivered * chosen.size / seconds,
        "retries": stats.retries,
        "latency": asdict(stats.latency),
        "lag": {"mean": sum(s.lag_sum for s in senders) / max(sent, 1), "max": max(s.worst_lag for s in senders)},
        "books": {name: getattr(stats, name) for name in BOOKS},
    }


def text(found: dict[str, object]) -> str:
    """Return the result in words."""
    latency, lag, books = found["latency"], found["lag"], found["books"]
    assert isinstance(latency, dict) and isinstance(lag, dict) and isinstance(books, dict)

    def ms(seconds: float | None) -> str:
        return "-" if seconds is None else f"{seconds * 1000:.2f} ms"

    shown = ", ".join(f"{name} {ms(latency[name])}" for name in ("p50", "p90", "p99", "p999", "max"))
    parts = " + ".join(f"{books[name]:,} {name}" for name in BOOKS[1:])
    lines = [
        (
            f"{found['sent']:,} messages of {found['size']} bytes in {found['seconds']:.2f} s: "
            f"{found['rate']:,.0f}/s, {found['body_bytes_per_second']:,.0f} body bytes/s, {found['retries']} retries"
        ),
        f"from a pack's first message to its ack: {shown}",
    ]
    if found["planned_rate"]:
        lines.append(f"behind the plan: mean {ms(lag['mean'])}, at most {ms(lag['max'])}")
    lines.append(f"books: {books['accepted']:,} accepted = {parts}")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", help="tcp://host:port,... or http://manager:port; without it a hub is started")
    parser.add_argument("--group", default="load", help="group id")
    parser.add_argument("--rate", type=float, default=50_000, help="messages a second in all; 0 is without a plan")
    parser.add_argument("--threads", type=int, default=1, help="sending threads, one stream each")
    parser.add_argument("--size", type=int, default=100, help="bytes of one body")
    parser.add_argument("--duration", type=float, default=5.0, help="seconds")
    parser.add_argument("--connections", type=int, default=0, help="connections in all; 0 is one for each proxy")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    if chosen.rate < 0 or chosen.threads < 1 or chosen.size < 1 or chosen.duration <= 0:
        parser.error("--threads and --size must be at least 1, --duration above 0, --rate not below 0")
    return chosen


def main() -> int:
    """Run the load test; the status is 1 when a message was not delivered."""
    chosen = arguments()
    with target_or_hub(chosen.target) as target:
        found = load(target, chosen)
        sys.stdout.write((json.dumps(found) if chosen.json else text(found)) + "\n")
    books = found["books"]
    assert isinstance(books, dict)
    return 0 if books["accepted"] == books["delivered"] else 1


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
