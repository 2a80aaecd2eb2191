"""Hostile clients beside an honest producer: whatever they do, its messages arrive and the hub's memory is bounded."""

from __future__ import annotations

import pytest

from dataproxy import Producer
from tests.campaigns.hostile import BESIEGERS, Siege
from tests.loopback.hub.peer import wait_until

BOUND = 8 << 20
#: With what they store bounded, too.
OPTIONS = {"queue_bytes": BOUND, "max_store_bytes": 64 << 20}


@pytest.mark.parametrize("kind", BESIEGERS)
@pytest.mark.parametrize("body", [20, 200_000])
def test_an_honest_producer_gets_through(start_hub, kind, body):
    hub = start_hub(**OPTIONS)
    with Siege(("127.0.0.1", hub.port), BESIEGERS[kind]) as siege:
        assert siege.established.wait(60)
        with Producer(hub.target, group_id="honest", linger=0.0, delivery_timeout=60.0) as producer:
            for n in range(20):
                producer.send("s", b"%d:" % n + b"x" * body).result(timeout=60)
                stats = hub.stats()
                assert stats["frame_bytes"] <= BOUND
                assert stats["answer_bytes"] <= BOUND
        report = producer.report()
    assert (report.delivered, report.failed, report.expired) == (20, 0, 0)
    assert producer.stats().retries == 0, "its connection was never closed, nothing of it was refused"
    assert siege.sent > 0
    wait_until(lambda: hub.stats()["connections"] == 0)
    stats = hub.stats()
    assert (stats["frame_bytes"], stats["answer_bytes"]) == (0, 0)
    stored = [int(record.body.partition(b":")[0]) for record in hub.records("honest", "s")]
    assert stored == list(range(20))[-len(stored) :], "a flood that is stored makes the oldest go"


def test_the_table_says_what_each_kind_is():
    assert all(name == kind.name and kind.text.endswith(".") for name, kind in BESIEGERS.items())
    for kind in BESIEGERS.values():
        part = next(kind.sends())
        assert 0 < len(part) <= 524_288, f"{kind.name} keeps to the largest frame"
