"""Closes of consumers while a server, or a look-up of its name, gives no answer."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dataproxy import AsyncConsumer, Consumer
from dataproxy.errors import DataProxyError, LocalProtocolError
from dataproxy.rocketmq import Producer, PullConsumer, PushConsumer, TransactionProducer
from dataproxy.rocketmq.network.target import Address
from tests.support.interrupting import interrupted
from tests.support.pushserver import full_port
from tests.support.rocketserver import RocketServer
from tests.support.waiting import SECONDS, eventually

_BOUND_S: Final = 4.0  # of a close that may take 0.1 s: less than any wait for a thread that does not end
_LONG: Final[dict[str, Any]] = {"group": "g", "topics": ["T"], "connect_timeout": 600}


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Return a server that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def is_connecting(port: int) -> bool:
    """Tell whether a connection to a port is begun and not made, by the system's table."""
    table = Path("/proc/net/tcp").read_text("ascii").splitlines()
    return any(fields[2].endswith(f":{port:04X}") and fields[3] == "02" for fields in map(str.split, table))


def close_soon(consumer: Consumer) -> None:
    """Close within 0.1 s; no thread is left."""
    begun = time.monotonic()
    consumer.close(0.1)
    assert time.monotonic() - begun < _BOUND_S
    assert eventually(lambda: not any(one.is_alive() for one in consumer._threads))


def test_a_close_ends_a_handshake_that_has_no_answer(silent: socket.socket) -> None:
    consumer = Consumer(f"rocketmqs://127.0.0.1:{silent.getsockname()[1]}", tls_verify="none", **_LONG)
    made, _ = silent.accept()
    with made:
        assert made.recv(1), "the handshake has begun"
        close_soon(consumer)


def test_a_close_of_an_event_loop_ends_a_handshake_that_has_no_answer(silent: socket.socket) -> None:
    async def main() -> float:
        consumer = AsyncConsumer(f"rocketmqs://127.0.0.1:{silent.getsockname()[1]}", tls_verify="none", **_LONG)
        made, _ = await asyncio.to_thread(silent.accept)
        with made:
            assert await asyncio.to_thread(made.recv, 1)
            begun = time.monotonic()
            await consumer.close(0.1)
            took = time.monotonic() - begun
        assert eventually(lambda: not any(one.is_alive() for one in consumer._threads))
        return took

    assert asyncio.run(main()) < _BOUND_S


def test_a_close_ends_a_connection_that_is_not_made() -> None:
    with full_port() as port:
        assert not is_connecting(port)
        consumer = Consumer(f"rocketmq://127.0.0.1:{port}", **_LONG)
        assert eventually(lambda: is_connecting(port))
        close_soon(consumer)


def test_a_close_waits_for_no_look_up_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    real, begun, go_on = socket.getaddrinfo, threading.Event(), threading.Event()

    def look_up(*given: Any, **named: Any) -> Any:
        begun.set()
        assert go_on.wait(SECONDS)
        return real("127.0.0.1", *given[1:], **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    consumer = Consumer("rocketmq://names.invalid:9876", **_LONG)
    assert begun.wait(SECONDS)
    at = time.monotonic()
    consumer.close(0.1)
    took = time.monotonic() - at
    go_on.set()
    assert took < _BOUND_S and eventually(lambda: not any(one.is_alive() for one in consumer._threads))


# --- of `dataproxy.rocketmq`


def push(target: str, **options: Any) -> PushConsumer:
    return PushConsumer(target, group="g", topics={"T": "*"}, listener=lambda _messages: None, **options)


def pull(target: str, **options: Any) -> PullConsumer:
    return PullConsumer(target, group="g", topics={"T": "*"}, **options)


Make = Callable[..., PushConsumer | PullConsumer]
CONSUMERS: Final = pytest.mark.parametrize("make", [push, pull])


def ends_soon(client: PushConsumer | PullConsumer | Producer, *timeout: float) -> None:
    """Close; no thread of the client is left."""
    keeper = client._client.keeper._thread
    begun = time.monotonic()
    client.close(*timeout)
    assert time.monotonic() - begun < _BOUND_S
    assert eventually(lambda: not keeper.is_alive())


@CONSUMERS
def test_a_close_of_a_consumer_ends_a_handshake_that_has_no_answer(make: Make, silent: socket.socket) -> None:
    consumer = make(f"rocketmqs://127.0.0.1:{silent.getsockname()[1]}", tls_verify="none", connect_timeout=600)
    made, _ = silent.accept()
    with made:
        assert made.recv(1), "the handshake has begun"
        ends_soon(consumer)


@CONSUMERS
@pytest.mark.parametrize("code", [34, 105, 38])  # a heartbeat, a route, the members of a group
def test_a_close_of_a_consumer_waits_for_no_answer_that_does_not_come(make: Make, code: int) -> None:
    with RocketServer({"T": 2}) as server:
        asked = threading.Event()
        consumer = make(server.target, request_timeout=600)
        assert eventually(lambda: consumer._member.readers)
        for one in (code, 35):  # nor does it hear that somebody takes leave
            server.on[one] = lambda *_: asked.set()
        client = consumer._client
        client.keeper.soon({34: client.heartbeat, 105: client.refresh, 38: consumer._member.rebalance}[code])
        assert asked.wait(SECONDS)
        ends_soon(consumer)
        assert server.requests(35), "all the same it has said that it leaves"


@CONSUMERS
def test_a_close_of_a_consumer_makes_no_connection_to_a_broker_that_is_away(make: Make) -> None:
    with RocketServer({"T": 4}) as server, RocketServer({"T": 4}) as away, full_port() as port:
        server.others["a"] = f"127.0.0.1:{away.port}"
        consumer = make(server.target, connect_timeout=600)
        assert eventually(lambda: sum(one.topic == "T" for one in list(consumer._member.readers)) == 8)
        server.others["a"] = f"127.0.0.1:{port}"
        consumer._client.keeper.soon(consumer._client.refresh)
        consumer._client.keeper.soon(consumer._client.heartbeat)
        assert eventually(lambda: is_connecting(port))
        away.__exit__()
        ends_soon(consumer)


def test_a_close_of_a_producer_waits_for_no_answer_to_its_leave() -> None:
    with RocketServer({"T": 2}) as server:
        server.on[35] = lambda *_: None
        producer = Producer(server.target, group="pg", request_timeout=600)
        producer.send("T", b"x").result(SECONDS)
        ends_soon(producer)


@CONSUMERS
def test_a_close_still_writes_the_offsets_of_what_was_done(make: Make) -> None:
    with RocketServer({"T": 1}) as server:
        server.put("T", 0, b"x")
        with make(server.target, begin="first", **({"auto_commit": True} if make is pull else {})) as consumer:
            if isinstance(consumer, PullConsumer):
                assert consumer.poll(SECONDS)
            else:
                assert eventually(lambda: consumer.counts().done == 1)
        assert eventually(lambda: server.offsets.get(("g", "T", 0)) == 1)


@pytest.mark.parametrize("call", ["close", "flush"])
def test_a_callback_may_not_wait_for_results_of_its_own_thread(call: str) -> None:
    with RocketServer({"T": 1}) as server, Producer(server.target, group="pg") as producer:
        found: list[object] = []
        told = threading.Event()

        def end(_delivery: object) -> None:
            try:
                found.append(getattr(producer, call)())
            except LocalProtocolError as error:
                found.append(error.code)
            told.set()

        producer.send("T", b"x").add_done_callback(end)
        assert told.wait(SECONDS)
        assert found == ["IN_CALLBACK"]
        assert producer.send("T", b"y").result(SECONDS), "nothing was closed"
        assert producer.close().failed == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda producer: producer.queues("T"),
        lambda producer: producer.create_topic("T2"),
        lambda producer: producer.send_oneway("T2", b"x"),
        lambda producer: producer._client.connections.open(Address("127.0.0.1", 1)),
    ],
    ids=["queues", "create_topic", "send_oneway", "connection"],
)
def test_a_callback_may_not_wait_for_answers_that_its_own_thread_reads(call: Callable[[Producer], object]) -> None:
    """It would wait until its time is over, and so would all messages."""
    with RocketServer({"T": 1}) as server, Producer(server.target, group="pg") as producer:
        found: list[object] = []
        told = threading.Event()

        def ask(_delivery: object) -> None:
            try:
                found.append(call(producer))
            except DataProxyError as error:
                found.append(error.code)
            told.set()

        producer.send("T", b"x").add_done_callback(ask)
        assert told.wait(SECONDS)
        assert found == ["IN_CALLBACK"]
        producer.send("T", b"y").result(SECONDS)


@pytest.mark.parametrize(
    "make", [push, pull, lambda target: Producer(target, group="pg")], ids=["push", "pull", "send"]
)
@pytest.mark.parametrize("owner", ["keeper", "connections"])
def test_what_a_signal_handler_raises_while_threads_end_is_not_lost(
    make: Callable[[str], Any], owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RocketServer({"T": 1}) as server:
        client = make(server.target)
        thread = getattr(client._client, owner)._thread
        interrupted(monkeypatch, f"dataproxy.rocketmq.network.{owner}.join")
        with pytest.raises(KeyboardInterrupt):
            client.close()
        assert client.closed and eventually(lambda: not thread.is_alive())


def test_a_signal_ends_the_wait_for_listeners_and_not_for_one_of_them_alone() -> None:
    class Interrupted(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    gate, begun = threading.Event(), threading.Semaphore(0)

    def listener(_messages: object) -> None:
        begun.release()
        gate.wait(SECONDS)

    with RocketServer({"T": 2}) as server:
        for queue in (0, 1):
            server.put("T", queue, b"x")
        consumer = PushConsumer(server.target, "g", "T", listener, begin="first", threads=2)
        for _ in range(2):
            assert begun.acquire(timeout=SECONDS)
        before = signal.signal(signal.SIGALRM, interrupt)
        now = time.monotonic()
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(Interrupted):
                consumer.close(SECONDS)
        finally:
            signal.signal(signal.SIGALRM, before)
            gate.set()
        assert time.monotonic() - now < _BOUND_S and consumer.closed


@pytest.fixture
def checked() -> Iterator[tuple[TransactionProducer, list[object], threading.Event]]:
    """Return a producer that is asked for three transactions, what its check has begun, and what lets a check end."""
    begun: list[object] = []
    gate = threading.Event()

    def check(message: object) -> str:
        begun.append(message)
        gate.wait(SECONDS)
        return "unknown"

    with RocketServer({"T": 1}) as server:
        producer = TransactionProducer(server.target, "pg", check)
        producer.send("T", b"half").result(SECONDS)
        [client] = server.wait(lambda: [one for one in server.clients if one.id])
        for _ in range(3):
            fields: dict[str, object] = {"tranStateTableOffset": 1, "commitLogOffset": 2, "msgId": "M"}
            client.ask(39, fields, server.store[("T", 0)][0], one_way=True)
        assert eventually(lambda: begun and producer._asked.qsize() == 2)
        yield producer, begun, gate
        gate.set()
        producer.close()


def test_a_close_waits_for_a_check_of_a_transaction_no_longer_than_it_may(
    checked: tuple[TransactionProducer, list[object], threading.Event],
) -> None:
    producer, begun, gate = checked
    ends_soon(producer, 0.1)
    gate.set()
    producer._checker.join(SECONDS)
    assert not producer._checker.is_alive() and len(begun) == 1, "what waits is left to other producers"


def test_what_a_signal_handler_raises_while_a_check_is_waited_for_is_not_lost(
    checked: tuple[TransactionProducer, list[object], threading.Event], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    producer, _, gate = checked
    gate.set()
    interrupted(monkeypatch, "dataproxy.rocketmq.transactions.join")
    with pytest.raises(KeyboardInterrupt):
        producer.close(SECONDS)
    assert producer.closed and producer.report().delivered == 1


@pytest.mark.parametrize("owner", ["keeper", "connections"])
def test_a_thread_with_the_number_of_one_that_has_ended_is_no_callback(
    owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system gives numbers again: several threads that close at once got those that the first had ended."""
    with RocketServer({"T": 1}) as server, Producer(server.target, group="pg") as producer:
        producer.send("T", b"x").result(SECONDS)
        ended = threading.Thread(target=lambda: None)
        ended.start()
        ended.join()
        monkeypatch.setattr(ended, "_ident", threading.get_ident())
        with monkeypatch.context() as patched:
            patched.setattr(getattr(producer._client, owner), "_thread", ended)
            assert producer.queues("T")
            assert producer.flush(SECONDS).delivered == 1
