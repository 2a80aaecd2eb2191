"""Producers of TubeMQ topics and their life: TLS, forks, exits, closes in the middle of work, threads and memory."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataproxy import AsyncProducer, Producer
from dataproxy.errors import ClosedError, DiscoveryError
from dataproxy.masters.target import parse_target
from dataproxy.producer.tubemq.session import client_name
from dataproxy.producer.tubemq.source import MasterSource
from tests.support.certificates import Authority
from tests.support.interrupting import interrupted
from tests.support.tlsserver import TlsFront, tls_front
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS, eventually

ROOT = Path(__file__).parents[3]
SEND = "SendMessageRequestP2B"

UNCLOSED = """
import sys
from dataproxy import Producer
producer = Producer(sys.argv[1])
for i in range(500):
    producer.send_nowait("one", b"%d" % i)
"""


def brokers_behind(tube: TubeServer, front: TlsFront) -> None:
    """Let the master name a port with TLS in the place of the broker's."""

    def mangle(answer: Any) -> None:
        del answer.brokerInfos[:]
        answer.brokerInfos.append(f"1:127.0.0.1:{front.port}")

    for method in ("RegisterRequestP2M", "HeartRequestP2M"):
        tube.on(method, ("mangle", mangle), times=None)


def test_master_and_broker_over_tls(tube: TubeServer, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    identity = authority.identity("localhost")
    with tls_front(tube.master_port, identity) as master, tls_front(tube.broker_port, identity) as broker:
        brokers_behind(tube, broker)
        target = f"tubemqs://127.0.0.1:{master.port}"
        with Producer(target, tls_ca=str(authority.ca), tls_server_name="localhost") as producer:
            for i in range(100):
                producer.send_nowait("three", b"%d" % i)
        assert len(tube.stored("three")) == 100
        assert {*master.names, *broker.names} == {"localhost"}
        with pytest.raises(DiscoveryError, match=r"TLS: .*127\.0\.0\.1"):
            Producer(target, tls_ca=str(authority.ca))


def in_child(work: Callable[[], None]) -> int:
    """Return the exit status of a forked child that does something."""
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            work()
            status = 0
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_is_a_producer_of_its_own(tube: TubeServer) -> None:
    with Producer(tube.target) as producer:
        producer.send("one", b"parent").result(SECONDS)

        def work() -> None:
            producer.send("one", b"child").result(SECONDS)
            producer.send("three", b"new topic").result(SECONDS)
            producer.close()

        assert in_child(work) == 0
        assert len(tube.producers) == 1
        producer.send("one", b"parent again").result(SECONDS)
    assert [one.body for one in tube.stored("one")] == [b"parent", b"child", b"parent again"]
    clients = {call.client for call in tube.calls if call.method == SEND}
    assert len(clients) == 2
    assert tube.producers == []


def test_a_program_that_ends_without_a_close_delivers(tube: TubeServer) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", UNCLOSED, tube.target], cwd=ROOT, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert len(tube.stored("one")) == 500
    assert tube.producers == []


def test_a_close_under_load_counts_everything(tube: TubeServer) -> None:
    producer = Producer(tube.target, buffer_messages=50)
    producer.send("three", b"first").result(SECONDS)
    accepted = [1, 0, 0]

    def load(number: int) -> None:
        with contextlib.suppress(ClosedError):
            while True:
                producer.send_nowait("three", b"x")
                accepted[number] += 1

    threads = [threading.Thread(target=load, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    assert eventually(lambda: len(tube.stored("three")) > 200)
    report = producer.close(SECONDS)
    for thread in threads:
        thread.join()
    assert report.accepted == sum(accepted)
    assert report.delivered == report.accepted == len(tube.stored("three"))


def test_an_await_that_is_cancelled_loses_no_count(tube: TubeServer) -> None:
    async def work() -> tuple[int, int]:
        async with AsyncProducer(tube.target) as producer:
            await producer.send("one", b"first")
            hold = threading.Event()
            tube.on(SEND, ("hold", hold))
            tasks = [asyncio.create_task(producer.send("one", b"%d" % i)) for i in range(50)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            hold.set()
            await asyncio.gather(*tasks, return_exceptions=True)
            report = await producer.flush()
            return report.accepted, report.delivered

    accepted, delivered = asyncio.run(work())
    assert accepted == delivered == len(tube.stored("one"))


def forget(held: list[Producer], tube: TubeServer) -> None:
    """Let nobody refer to a producer; its discovery may have the last reference for a moment."""
    held.clear()
    gc.collect()
    assert eventually(lambda: tube.producers == [])


def ours() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name.startswith("dataproxy-")}


def test_a_producer_that_is_garbage_leaves(tube: TubeServer) -> None:
    before = ours()
    held = [Producer(tube.target)]
    held[0].send("one", b"x").result(SECONDS)
    with pytest.warns(ResourceWarning, match="not closed"):
        forget(held, tube)
    assert eventually(lambda: not ours() - before)


def test_what_a_forgotten_producer_has_accepted_is_delivered(tube: TubeServer) -> None:
    hold = threading.Event()
    held = [Producer(tube.target)]
    tube.on("HeartRequestP2M", ("hold", hold))
    held[0].send_nowait("one", b"x")
    assert eventually(lambda: tube.held == 1)  # where the topic is, is not known yet
    held.clear()
    with pytest.warns(ResourceWarning, match="not closed"):
        gc.collect()
    hold.set()
    assert eventually(lambda: [one.body for one in tube.stored("one")] == [b"x"])
    assert eventually(lambda: tube.producers == [])


def test_a_close_does_not_wait_for_a_master_that_is_silent(tube: TubeServer) -> None:
    with Producer(tube.target) as producer:
        producer.send("one", b"x").result(SECONDS)
        hold = threading.Event()
        tube.on("CloseRequestP2M", ("hold", hold))
        report = producer.close()
        hold.set()
    assert report.delivered == 1


def test_memory_and_connections_are_bounded_while_a_topic_is_missing(tube: TubeServer) -> None:
    producer = Producer(tube.target, buffer_bytes=1 << 20, on_full="drop_newest", delivery_timeout=60)
    producer.send("one", b"x").result(SECONDS)
    for _ in range(5_000):
        producer.send_nowait("nowhere", b"x" * 1000)
    report = producer.report()
    assert report.dropped > 3_000
    assert len(producer.stats().connections) == 1
    assert producer.close(0).failed == report.accepted - report.dropped - 1


def test_many_topics_share_the_connections_of_their_broker() -> None:
    topics = {f"t{i}": 2 for i in range(40)}
    with TubeServer(topics) as tube, Producer(tube.target) as producer:
        for topic in topics:
            producer.send_nowait(topic, topic.encode())
        assert producer.flush(SECONDS).delivered == 40
        assert len(producer.stats().connections) == 1
        assert all([one.body for one in tube.stored(topic)] == [topic.encode()] for topic in topics)


def test_names_of_clients_differ():
    target = parse_target("tubemq://127.0.0.1:1")
    first, second = client_name(target), client_name(target)
    assert first != second
    assert first.startswith("127.0.0.1-")
    assert client_name(parse_target("tubemq://[::1]:1")).partition("-")[0] == "__1"
    assert client_name(parse_target("tubemq://name:1")).startswith("127.0.0.1-")


def test_a_fault_while_topics_are_looked_at_ends_no_further_look(
    tube: TubeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    faults = [RuntimeError("a fault")]
    real = MasterSource._note_missing

    def faulty(source: MasterSource, topics: list[str]) -> bool:
        if faults:
            raise faults.pop()
        return real(source, topics)

    monkeypatch.setattr(MasterSource, "_note_missing", faulty)
    with Producer(tube.target) as producer:
        producer.send("one", b"a").result(SECONDS)
        assert eventually(lambda: not faults)
        producer.send("three", b"b").result(SECONDS)
    assert "RuntimeError: a fault" in caplog.text


def test_what_a_signal_handler_raises_while_a_master_is_told_of_the_end_is_not_lost(
    tube: TubeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer(tube.target)
    delivered = producer.send("one", b"body")
    delivered.result(SECONDS)
    interrupted(monkeypatch, "dataproxy.producer.tubemq.source.join")
    with pytest.raises(KeyboardInterrupt):
        producer.close()
    assert producer.closed and producer.report().delivered == 1
