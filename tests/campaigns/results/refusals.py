"""A million messages, one percent refused: every future and every callback once, and the report exact."""

from __future__ import annotations

import threading
import time
from collections import Counter

import dataproxy
from dataproxy.hub import Hub

__all__ = ["refusals"]

_CODE = 110
_CHUNK = 100_000
_SECONDS = 600.0


class _Tally:
    """Count the calls of ``on_delivery`` by id, without keeping results."""

    def __init__(self) -> None:
        self.ids: Counter[str] = Counter()
        self.failed = 0
        self.wrong = 0

    def __call__(self, result: dataproxy.DeliveryResult) -> None:
        if (result.delivered is None) == (result.error is None):
            self.wrong += 1
        elif result.delivered is not None:
            self.ids[result.delivered.id] += 1
        else:
            self.ids[result.error.details["id"]] += 1
            self.failed += 1
            self.wrong += result.error.code != _CODE


def refusals(messages: int) -> tuple[dict[str, object], list[str]]:
    """Send so many, one by one and with a callback each; return the facts and what does not hold."""
    own, everybody, done = _Tally(), _Tally(), Counter[str]()
    failed = futures = 0
    began = time.monotonic()
    with Hub() as hub:
        hub.faults.add("refuse", code=_CODE, every=100)
        producer = dataproxy.Producer(
            hub.target, group_id="g", batch_messages=10, undelivered_bytes="1GiB", on_delivery=everybody
        )
        lock = threading.Lock()

        def note(delivery: dataproxy.Delivery) -> None:
            with lock:
                done[delivery.id] += 1

        for first in range(0, messages, _CHUNK):
            deliveries = [
                producer.send("s", b"%d" % i, on_delivery=own) for i in range(first, min(messages, first + _CHUNK))
            ]
            for delivery in deliveries:
                delivery.add_done_callback(note)
            producer.flush(_SECONDS)
            failed += sum(delivery.exception(0) is not None for delivery in deliveries)
            futures += sum(delivery.done() for delivery in deliveries)
        report = producer.close(_SECONDS)
        lost = sum(1 for _ in producer.undelivered())
        refused = hub.counts()[("g", "s")].records
        refused = messages - refused
        errors = producer.stats().callback_errors
    facts = {
        "messages": messages, "refused by the hub": refused, "reported failed": report.failed, "futures": futures,
        "futures failed": failed, "callbacks of the calls": own.ids.total(), "callbacks failed": own.failed,
        "callbacks of the producer": everybody.ids.total(), "done callbacks": done.total(), "given back": lost,
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    counts = (report.failed, failed, own.failed, everybody.failed, lost, report.errors.get(_CODE, 0))
    problems = [f"{refused} were refused, counted were {counts}"] if set(counts) != {refused} else []
    for name, ids in (
        ("on_delivery", everybody.ids),
        ("on_delivery of the call", own.ids),
        ("add_done_callback", done),
    ):
        if len(ids) != messages or ids.total() != messages:
            problems.append(f"{name}: {ids.total()} calls for {len(ids)} of {messages} messages")
    if not report.balanced or report.pending or errors or own.wrong or everybody.wrong or futures != messages:
        problems.append(f"{report}, {errors} errors of callbacks, {own.wrong + everybody.wrong} wrong results")
    return facts, problems
