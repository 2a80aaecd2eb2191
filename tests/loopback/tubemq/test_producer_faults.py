"""A producer of TubeMQ topics among masters and brokers that refuse, fail, vanish and come back."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from dataproxy import Producer
from dataproxy.errors import DeliveryExpired, DeliveryFailed, DiscoveryError
from tests.support.reference.tubemq import TOKEN
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS, eventually

SEND = "SendMessageRequestP2B"
HEARTBEAT = "HeartRequestP2M"
REGISTER = "RegisterRequestP2M"
QUICK = {"retry_backoff": 0.01, "reconnect_backoff": 0.01, "reconnect_backoff_max": 0.05, "discovery_interval": 1.0}


def quick(tube: TubeServer, **options: object) -> Producer:
    return Producer(tube.target, **{**QUICK, **options})


@pytest.fixture
def two() -> Iterator[TubeServer]:
    with TubeServer({"t": 2}, more_brokers=1) as server:
        yield server


@pytest.mark.parametrize("code", [403, 415, 419, 503])
def test_what_was_not_stored_is_sent_again_and_stored_once(two: TubeServer, code: int) -> None:
    two.on(SEND, ("code", code, "not now"), times=2)
    with quick(two) as producer:
        delivered = producer.send("t", b"x").result(SECONDS)
    assert delivered.attempts == 3
    assert [one.body for one in two.stored("t")] == [b"x"]
    assert producer.stats().duplicates_possible == 0


def test_a_resend_goes_to_another_partition(tube: TubeServer) -> None:
    tube.on(SEND, ("code", 419, "full"), times=2)
    with quick(tube) as producer:
        producer.send("three", b"x").result(SECONDS)
    partitions = [call.partition for call in tube.calls if call.method == SEND]
    assert len(set(partitions)) == 3


def test_a_resend_of_a_key_stays_in_its_partition_and_in_order(tube: TubeServer) -> None:
    tube.on(SEND, ("code", 419, "full"), times=3)
    with quick(tube, ordering="key") as producer:
        for i in range(20):
            producer.send_nowait("three", b"%d" % i, key=b"k")
    assert [one.body for one in tube.stored("three")] == [b"%d" % i for i in range(20)]
    assert len({call.partition for call in tube.calls if call.method == SEND}) == 1


@pytest.mark.parametrize(("code", "name"), [(400, "TUBEMQ_BAD_REQUEST"), (401, "TUBEMQ_UNAUTHORIZED")])
def test_what_no_retry_helps_fails_at_once(tube: TubeServer, code: int, name: str) -> None:
    tube.on(SEND, ("code", code, "never"))
    producer = quick(tube)
    with pytest.raises(DeliveryFailed, match="never") as caught:
        producer.send("one", b"x", attrs={"$msgType$": "a", "k": "v"}).result(SECONDS)
    assert caught.value.code == 1000 + code
    assert name in str(caught.value)
    assert not caught.value.details["maybe_delivered"]
    (left,) = producer.undelivered()
    assert (left.stream_id, left.body, left.attrs) == ("one", b"x", {"$msgType$": "a", "k": "v"})
    producer.close()


def test_a_broker_that_fails_may_have_stored(tube: TubeServer) -> None:
    tube.on(SEND, ("exception", "java.lang.OutOfMemoryError", "heap"), worked=True)
    with quick(tube) as producer:
        assert producer.send("one", b"x").result(SECONDS).attempts == 2
        assert producer.stats().duplicates_possible == 1
    assert [one.body for one in tube.stored("one")] == [b"x", b"x"]


def test_a_failure_without_end_is_told_as_possibly_stored(tube: TubeServer) -> None:
    tube.on(SEND, ("code", 500, "disk"), times=None)
    producer = quick(tube, delivery_timeout=0.6)
    with pytest.raises(DeliveryExpired, match="disk") as caught:
        producer.send("one", b"x").result(SECONDS)
    assert caught.value.details["maybe_delivered"]
    producer.close()


def test_an_answer_that_does_not_come_is_asked_for_again(two: TubeServer) -> None:
    two.on(SEND, "drop")
    with quick(two, ack_timeout=0.3) as producer:
        assert producer.send("t", b"x").result(SECONDS).attempts == 2


@pytest.mark.parametrize("ordering", ["none", "key"])
def test_an_answer_that_claims_more_than_comes_ends_its_connection(tube: TubeServer, ordering: str) -> None:
    """All later answers would be taken for a part of it."""

    def claims(serial: int) -> bytes:
        return struct.pack(">IIII", TOKEN, serial, 3000, 60_000) + b"x" * 100

    tube.on(SEND, ("reply", claims))
    with quick(tube, ack_timeout=0.3, delivery_timeout=20, ordering=ordering) as producer:
        for i in range(20):
            producer.send_nowait("three", b"%d" % i, key="k" if ordering == "key" else None)
        assert producer.flush(SECONDS).delivered == 20
        assert max(one.connects for one in producer.stats().connections) == 2


def test_connections_that_end_lose_nothing(two: TubeServer) -> None:
    with quick(two) as producer:
        for i in range(2_000):
            producer.send_nowait("t", b"%d" % i)
            if i % 400 == 399:
                two.cut()
        assert producer.flush(SECONDS).delivered == 2_000
    assert {one.body for one in two.stored("t")} == {b"%d" % i for i in range(2_000)}


def test_a_broker_that_vanishes_is_done_without_and_used_again(two: TubeServer) -> None:
    with quick(two) as producer:
        producer.send("t", b"first").result(SECONDS)
        two.stop_broker(1)
        for i in range(200):
            producer.send_nowait("t", b"%d" % i)
        assert producer.flush(SECONDS).delivered == 201
        two.start_broker(1)
        assert eventually(
            lambda: producer.send("t", b"again").result(SECONDS).node == f"127.0.0.1:{two._at_brokers[1].port}"
        )
    assert {b"%d" % i for i in range(200)} <= {one.body for one in two.stored("t")}


def test_a_topic_that_appears_takes_the_messages_that_waited(tube: TubeServer) -> None:
    with quick(tube) as producer:
        waiting = producer.send("late", b"x")
        assert eventually(lambda: "'late'" in str(producer.report().last_error))
        assert producer.send("one", b"y").result(SECONDS)
        tube.open_topic("late", 2)
        assert waiting.result(SECONDS)
    assert [one.body for one in tube.stored("late")] == [b"x"]


def test_a_topic_that_nobody_has_is_named_in_the_result(tube: TubeServer) -> None:
    producer = quick(tube, delivery_timeout=0.5)
    with pytest.raises(DeliveryExpired, match="'nowhere'"):
        producer.send("nowhere", b"x").result(SECONDS)
    producer.close()


def test_a_topic_that_is_closed_and_opened_again(tube: TubeServer) -> None:
    with quick(tube) as producer:
        producer.send("one", b"1").result(SECONDS)
        tube.settings.closed = ("one",)
        tube.on(SEND, ("code", 403, "closed"), times=1)
        waiting = producer.send("one", b"2")
        assert eventually(lambda: "'one'" in str(producer.report().last_error))
        tube.settings.closed = ()
        assert waiting.result(SECONDS)
    assert [one.body for one in tube.stored("one")] == [b"1", b"2"]


def test_new_partitions_are_used(tube: TubeServer) -> None:
    with quick(tube) as producer:
        producer.send("one", b"x").result(SECONDS)
        tube.open_topic("one", 4)

        def spread() -> bool:
            for _ in range(8):
                producer.send("one", b"y").result(SECONDS)
            return {one.partition for one in tube.stored("one")} == {0, 1, 2, 3}

        assert eventually(spread)


def test_a_master_that_forgets_is_told_again(tube: TubeServer) -> None:
    with quick(tube) as producer:
        producer.send("one", b"x").result(SECONDS)
        tube.on(HEARTBEAT, ("code", 411, "the client may be timeout"))
        producer.send("three", b"y").result(SECONDS)
        methods = [call.method for call in tube.calls]
        assert methods.count(REGISTER) == 2


def test_messages_flow_while_no_master_answers(tube: TubeServer) -> None:
    with quick(tube) as producer:
        producer.send("one", b"x").result(SECONDS)
        tube.stop_master()
        for i in range(50):
            producer.send("one", b"%d" % i).result(SECONDS)
        new = producer.send("three", b"new")
        assert eventually(lambda: "no master" in str(producer.report().last_error))
        tube.start_master()
        assert new.result(SECONDS)
    assert len(tube.stored("one")) == 51


def test_the_next_master_is_asked(tube: TubeServer) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        target = f"tubemq://127.0.0.1:{nobody.getsockname()[1]},127.0.0.1:{tube.master_port}"
        with Producer(target) as producer:
            assert producer.send("one", b"x").result(SECONDS)


def test_a_standby_master_is_passed_over(tube: TubeServer) -> None:
    tube.on(REGISTER, ("exception", "org.apache.inlong.tubemq.corebase.exception.StandbyException", "standby"))
    with pytest.raises(DiscoveryError, match="StandbyException"):
        Producer(tube.target)
    with Producer(tube.target, start="lazy") as producer:
        assert producer.send("one", b"x").result(SECONDS)


def test_no_master_is_an_error_that_names_all(tube: TubeServer) -> None:
    target = tube.target
    tube.stop_master()
    with pytest.raises(DiscoveryError, match="no master") as caught:
        Producer(target)
    assert str(tube.master_port) in str(caught.value)
    assert "lazy" in caught.value.hint


def test_a_web_server_is_no_master() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(DiscoveryError, match="48545450") as caught:
            Producer(f"tubemq://127.0.0.1:{listener.getsockname()[1]}", manager_timeout=5)
        thread.join()
    assert "web server" in caught.value.hint


def test_tokens_are_those_of_the_master(tube: TubeServer) -> None:
    seen: list[int] = []
    tube.on(SEND, "drop", times=1, when=lambda request: seen.append(request.authInfo.visitAuthorizedToken) or False)
    with quick(tube) as producer:
        producer.send("one", b"x").result(SECONDS)
    assert seen == [1_700_000_000_000]


def test_a_refused_token_is_asked_for_again(tube: TubeServer) -> None:
    with quick(tube, discovery_interval=60.0) as producer:
        producer.send("one", b"x").result(SECONDS)
        before = [call.method for call in tube.calls].count(HEARTBEAT)
        tube.on(SEND, ("code", 415, "token"))
        producer.send("one", b"y").result(SECONDS)
        assert eventually(lambda: [call.method for call in tube.calls].count(HEARTBEAT) > before)


def test_what_is_not_sent_at_the_end_is_told(tube: TubeServer) -> None:
    producer = quick(tube)
    producer.send("one", b"x").result(SECONDS)
    tube.on(SEND, "drop", times=None)
    for i in range(20):
        producer.send_nowait("one", b"%d" % i)
    report = producer.close(0.3)
    assert (report.accepted, report.delivered, report.failed) == (21, 1, 20)
    left = list(producer.undelivered())
    assert {one.body for one in left} == {b"%d" % i for i in range(20)}
    assert all(one.error.details["maybe_delivered"] for one in left)
