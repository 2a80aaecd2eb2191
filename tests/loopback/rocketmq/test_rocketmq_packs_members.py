"""`dataproxy.Consumer` as a member of a group to which a hub pushes: claims, ends, and what is refused."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dataproxy import Consumer
from dataproxy.consumer.outcomes import CLOSED
from dataproxy.consumer.pushed.engine import PushedEngine
from dataproxy.errors import (
    ClosedError,
    ConfigError,
    GroupRefusedError,
    InvalidMessageError,
    LocalProtocolError,
    TransportError,
)
from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer
from tests.support.rocketpacks import balanced, consume, drain, next_pack, numbers, send
from tests.support.rocketserver import RocketServer
from tests.support.waiting import SECONDS, eventually


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0) as hub:
        yield hub


@pytest.mark.parametrize("what", ["pause", "resume"])
@pytest.mark.parametrize("how", ["raises", "refused"])
def test_a_claim_that_fails_once_is_made_again(hub: Hub, monkeypatch: pytest.MonkeyPatch, what: str, how: str) -> None:
    for name in ("network.client._HEARTBEAT_S", "group.member._REBALANCE_S"):  # that would make it again, too
        monkeypatch.setattr(f"dataproxy.rocketmq.{name}", 1000.0)
    send(hub, b"a", queue=0)
    with consume(hub) as consumer:
        pack = next_pack(consumer)
        pack.confirm()
        engine = consumer._core
        assert isinstance(engine, PushedEngine)
        client, failed = engine._client, threading.Event()
        real = client.heartbeat

        def heartbeat(*to: Any) -> Any:
            if failed.is_set():
                return real(*to)
            failed.set()
            if how == "raises":
                raise ClosedError("the connection has ended", retriable=True, fatal=False)
            return frozenset(*to)

        if what == "pause":
            monkeypatch.setattr(client, "heartbeat", heartbeat)
        consumer.pause(pack.partition)
        assert eventually(lambda: hub.stats()["rocketmq"]["push_sessions"] == 3)
        monkeypatch.setattr(client, "heartbeat", heartbeat)
        consumer.resume(pack.partition)
        assert failed.wait(SECONDS)
        send(hub, b"b", queue=0)
        assert drain(consumer, 1) == [b"b"]


def test_a_heartbeat_goes_on_to_other_brokers_where_a_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with RocketServer({"T": 1}) as one, RocketServer({"T": 1}) as two:
        one.others["c"] = f"127.0.0.1:{two.port}"
        with Producer(one.target, "p") as producer:
            client = producer._client
            client.find("T")
            real = client.connections.call

            def call(address: Any, *given: Any) -> Any:
                if address.port == one.port:
                    raise ClosedError("the connection has ended", retriable=True, fatal=False)
                return real(address, *given)

            monkeypatch.setattr(client.connections, "call", call)
            before = len(two.requests(34))
            assert client.heartbeat() == {("127.0.0.1", one.port)} and len(two.requests(34)) > before
            monkeypatch.setattr(client.connections, "call", real)


def test_a_member_that_leaves_takes_no_more_queues(hub: Hub) -> None:
    send(hub, *numbers(0, 8))
    told: list[str] = []
    first = consume(hub, release_wait=SECONDS, on_assigned=told.append)
    second = consume(hub)
    assert eventually(lambda: len(first.assignment()) == len(second.assignment()) == 2)
    pack = next_pack(first)
    engine = first._core
    assert isinstance(engine, PushedEngine)
    keeper, member, done = engine._client.keeper, engine._member, threading.Event()
    closer = threading.Thread(target=first.close, args=(SECONDS,))
    closer.start()
    assert eventually(lambda: engine._left_at is not None)
    n = len(told)
    second.close()
    keeper.soon(member.rebalance)  # as the hub asks for it
    keeper.soon(done.set)
    assert done.wait(SECONDS)
    assert [f"dataproxy:T:{queue.queue_id}" for queue in member.readers] == [pack.partition]
    pack.confirm()
    closer.join(SECONDS)
    assert not closer.is_alive() and len(told) == n and first.stats().state == "closed"


def test_an_end_without_patience_gives_out_nothing_more(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    send(hub, *numbers(0, 300), queue=0)  # several frames: one is out, the others wait
    with consume(hub) as consumer:
        pack = next_pack(consumer)
        assert eventually(lambda: consumer.stats().packs.held > 1)
        engine = consumer._core
        assert isinstance(engine, PushedEngine)
        packs, found = engine._packs, []
        real = packs.expire

        def expire(*given: Any) -> None:
            real(*given)
            found.append(packs.take(consumer, 0))  # as another thread may, just now

        monkeypatch.setattr(packs, "expire", expire)
        engine.abandon()
        assert found == [None] and pack.code == CLOSED and consumer.stats().packs.held == 0
    assert balanced(consumer)


def test_a_consumer_is_abandoned_without_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    for name in ("keeper", "connections"):
        monkeypatch.setattr(f"dataproxy.rocketmq.network.{name}.join", lambda _thread, seconds: waits.append(seconds))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        consumer = Consumer(f"rocketmqs://127.0.0.1:{port}", group="g", topics=["T"], tls_verify="none")
        made, _ = silent.accept()
        with made:  # the handshake gets no answer
            consumer._driver.abandon()
            assert not any(waits) and consumer._state.ended.is_set()
    consumer.close()
    assert eventually(lambda: not any(one.is_alive() for one in consumer._threads))


def test_without_pushes_the_error_says_so_and_what_to_use() -> None:
    with RocketServer({"T": 2}) as server, Consumer(server.target, group="g", topics=["T"]) as consumer:
        with pytest.raises(GroupRefusedError) as caught:
            consumer.wait_ready(SECONDS)
        assert "does not push" in str(caught.value) and "dataproxy.rocketmq.PushConsumer" in str(caught.value.hint)
        assert caught.value.code == "NO_PUSH"
        with pytest.raises(GroupRefusedError):
            consumer.poll()
        assert consumer.assignment() == [] and "does not push" in consumer.stats().trouble
        assert all(b"CONSUME_PUSH" not in body for _, body in server.requests(34))


def test_a_broker_that_is_known_later_is_asked_whether_it_pushes_before_it_hears_of_the_member() -> None:
    with RocketServer({"TBW102": 0}) as server, Consumer(server.target, group="g", topics=["T"]) as consumer:
        assert eventually(lambda: consumer.stats().trouble == "topic 'T' does not exist")
        assert server.requests(353) == []
        server.queues["T"] = 2
        with pytest.raises(GroupRefusedError, match="does not push"):
            consumer.wait_ready(SECONDS)
        assert all(b"CONSUME_PUSH" not in body for _, body in server.requests(34))
    with RocketServer({"T": 2}) as server, RocketServer() as other:
        server.on[353] = lambda _client, _fields, _body: (0, {}, b"")
        with Consumer(server.target, group="g", topics=["T"], release_wait=0) as consumer:
            consumer.wait_ready(SECONDS)
            server.others["c"] = f"127.0.0.1:{other.port}"
            engine = consumer._core
            assert isinstance(engine, PushedEngine)
            engine._client.keeper.soon(engine._client.refresh)
            assert eventually(lambda: consumer._state.refusal is not None)
            with pytest.raises(GroupRefusedError, match=r"the broker c at .* does not push"):
                consumer.poll()
        assert any(b"CONSUME_PUSH" in body for _, body in server.requests(34))
        assert all(b"CONSUME_PUSH" not in body for _, body in other.requests(34))


def test_nobody_at_the_target_is_told_by_wait_ready(hub: Hub) -> None:
    with RocketServer({"T": 1}) as server:
        target = server.target
    with Consumer(target, group="g", topics=["T"], close_timeout=1) as consumer:
        with pytest.raises(TransportError, match=r"no broker of rocketmq://.* took this consumer within 0.3 s"):
            consumer.wait_ready(0.3)
        assert consumer.poll(0.01) is None
    with consume(hub, topics=["missing"]) as waits, pytest.raises(TransportError, match="'missing' does not exist"):
        waits.wait_ready(0.3)


def test_claims_that_a_hub_refuses_are_told_and_made_again(hub: Hub) -> None:
    send(hub, b"a")
    service = hub._rocketmq
    assert service is not None
    heartbeats = service.registry._heartbeats
    limits = heartbeats._limits
    service.run(lambda: setattr(heartbeats, "_limits", replace(limits, pushes=3)))
    with consume(hub) as consumer:
        assert eventually(lambda: "expected 3 at most" in consumer.stats().trouble)
        with pytest.raises(TransportError, match="names 4 queues that are to be pushed; expected 3 at most"):
            consumer.wait_ready(0.1)
        service.run(lambda: setattr(heartbeats, "_limits", limits))
        assert drain(consumer, 1) == [b"a"]
        consumer.wait_ready(SECONDS)
        assert consumer.stats().trouble == ""


@pytest.mark.parametrize("topics", [["missing", "T"], ["T", "missing"]])
def test_a_topic_that_does_not_exist_is_named_beside_one_that_does(hub: Hub, topics: list[str]) -> None:
    send(hub, b"a")
    with consume(hub, topics=topics) as consumer:
        assert eventually(lambda: consumer.stats().trouble == "topic 'missing' does not exist")
        assert drain(consumer, 1) == [b"a"]
        with pytest.raises(TransportError, match="'missing' does not exist"):
            consumer.wait_ready(0.1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("offsets", {"1:T:0": 28}), ("balance", "client"), ("prefetch_bytes", "1MiB"), ("not_found_wait", 0.1),
        ("heartbeat_interval", 5), ("master_retry_max", 5), ("register_retries", 2), ("register_retry_wait", 1),
        ("dns_interval", 20), ("tls_server_name", "x"), ("start", "end"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused_by_its_name(name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value}
    if name == "offsets":
        options["session"] = "s"
    if name == "tls_server_name":
        options["tls"] = True
    before = threading.active_count()
    with pytest.raises(ConfigError, match=f"^{name}.* has no meaning with rocketmq://") as caught:
        Consumer("rocketmq://127.0.0.1:1", group="g", topics=["T"], **options)
    assert caught.value.code == "NO_MEANING" and threading.active_count() == before


def test_a_consumer_for_which_there_is_no_thread_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_given: Any) -> threading.Thread:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("dataproxy.rocketmq.network.keeper.start_quiet", start)
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="can't start"):
        Consumer("rocketmq://127.0.0.1:1", group="g", topics=["T"])
    assert set(threading.enumerate()) <= before


def test_wrong_names_and_calls_are_refused(hub: Hub) -> None:
    secure = hub.rocketmq_target.replace("rocketmq:", "rocketmqs:")
    refused: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"topics": {"T": ["a b"]}}, ConfigError, "'a b' of 'T' is not a tag"),
        ({"topics": {"T": [""]}}, ConfigError, "'' of 'T' is not a tag"),
        ({"tls": False, "target": secure}, ConfigError, "tls=False does not go with rocketmqs://"),
        ({"topics": ["a b"]}, InvalidMessageError, "'a b' is not a name of a topic"),
        ({"group": "a b"}, InvalidMessageError, "'a b'"),
        ({"tls_ca": "x"}, ConfigError, "TLS"),
    ]
    for wrong, error, text in refused:
        with pytest.raises(error, match=text):
            Consumer(**{"target": hub.rocketmq_target, "group": "g", "topics": ["T"], **wrong})
    with consume(hub, topics=["1T"], group="1g") as consumer:
        for call in (consumer.available, lambda: consumer.assign([])):
            with pytest.raises(LocalProtocolError, match="have no meaning with rocketmq://"):
                call()
