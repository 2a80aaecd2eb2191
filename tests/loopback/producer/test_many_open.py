"""Messages of more streams than have their open packs at hand: they wait aside, and nothing tells the difference."""

import random

import pyarrow as pa
import pytest

import dataproxy
from dataproxy._core.producer.ingest.columnar.recordbatch import send_record_batch
from dataproxy.hub import Hub
from tests.support.scripted import Scripted

STREAMS = 600  # more than may be open before messages wait aside


def names() -> list[str]:
    return [f"s{number}" for number in range(STREAMS)]


def bodies_of(hub: Hub) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {name: [] for name in names()}
    for record in hub.records("g"):
        found[record.stream_id].append(record.body)
    return found


def opened(producer: dataproxy.Producer) -> dict[str, list[bytes]]:
    """Open a pack for each stream; return what was sent."""
    for name in names():
        producer.send_nowait(name, b"first of " + name.encode())
    return {name: [b"first of " + name.encode()] for name in names()}


@pytest.mark.parametrize("size", [5, 100, 900, 1100])
def test_order_within_a_stream_is_that_of_the_calls_in_whatever_way_they_send(size) -> None:
    chance = random.Random(size)
    with Hub() as hub, dataproxy.Producer(hub.target, group_id="g", linger=60, executors=1, connections=1) as producer:
        sent = opened(producer)
        waited = []
        for number in range(3000):
            name = chance.choice(names())
            body = b"%d " % number + b"x" * chance.randrange(size)
            way = chance.randrange(20)
            if way == 0:
                waited.append((producer.send(name, body), name, body))
            elif way == 1:
                producer.send_batch(name, [body, body])
                sent[name].append(body)
            elif way == 2:
                batch = pa.record_batch({"v": [body], "s": [name]})
                send_record_batch(producer, batch, value=0, stream_id=1, group="g")
            else:
                producer.send_nowait(name, body)
            sent[name].append(body)
        assert producer.flush(60).ok
        assert all(delivery.result(60) for delivery, _, _ in waited)
        assert bodies_of(hub) == sent


def test_every_count_and_limit_is_exact_while_messages_wait_aside() -> None:
    with Scripted() as server:
        producer = dataproxy.Producer(
            server.target, group_id="g", linger=60, on_full="raise", buffer_bytes=STREAMS * 110
        )
        opened(producer)
        before = producer.stats()
        assert before.accepted == STREAMS
        left = STREAMS * 110 - before.buffered_bytes
        for number in range(left // 14):
            producer.send_nowait(f"s{number % STREAMS}", b"0123456789")
            assert producer.stats().accepted == STREAMS + number + 1
            assert producer.stats().buffered_bytes == before.buffered_bytes + 14 * (number + 1)
        with pytest.raises(dataproxy.BufferFullError):
            producer.send_nowait("s0", b"0123456789")
        producer.close(0)
        assert producer.report().balanced
        assert producer.report().accepted == STREAMS + left // 14


@pytest.mark.parametrize("ending", ["flush", "close", "linger"])
def test_what_waits_aside_is_sent_by_a_flush_at_the_end_and_in_time(ending) -> None:
    linger = 0.02 if ending == "linger" else 60
    with Hub() as hub:
        producer = dataproxy.Producer(hub.target, group_id="g", linger=linger)
        sent = opened(producer)
        for number in range(10):
            producer.send_nowait(f"s{number}", b"aside")
            sent[f"s{number}"].append(b"aside")
        if ending == "flush":
            assert producer.flush(60).ok
        elif ending == "linger":
            producer.send("s11", b"last").result(60)
            sent["s11"].append(b"last")
            for number in range(10):
                producer.send_nowait(f"s{number}", b"last")
                sent[f"s{number}"].append(b"last")
            waited = [producer.send(f"s{number}", b"told") for number in range(10)]
            for number, delivery in enumerate(waited):
                delivery.result(60)
                sent[f"s{number}"].append(b"told")
        report = producer.close(60)
        assert report.ok
        assert report.balanced
        assert bodies_of(hub) == sent


@pytest.mark.parametrize("on_full", ["drop_newest", "drop_oldest"])
def test_a_full_buffer_drops_and_stays_balanced(on_full) -> None:
    with Scripted() as server:
        producer = dataproxy.Producer(
            server.target, group_id="g", linger=60, on_full=on_full, buffer_bytes=STREAMS * 110
        )
        opened(producer)
        for number in range(5000):
            producer.send_nowait(f"s{number % STREAMS}", b"0123456789")
            assert producer.stats().buffered_bytes <= STREAMS * 110
        producer.close(0)
        report = producer.report()
        assert report.balanced
        assert report.accepted == STREAMS + 5000
        assert report.dropped > 0


def test_a_record_batch_of_many_streams_keeps_their_order_and_leaves_nulls_out() -> None:
    chance = random.Random(7)
    rows = [(chance.choice(names()), b"%d" % number if number % 7 else None) for number in range(5000)]
    batch = pa.record_batch({"v": pa.array([body for _, body in rows], pa.binary()), "s": [name for name, _ in rows]})
    sent: dict[str, list[bytes]] = {name: [] for name in names()}
    for name, body in rows:
        if body is not None:
            sent[name].append(body)
    with Hub() as hub, dataproxy.Producer(hub.target, group_id="g", null_value="skip", connections=1) as producer:
        assert send_record_batch(producer, batch, value=0, stream_id=1, group="g")[:2] == (
            sum(map(len, sent.values())),
            sum(body is None for _, body in rows),
        )
        assert producer.flush(60).ok
        assert bodies_of(hub) == sent
