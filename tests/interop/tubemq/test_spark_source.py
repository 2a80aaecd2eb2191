"""Ranges and the Spark source at TubeMQ's own master and broker, with one and with three partitions in a store."""

from __future__ import annotations

import itertools
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dataproxy
from dataproxy.config import ConsumerConfig, load_consumer_config
from dataproxy.consumer.ranges.bounds import find_bounds
from dataproxy.consumer.ranges.calls import Calls
from dataproxy.consumer.ranges.keeping import GroupKeeper
from dataproxy.consumer.ranges.places import find_places
from dataproxy.consumer.ranges.reader import INDEX_BYTES, Damaged, Lost, RangeReader
from dataproxy.consumer.ranges.registering import Client
from dataproxy.errors import GroupRefusedError
from tests.support.rawclient import Connection, Sender
from tests.support.tubekit import Servers

TOPICS = {"one": 1, "three": 3}
STRETCH = 15_000
PACKAGES = Path(dataproxy.__file__).parents[1]


def target(tubemq: Servers) -> str:
    return f"tubemq://127.0.0.1:{tubemq.master}"


@pytest.fixture
def config(tubemq: Servers) -> ConsumerConfig:
    return load_consumer_config(target(tubemq), f"ranges{time.time_ns()}", list(TOPICS), env={})


def send(tubemq: Servers, count: int) -> dict[str, list[tuple[int, bytes]]]:
    """Send messages to all partitions; return (offset, body) of each, by the keys of partitions."""
    source = random.Random(time.time_ns())
    found: dict[str, list[tuple[int, bytes]]] = {}
    with Connection(tubemq.master) as master, Connection(tubemq.broker) as broker:
        for topic, partitions in TOPICS.items():
            sender = Sender(master, broker, topic)
            for _ in range(count):
                partition = source.randrange(partitions)
                body = source.randbytes(source.choice([16, 20_000]))
                answer = sender.send(partition, body)
                assert answer["errCode"] == 200
                found.setdefault(f"1:{topic}:{partition}", []).append((answer["appendOffset"], body))
            sender.close()
    return found


def raised(lost: Lost | Damaged) -> None:
    raise AssertionError(lost)


def test_every_range_is_exact(tubemq: Servers, config: ConsumerConfig) -> None:
    stored = send(tubemq, 120)
    source = random.Random(3)
    with Calls(config) as calls:
        places = find_places(config)
        bounds = find_bounds(Client(calls, config), config.group, places.values())
        reader = RangeReader(calls, config, raised)
        for key, sent in stored.items():
            first, end = sent[0][0], bounds[key].end
            assert places[key].alone == (places[key].topic == "one")
            assert end >= sent[-1][0] + INDEX_BYTES
            offsets = [INDEX_BYTES * source.randrange(first // INDEX_BYTES, end // INDEX_BYTES + 1) for _ in range(5)]
            cuts = sorted({first, end, *offsets})
            for begin, until in itertools.pairwise(cuts):
                pieces = [list(reader.read(places[key], begin, until)) for _ in range(2)]
                bodies = [[b for one in found for b in one.pack.bodies()[: one.rows]] for found in pieces]
                assert bodies[0] == bodies[1] == [body for at, body in sent if begin <= at < until]
                if places[key].alone:
                    at = [
                        one.first + i * INDEX_BYTES
                        for one in pieces[0]
                        if one.first is not None
                        for i in range(one.rows)
                    ]
                    assert at == [at for at, _ in sent if begin <= at < until]


def test_long_stretches_of_others_hide_nothing(tubemq: Servers, config: ConsumerConfig) -> None:
    """A broker looks through some thousands of entries for a request, and there are more between two messages."""
    with Connection(tubemq.master) as master, Connection(tubemq.broker) as broker:
        sender = Sender(master, broker, "three")
        first = sender.send(1, b"first")["appendOffset"]
        for number in range(STRETCH):
            assert sender.send(0, b"%d" % number)["errCode"] == 200
        last = sender.send(1, b"last")["appendOffset"]
        sender.close()
    assert last - first > STRETCH * INDEX_BYTES
    with Calls(config) as calls:
        place = find_places(config)["1:three:1"]
        reader = RangeReader(calls, config, raised)
        for end, expected in ((last + INDEX_BYTES, [b"first", b"last"]), (last, [b"first"]), (first, [])):
            found = [body for one in reader.read(place, first, end) for body in one.pack.bodies()[: one.rows]]
            assert found == expected
        found = [
            body for one in reader.read(place, first + INDEX_BYTES, last) for body in one.pack.bodies()[: one.rows]
        ]
        assert found == []


def test_a_group_is_kept_for_one_reader(tubemq: Servers, config: ConsumerConfig) -> None:
    stored = send(tubemq, 10)
    places = find_places(config)
    keeper, other = GroupKeeper(config, 0), GroupKeeper(config, 0)
    try:
        keeper.look(places.values())
        with pytest.raises(GroupRefusedError, match="has been registered by"):
            other.look(places.values())
        offsets = {key: sent[-1][0] for key, sent in stored.items()}
        assert keeper.store(offsets, places) == set(offsets)
        # Clients choose partitions at random: one that got none of these messages may stand elsewhere.
        assert offsets.items() <= {key: one.offset for key, one in keeper.look(places.values()).items()}.items()
        keeper.close()
        assert offsets.items() <= {key: one.offset for key, one in other.look(places.values()).items()}.items()
    finally:
        keeper.close()
        other.close()


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        path = os.pathsep.join(part for part in (str(PACKAGES), os.environ.get("PYTHONPATH", "")) if part)
        for name, value in (("PYSPARK_PYTHON", sys.executable), ("PYTHONPATH", path)):
            patch.setenv(name, value)
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        for name in ("bindAddress", "host"):
            builder = builder.config(f"spark.driver.{name}", "127.0.0.1")
        session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.mark.timeout(400)
def test_a_batch_and_a_stream(spark: Any, tubemq: Servers, config: ConsumerConfig, tmp_path: Path) -> None:
    places = find_places(config)
    with Calls(config) as calls:
        begin = {key: one.end for key, one in find_bounds(Client(calls, config), config.group, places.values()).items()}
    options = {"target": target(tubemq), "group": config.group, "topics": ",".join(TOPICS)}
    options |= {"startingOffsets": str(begin).replace("'", '"')}
    sent = [body for part in send(tubemq, 60).values() for _, body in part]
    rows = spark.read.format("tubemq").options(**options).load().select("body").collect()
    assert Counter(bytes(row.body) for row in rows) == Counter(sent)

    found: dict[int, Counter[bytes]] = {}

    def keep(df: Any, number: int) -> None:
        found[number] = Counter(bytes(row.body) for row in df.select("body").collect())

    def run() -> None:
        stream = spark.readStream.format("tubemq").options(maxOffsetsPerTrigger="80", **options).load()
        writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
        assert writer.trigger(availableNow=True).start().awaitTermination(200)

    run()
    assert len(found) > 1
    sent += [body for part in send(tubemq, 30).values() for _, body in part]
    run()
    assert sum(found.values(), Counter()) == Counter(sent)
