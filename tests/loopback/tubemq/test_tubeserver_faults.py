"""Faults of the TubeMQ servers in plain Python, their ends and beginnings, and members that live through them."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataproxy.consumer.group.member import Life
from tests.loopback.tubemq.test_tubeserver import BEAT, COMMIT, GET, SEND, TAKE, beat, join
from tests.native import probe_tubemq as wire
from tests.support.rawclient import INDEX, Connection, Reader, RpcError, Sender, bodies
from tests.support.rawmember import Process, together
from tests.support.reference import tubemq as plain
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually

STANDBY = "org.apache.inlong.tubemq.corerpc.exception.StandbyException"

# --- faults


def test_a_code_in_the_place_of_an_answer(server: TubeServer, broker: Connection) -> None:
    server.put("one", b"a")
    reader = Reader(broker, "one", "g")
    reader.register()
    server.on(GET, ("code", 452, "slowly", {"minLimitTime": 700}), times=2)
    answers = [reader.get() for _ in range(3)]
    assert [(one["errCode"], one["errMsg"], one["minLimitTime"]) for one in answers[:2]] == [(452, b"slowly", 700)] * 2
    assert bodies(answers[2]) == [b"a"]
    server.on(COMMIT, ("code", 500, "no"), worked=True)
    assert reader.commit()["errCode"] == 500
    assert server.confirmed("g", "one", 0) == INDEX
    assert [call.code for call in server.calls] == [200, 452, 452, 200, 500]


def test_faults_wait_for_calls_of_their_kind(server: TubeServer, broker: Connection) -> None:
    readers = [Reader(broker, "three", "g", i) for i in range(3)]
    server.on(TAKE, ("code", 410, "first"), topic="three", partition=1, times=None)
    server.on(TAKE, ("code", 503, "second"), when=lambda request: request.partitionId == 2)
    server.on(TAKE, ("code", 401, "never"), topic="one", times=None)
    server.on("UnregisterRequestC2B", ("code", 500, "end"))
    assert [one.register().errCode for one in readers] == [200, 410, 503]
    assert [one.register().errCode for one in readers] == [200, 410, 200]
    assert [readers[0].unregister().errCode for _ in range(2)] == [500, 200]
    server.off()
    assert readers[1].register().errCode == 200
    for wrong in (("nothing", "drop"), (GET, "nothing"), (GET, ("code",)), (GET, ("hold", "x")), (GET, "drop", 0)):
        with pytest.raises(ValueError, match=r"expected|known"):
            server.on(*wrong)


def test_an_exception_in_the_place_of_an_answer(server: TubeServer, master: Connection) -> None:
    server.on("RegisterRequestC2M", ("exception", STANDBY, "is not master now"))
    with pytest.raises(RpcError, match="StandbyException: is not master now"):
        join(master, "a")
    assert join(master, "a").errCode == 200
    assert [call.code for call in server.calls] == [1, 200]


def test_a_call_without_an_answer(server: TubeServer, master: Connection) -> None:
    with Connection(server.broker_port, seconds=0.1) as broker:
        sender = Sender(master, broker, "one")
        server.on(SEND, "drop")
        server.on(SEND, "drop", worked=True)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                sender.send(0, b"m")
    assert eventually(lambda: [call.code for call in server.calls if call.method == SEND] == [0, 0])
    assert server.end("one") == INDEX  # one of the two is stored


def test_the_end_of_a_connection_in_the_place_of_an_answer(server: TubeServer, broker: Connection) -> None:
    reader = Reader(broker, "one", "g")
    reader.register()
    server.on(GET, "close")
    with pytest.raises(ConnectionError):
        reader.get()
    with Connection(server.broker_port) as other:
        reader.move(other)
        assert reader.get()["errCode"] == 404  # registrations are of clients, not of connections


def test_a_call_that_is_held_holds_those_behind_it(server: TubeServer, broker: Connection) -> None:
    server.put("three", b"a", partition=0)
    readers = [Reader(broker, "three", "g", i) for i in range(2)]
    for reader in readers:
        reader.register()
    go = threading.Event()
    server.on(GET, ("hold", go), partition=0)
    serials = [broker.post_data(GET, **reader.fields()) for reader in readers]
    assert eventually(lambda: server.held == 1)
    with Connection(server.broker_port) as other:
        readers[1].move(other)
        assert readers[1].get()["errCode"] == 404  # other connections go on
    assert [call.partition for call in server.calls if call.method == GET] == [1]
    go.set()
    assert [broker.answer_data(serial, GET)["errCode"] for serial in serials] == [200, 404]
    assert server.held == 0


def test_bytes_in_the_place_of_an_answer(server: TubeServer, broker: Connection) -> None:
    reader = Reader(broker, "one", "g")
    reader.register()
    wrong = {"success": True, "errCode": 200, "errMsg": b"mine", "messages": [], "currOffset": 7, "maxOffset": 8,
             "minLimitTime": 0, "escFlowCtrl": False, "currDataDlt": 0, "requireSlow": False}  # fmt: skip
    payload = plain.answered(17, wire.write("GetMessageResponseB2C", wrong))
    server.on(GET, ("reply", lambda serial: plain.cut(serial, payload)))
    server.on(GET, ("reply", b"no frame"))
    assert reader.get()["errMsg"] == b"mine"
    with pytest.raises(wire.ProbeError):
        reader.get()


def test_a_mangled_answer(server: TubeServer, broker: Connection) -> None:
    server.put("one", b"a")
    reader = Reader(broker, "one", "g")
    reader.register()

    def mangle(answer: Any) -> None:
        answer.messages[0].checkSum ^= 1

    server.on(GET, ("mangle", mangle))
    server.on(GET, ("mangle", lambda answer: type(answer)(success=True, errCode=200)))
    server.on(GET, ("mangle", lambda answer: answer.ClearField("errCode")))
    (message,) = reader.get()["messages"]
    assert message["checkSum"] != wire.checksum(message["payLoadData"])
    assert reader.get()["messages"] == []
    with pytest.raises(wire.ProbeError):
        reader.get()
    assert bodies(reader.get()) == [b"a"]


def test_a_mistake_of_the_server_ends_the_test() -> None:
    def mistake(answer: Any) -> Any:
        raise KeyError("mistake")

    def provoke() -> None:
        with TubeServer({"one": 1}) as server, Connection(server.broker_port) as broker:
            server.on(BEAT, ("mangle", mistake))
            with pytest.raises(ConnectionError):
                broker.ask(BEAT, clientId="c", groupName="g", readStatus=0)

    with pytest.raises(KeyError, match="mistake"):
        provoke()


# --- frames


def test_calls_that_cannot_be_read(server: TubeServer, broker: Connection) -> None:
    lacks = plain.called(2, 3, 17, 1000, b"")
    answers = [talk(server.broker_port, plain.cut(7, payload)) for payload in (lacks, b"\xff")]
    assert [one["status"] for one in answers] == [2, 2]
    old = plain.called(2, 2, 99, 1000, b"")
    assert talk(server.broker_port, plain.cut(7, old))["stackTrace"] == b"Unsupported method 99in service type 2!"
    later = plain.called(2, 4, 17, 1000, b"")
    assert b"UnknownProtocolException" in talk(server.broker_port, plain.cut(7, later))["exceptionName"]
    left_out = plain.called(1, 3, 7, 1000, b"")
    assert b"Unsupported" in talk(server.master_port, plain.cut(7, left_out))["exceptionName"]
    with pytest.raises(ConnectionError):
        talk(server.broker_port, struct.pack(">III", 1, 2, 3))
    wrong = {"clientId": "c", "groupName": "g", "readStatus": 0, "partitionInfo": ["nothing"]}
    with pytest.raises(RpcError, match="InvocationTargetException"):
        broker.ask(BEAT, **wrong)


def test_names_of_exceptions_follow_the_version_of_the_request(server: TubeServer) -> None:
    found = []
    for version in (1, 2, 3):
        server.on("CloseRequestC2M", ("exception", STANDBY, ""))
        request = plain.filled("CloseRequestC2M", {"clientId": "c", "groupName": "g"}).SerializeToString()
        answer = talk(server.master_port, plain.cut(7, plain.called(1, version, 6, 1000, request)))
        found.append(answer["exceptionName"].decode().removesuffix("corerpc.exception.StandbyException"))
    assert found == ["com.tencent.tubemq.", "com.apache.tubemq.", "org.apache.inlong.tubemq."]


def talk(port: int, data: bytes) -> dict[str, Any]:
    """Send bytes, byte by byte, and return the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=15) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(data)):
            connection.sendall(data[i : i + 1])
        received = b""
        while not (frames := plain.join(received)):
            part = connection.recv(1 << 16)
            if not part:
                raise ConnectionError("closed")
            received += part
    ((serial, payload),) = frames
    assert serial == 7
    return plain.split_answer(payload)


# --- ends and beginnings


def test_a_broker_that_stops_forgets_registrations_and_keeps_offsets(server: TubeServer, broker: Connection) -> None:
    for i in range(2):
        server.put("one", b"%d" % i)
    server.settings.pack_bytes = 1
    reader = Reader(broker, "one", "g")
    reader.register()
    assert bodies(reader.get()) == [b"0"]
    reader.commit()
    assert bodies(reader.get()) == [b"1"]
    port = server.broker_port
    server.stop_broker()
    with pytest.raises(ConnectionError):
        reader.get()
    with pytest.raises(ConnectionRefusedError):
        Connection(port)
    server.start_broker()
    server.start_broker()
    assert (server.broker_port, server.owner("g", "one", 0)) == (port, None)
    with Connection(port) as again:
        reader.move(again)
        assert reader.get()["errCode"] == 411
        assert reader.register().currOffset == INDEX
        assert bodies(reader.get()) == [b"1"]


def test_a_master_that_stops_forgets_everybody(server: TubeServer, master: Connection) -> None:
    join(master, "a")
    server.stop_master()
    with pytest.raises(ConnectionRefusedError):
        Connection(server.master_port)
    server.start_master()
    with Connection(server.master_port) as again:
        assert beat(again, "a").errCode == 411
        assert not join(again, "a", subscribeInfo=["a@g#1:127.0.0.1:1#one:0"]).notAllocated


def test_all_connections_end_at_once(server: TubeServer, master: Connection, broker: Connection) -> None:
    reader = Reader(broker, "one", "g")
    reader.register()
    join(master, "a")
    held = threading.Event()
    server.on(GET, ("hold", held))
    broker.post_data(GET, **reader.fields())
    assert eventually(lambda: server.held == 1)
    server.cut()
    assert server.held == 0
    with pytest.raises(ConnectionError):
        reader.get()
    with pytest.raises(ConnectionError):
        beat(master, "a")
    with Connection(server.master_port) as again:
        assert beat(again, "a").errCode == 200


def test_questions_are_answered_after_the_end() -> None:
    with TubeServer({"one": 1}) as server:
        server.put("one", b"a")
        assert server.target == f"tubemq://127.0.0.1:{server.master_port}"
    assert (server.end("one"), server.calls, server.members("g")) == (INDEX, [], [])
    with pytest.raises(ConnectionRefusedError):
        Connection(server.master_port)


# --- members


def shared(processes: list[Process], *counts: int) -> bool:
    """Tell whether all partitions are read, each process having so many."""
    held = [one.held for one in processes]
    return [len(one) for one in held] == list(counts) and len(set().union(*held)) == sum(counts)


@pytest.fixture
def pair(server: TubeServer) -> Iterator[list[Process]]:
    """Return two members of a group that share six partitions."""
    processes = [Process(server.master_port, "pair", i, {"group": ()}, heartbeat_s=0.05) for i in range(2)]
    together(processes, lambda: shared(processes, 3, 3))
    yield processes
    for one in processes:
        one.close()


def test_two_members_share_what_is_sent(server: TubeServer, pair: list[Process]) -> None:
    wanted = {b"%d" % i for i in range(60)}
    for body in wanted:
        server.put("group", body, partition=int(body) % 6)
    together(pair, lambda: wanted == {body for one in pair for body in one.bodies})
    assert sum(len(one.bodies) for one in pair) == len(wanted)
    assert {server.owner("pair", "group", i) for i in range(6)} == {one.client for one in pair}
    assert sorted(server.members("pair")) == sorted(one.client for one in pair)
    pair[0].member.close(0.0)
    together(pair, lambda: pair[0].member.life is Life.GONE and shared(pair[1:], 6))
    closing = [call.method for call in server.calls if call.client == pair[0].client and call.method != GET]
    assert closing[-4:] == ["UnregisterRequestC2B"] * 3 + ["CloseRequestC2M"]
    third = Process(server.master_port, "pair", 3, {"one": ()})
    together([third], lambda: third.refusals == [425])
    third.close()


def end_broker(server: TubeServer) -> None:
    """Crash the broker and start it again."""
    server.stop_broker()
    server.start_broker()


def end_master(server: TubeServer) -> None:
    """Crash the master and start it again."""
    server.stop_master()
    server.start_master()


def lose_heartbeats(server: TubeServer) -> None:
    """Let two heartbeats fail that the master has taken, and say of a third one that it knows nobody."""
    server.on("HeartRequestC2M", "close", times=2, worked=True)
    server.on("HeartRequestC2M", ("code", 411, "unknown"))


@pytest.mark.parametrize("end", [end_broker, end_master, lose_heartbeats, TubeServer.cut])
def test_two_members_go_on_after_a_fault(
    server: TubeServer, pair: list[Process], end: Callable[[TubeServer], None]
) -> None:
    numbers = itertools.count()

    def send() -> bytes:
        number = next(numbers)
        server.put("group", b"%d" % number, partition=number % 6)
        return b"%d" % number

    before = [send() for _ in range(12)]
    together(pair, lambda: set(before) == {body for one in pair for body in one.bodies})
    end(server)
    n = len(server.calls)
    together(pair, lambda: "HeartRequestC2M" in {call.method for call in server.calls[n:] if call.code == 200})
    together(pair, lambda: len(set().union(*(one.held for one in pair))) == 6)
    after = [send() for _ in range(12)]
    together(pair, lambda: {*before, *after} == {body for one in pair for body in one.bodies})
    assert sorted(body for one in pair for body in one.bodies) == sorted({*before, *after})
