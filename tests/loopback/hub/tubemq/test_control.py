"""Calls of control at a hub: who answers, which topics there are, and how the port is opened and closed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dataproxy import Producer
from dataproxy.errors import ClosedError, ConfigError, HubError
from dataproxy.hub import Hub, listeners
from dataproxy.hub.tubemq.topics import MOST_NAMED
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker, Topic
from tests.support.rawclient import Connection, Reader, RpcError
from tests.support.waiting import SECONDS, eventually

Raw = Callable[[Hub], Connection]
Start = Callable[..., Hub]
PRODUCER = {"hostName": "127.0.0.1", "clientId": "p"}


def topics_of(connection: Connection, *names: str) -> list[Topic]:
    """Return where topics take messages, by the word of the master."""
    connection.ask("RegisterRequestP2M", brokerCheckSum=-1, topicList=[], **PRODUCER)
    answer = connection.ask("HeartRequestP2M", brokerCheckSum=-1, topicList=list(names), **PRODUCER)
    assert answer.errCode == 200, answer
    return [Topic.read(text) for text in answer.topicInfos]


def test_one_port_is_master_and_broker(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    answer = connection.ask("RegisterRequestP2M", brokerCheckSum=-1, topicList=["one"], **PRODUCER)
    assert [Broker.read(text) for text in answer.brokerInfos] == [Broker(1, "127.0.0.1", hub.tubemq_port)]
    assert hub.tubemq_target == f"tubemq://127.0.0.1:{hub.tubemq_port}"
    reader = Reader(connection, "one", "readers", 2)
    assert reader.register(0).errCode == 200
    assert Reader(connection, "one", "readers", 2).register(0).errCode == 410
    assert connection.ask("HeartBeatRequestC2B", readStatus=0, **reader.heartbeat()).hasPartFailure is False
    assert reader.unregister().errCode == 200
    assert connection.ask("CloseRequestP2M", clientId="p").errCode == 200


def test_a_topic_begins_when_a_client_names_it(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    (found,) = topics_of(connection, "new")
    assert (found.name, found.parts[0].partitions) == ("new", 3)
    assert topics_of(connection, "a,b", "c d", "", "e&f", "t" * 256) == []
    assert [one.name for one in topics_of(connection, *(f"t{i}" for i in range(MOST_NAMED)))] == sorted(
        f"t{i}" for i in range(MOST_NAMED // 2 - 1)
    ), "half of what there may be, as others leave all"


def test_groups_of_other_producers_are_topics(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    with Producer(hub.target) as producer:
        producer.send("stream", b"x", group_id="inlong").result(SECONDS)
    layout = hub._tubemq.layout
    assert eventually(lambda: not layout.missing({"inlong"}))
    (found,) = topics_of(connection, "inlong")
    assert found.parts[0].partitions == 3
    reader = Reader(connection, "inlong", "readers", next(one.partition for one in hub.records("inlong")))
    answer = reader.register(0)
    assert (answer.errCode, answer.currOffset, answer.maxOffset) == (200, 0, 28)


def test_topics_of_a_store_are_there_at_the_start(start_hub: Start, tmp_path: Path, raw: Raw) -> None:
    first = start_hub(tmp_path / "s", partitions=4, tubemq_port=0)
    with Producer(first.tubemq_target) as producer:
        producer.stream("kept").send_batch([b"%d" % i for i in range(8)]).result(SECONDS)
    first.close()
    again = start_hub(tmp_path / "s", partitions=2, tubemq_port=0)
    (found,) = topics_of(raw(again), "kept")
    assert found.parts[0].partitions == 4


def test_the_option_topics_says_what_there_is(start_hub: Start, raw: Raw) -> None:
    connection = raw(start_hub(tubemq_port=0, topics=["one/stream", "two"]))
    assert [one.name for one in topics_of(connection, "one", "two", "three")] == ["one", "two"]
    registration = {"clientId": "c", "groupName": "g", "hostName": "h", "topicList": ["three"], "requireBound": False}
    answer = connection.ask("RegisterRequestC2M", notAllocated=True, **registration)
    assert answer.errCode == 431


@pytest.mark.parametrize("method", [0, 7, 11, 19, 99, -1])
def test_other_methods_are_refused_as_by_a_broker(hub: Hub, method: int) -> None:
    with Connection(hub.tubemq_port) as connection:
        from tests.support import rawclient

        rawclient.METHODS["Nothing"] = (method, 2, "CloseResponseM2P")
        try:
            serial = connection._post("Nothing", messages.CloseRequestP2M(clientId="x").SerializeToString())
            with pytest.raises(RpcError, match=f"Unsupported method {method}in service type 2"):
                connection.answer(serial, "Nothing")
        finally:
            del rawclient.METHODS["Nothing"]


def test_functions_run_on_the_thread_that_owns_the_master(hub: Hub) -> None:
    service = hub._tubemq
    assert service is not None
    found = service.run(lambda: (threading.current_thread().name, service.run(service.layout.brokers)))
    assert found == ("dataproxy-hub-tubemq", [Broker(1, "127.0.0.1", hub.tubemq_port)])
    with pytest.raises(ZeroDivisionError):
        service.run(lambda: 1 // 0)
    hub.close()
    with pytest.raises(ClosedError, match="the hub is closed"):
        service.run(lambda: None)
    assert not any(one.name == "dataproxy-hub-tubemq" for one in threading.enumerate())


def test_times_follow_the_hubs_clock(hub: Hub, raw: Raw) -> None:
    connection = raw(hub)
    connection.ask("RegisterRequestP2M", brokerCheckSum=-1, topicList=[], **PRODUCER)
    service = hub._tubemq
    assert service.run(lambda: service.clients.count("producer")) == 1
    hub._core.advance_clock(60.0)
    assert eventually(lambda: service.run(lambda: service.clients.count("producer")) == 0)


def test_without_the_option_there_is_no_port(start_hub: Start) -> None:
    hub = start_hub()
    assert (hub.tubemq_port, hub.tubemq_listener, hub._tubemq) == (-1, None, None)
    with pytest.raises(HubError, match="no port for TubeMQ"):
        _ = hub.tubemq_target


def test_a_port_that_is_taken_is_named(start_hub: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HubError, match=rf"the port of TubeMQ cannot listen on 127\.0\.0\.1:{port}") as info:
            start_hub(tubemq_port=port)
    assert info.value.code == "LISTEN"
    with pytest.raises(ConfigError, match="tubemq_port"):
        start_hub(tubemq_port=65536)


def test_without_protobuf_nothing_is_opened(start_hub: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "dataproxy.wire.tubemq.messages", None)
    with pytest.raises(HubError, match="the port of TubeMQ needs a package"):
        start_hub(tmp_path / "s", tubemq_port=0)
    assert not (tmp_path / "s").exists()


def test_the_listener_can_be_killed_and_restarted(hub: Hub) -> None:
    listener = hub.tubemq_listener
    assert listener is not None
    assert (listener.protocol, listener.target, listener.listens) == ("tubemq", hub.tubemq_target, True)
    with Producer(hub.tubemq_target) as producer:
        producer.send("one", b"before").result(SECONDS)
        listener.kill()
        with pytest.raises(ConnectionRefusedError):
            Connection(hub.tubemq_port)
        late = producer.send("one", b"behind")
        listener.restart()
        late.result(SECONDS)
    assert {one.body for one in hub.records("one")} == {b"before", b"behind"}


def test_nodes_are_the_listeners_of_dataproxy(start_hub: Start, raw: Raw) -> None:
    hub = start_hub(nodes=2, tubemq_port=0)
    assert [node.tcp.protocol for node in hub.nodes] == ["tcp", "tcp"]
    assert isinstance(hub.nodes[0].http, listeners.Listener)
    hub.nodes[0].drain()
    hub.nodes[0].kill()
    assert topics_of(raw(hub), "one") != []
    with Producer(hub.tubemq_target) as producer:
        producer.send("one", b"x").result(SECONDS)
