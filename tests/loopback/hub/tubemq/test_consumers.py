"""Our own consumer at a hub: every message, none twice, over restarts and with several members."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataproxy import Consumer, Producer, inlong_records
from dataproxy.hub import Hub
from tests.support.waiting import SECONDS

Start = Callable[..., Hub]


def sent(hub: Hub, count: int, items: str = "a", start: int = 0) -> None:
    with Producer(hub.tubemq_target) as producer:
        for i in range(start, start + count):
            producer.send_nowait("demo", b"%d" % i, attrs={"$msgType$": items[i % len(items)]})
        assert producer.flush(SECONDS).delivered == count


def read(hub: Hub, count: int, **options: Any) -> list[int]:
    """Read and confirm so many messages, and look for one more."""
    found: list[int] = []
    with Consumer(hub.tubemq_target, group="readers", topics=options.pop("topics", ["demo"]), **options) as consumer:
        while len(found) < count:
            pack = consumer.poll(timeout=SECONDS)
            assert pack is not None, len(found)
            found += [int(record.body) for record in pack]
            consumer.confirm(pack)
        assert consumer.poll(timeout=0.2) is None
        assert consumer.stats().broken == 0
    return found


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_none_is_missing_and_none_comes_twice(start_hub: Start, tmp_path: Path, kind: str) -> None:
    hub = start_hub(*([tmp_path / "s"] if kind == "disk" else []), tubemq_port=0, partitions=3)
    sent(hub, 200_000)
    found = read(hub, 200_000)
    assert sorted(found) == list(range(200_000))


def test_a_group_goes_on_at_the_next_hub(start_hub: Start, tmp_path: Path) -> None:
    hub = start_hub(tmp_path / "s", tubemq_port=0, partitions=2)
    sent(hub, 1000)
    assert sorted(read(hub, 1000)) == list(range(1000))
    hub.close()
    again = start_hub(tmp_path / "s", tubemq_port=0, partitions=2)
    sent(again, 500, start=1000)
    assert sorted(read(again, 500)) == list(range(1000, 1500))


def test_filters(start_hub: Start) -> None:
    hub = start_hub(tubemq_port=0, partitions=2)
    sent(hub, 3000, "abc")
    found = read(hub, 2000, topics={"demo": ["a", "c"]})
    assert sorted(found) == [i for i in range(3000) if i % 3 != 1]


def test_what_dataproxy_producers_send(start_hub: Start) -> None:
    hub = start_hub(tubemq_port=0, partitions=2)
    with Producer(hub.target, group_id="demo") as producer:
        for i in range(2000):
            producer.send_nowait(f"s{i % 5}", b"%d" % i)
        producer.flush(SECONDS)
    found: list[int] = []
    with Consumer(hub.tubemq_target, group="readers", topics={"demo": ["s1", "s4"]}) as consumer:
        while len(found) < 800:
            pack = consumer.poll(timeout=SECONDS)
            assert pack is not None
            found += [int(record.body) for record in inlong_records(pack)]
            consumer.confirm(pack)
    assert sorted(found) == [i for i in range(2000) if i % 5 in (1, 4)]
