"""Every kind of fault against ``delivery_timeout``: no result comes later than a quarter of a second after it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import dataproxy
from dataproxy.hub import KINDS, Hub

__all__ = ["PARAMETERS", "limits"]

#: What kinds without a default need.
PARAMETERS: dict[str, dict[str, Any]] = {
    "refuse": {"code": 119},
    "delay": {"seconds": 2.0},
    "slow": {"bytes_per_second": 500},
    "load": {"load": 200},
}
_MESSAGES = 200
_SLACK = 0.25
_EARLY = 0.001


def limits(limit: float, *, messages: int = _MESSAGES) -> tuple[dict[str, object], list[str]]:
    """Send under each fault with so many seconds for a result; return the facts and what does not hold.

    Latencies are the core's own, from the first message of a pack to its result.
    """
    facts: dict[str, object] = {}
    problems = []
    for name in KINDS:
        worst, outcomes, early = _one(name, limit, messages)
        facts[name] = {"latest": round(worst, 3), **outcomes}
        if worst > limit + _SLACK:
            problems.append(f"{name}: a result after {worst:.3f} s with delivery_timeout={limit:g} s")
        if early:
            problems.append(f"{name}: {early} messages expired before their time")
        if sum(outcomes.values()) != messages:
            problems.append(f"{name}: {outcomes} of {messages} messages")
    return facts, problems


def _one(name: str, limit: float, messages: int) -> tuple[float, Counter[str], int]:
    outcomes: Counter[str] = Counter()
    worst, early = 0.0, 0
    with Hub() as hub:
        producer = dataproxy.Producer(
            hub.target, group_id="g", delivery_timeout=limit, ack_timeout=limit / 3, batch_messages=20,
            reconnect_backoff_max=limit / 5,
        )  # fmt: skip
        producer.send("s", b"before the fault").exception(limit + 10)  # connected, unless the machine is busy
        with hub.faults.add(name, **PARAMETERS.get(name, {})):
            deliveries = [producer.send("s", b"%d" % i * 50) for i in range(messages)]
            for delivery in deliveries:
                error = delivery.exception(limit + 10)
                latency = error.details["latency"] if error else delivery.result().latency
                worst = max(worst, latency)
                outcomes[type(error).__name__ if error else "Delivered"] += 1
                early += isinstance(error, dataproxy.DeliveryExpired) and latency < limit - _EARLY
        producer.close(1)
    return worst, outcomes, early
