"""Masters that refuse, stand by, speak another protocol, or are several."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dataproxy.consumer import driver
from dataproxy.errors import ConfigError, DataProxyError, GroupRefusedError, TransportError
from tests.support.consumers import Opener, drain
from tests.support.tubeserver import TubeServer
from tests.support.waiting import eventually

STANDBY = "org.apache.inlong.tubemq.corerpc.exception.StandbyException"
JOIN, BEAT = "RegisterRequestC2M", "HeartRequestC2M"


@contextlib.contextmanager
def talker(data: bytes) -> Iterator[int]:
    """Answer everybody who connects with the same bytes, and hang up; return the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    connection.recv(1 << 16)
                    connection.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield port
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(30)


# --- refusals


@pytest.mark.parametrize("code", [424, 425, 426, 427, 428, 429, 430, 431, 450, 455])
def test_a_refusal_is_raised_until_a_master_takes_the_consumer(tube: TubeServer, opened: Opener, code: int) -> None:
    tube.put("one", b"a")
    tube.on(JOIN, ("code", code, "because"), times=None)
    consumer = opened()
    for call in (lambda: consumer.wait_ready(30), lambda: consumer.poll(30), lambda: next(iter(consumer))):
        with pytest.raises(GroupRefusedError, match=f"code {code}.*because") as caught:
            call()
        assert caught.value.details == {"code": code, "text": "because"}
    assert consumer.stats().state == "joining"
    tube.off()
    assert eventually(lambda: consumer.stats().state == "member")
    consumer.wait_ready()
    assert drain(consumer, 1) == [b"a"]


def test_real_refusals(tube: TubeServer, opened: Opener) -> None:
    tube.settings.groups = ["g"]
    opened({"one": ["a"]}).wait_ready()
    cases = ((450, "one", "other"), (425, "three", "g"), (426, {"one": ["b"]}, "g"), (431, "no", "g"))
    for code, topics, group in cases:
        with pytest.raises(GroupRefusedError) as caught:
            opened(topics, group).wait_ready()
        assert caught.value.details["code"] == code


def test_a_member_that_is_refused_later(tube: TubeServer, opened: Opener) -> None:
    consumer = opened()
    consumer.wait_ready()
    assert eventually(consumer.assignment)
    tube.on(JOIN, ("code", 450, "no more"), times=None)
    tube.stop_master()
    tube.start_master()
    with pytest.raises(GroupRefusedError):
        consumer.poll(30)
    with pytest.raises(GroupRefusedError):
        consumer.wait_ready(30)
    assert eventually(lambda: not consumer.assignment())
    tube.off()
    tube.put("one", b"a")
    assert eventually(lambda: consumer.stats().state == "member")
    consumer.wait_ready()
    assert drain(consumer, 1) == [b"a"]


def test_a_consumer_closes_while_it_is_refused(
    tube: TubeServer, opened: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not wait for close_timeout: nobody has to be told."""
    tube.on(JOIN, ("code", 450, "no"), times=None)
    consumer = opened()
    with pytest.raises(GroupRefusedError):
        consumer.wait_ready()
    with caplog.at_level("WARNING"):
        consumer.close()
    assert "before its servers had answered" not in caplog.text
    with pytest.raises(DataProxyError) as caught:
        consumer.wait_ready()
    assert caught.value.code == "CLOSED"


# --- other masters


@pytest.mark.parametrize("method", [JOIN, BEAT])
def test_a_master_on_standby(tube: TubeServer, opened: Opener, method: str) -> None:
    tube.put("one", b"a")
    tube.on(method, ("exception", STANDBY, "is not master now"), times=3)
    consumer = opened()
    assert eventually(lambda: "Standby" in consumer.stats().trouble)
    assert drain(consumer, 1) == [b"a"]


WRONG = {
    "web": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "noise": random.Random(3).randbytes(3000),
    "nothing": b"",
}


@pytest.mark.parametrize("kind", WRONG)
def test_the_master_is_another_server(opened: Opener, kind: str) -> None:
    with talker(WRONG[kind]) as port:
        consumer = opened(target=f"tubemq://127.0.0.1:{port}")
        assert eventually(lambda: consumer.stats().trouble)
        with pytest.raises(TransportError, match=r"protocol|ended") as caught:
            consumer.wait_ready(0.2)
        assert caught.value.code == "NO_MASTER"
        consumer.close()


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("seed", range(3))
def test_one_of_several_masters_works(tube: TubeServer, opened: Opener, kind: str, seed: int) -> None:
    tube.put("one", b"a")
    with talker(WRONG[kind]) as port, socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # nobody listens
        ports = [port, bound.getsockname()[1], tube.master_port]
        random.Random(seed).shuffle(ports)
        consumer = opened(target=[f"127.0.0.1:{one}" for one in ports])
        assert drain(consumer, 1) == [b"a"]
        consumer.close()
    assert tube.members("g") == []


@pytest.mark.parametrize("method", [JOIN, BEAT])
@pytest.mark.parametrize("code", [400, 411, 415, 500, 503])
def test_other_codes_of_a_master(tube: TubeServer, opened: Opener, method: str, code: int) -> None:
    tube.put("one", b"a")
    tube.on(method, ("code", code, "hm"), times=3)
    assert drain(opened(), 1) == [b"a"]


def test_a_name_without_an_address(opened: Opener) -> None:
    consumer = opened(target="tubemq://no-such-host.invalid:8715")
    assert eventually(lambda: "no address" in consumer.stats().trouble)
    with pytest.raises(TransportError, match="no address"):
        consumer.wait_ready(0)
    consumer.close()


def test_masters_that_nobody_can_reach_are_in_the_log(
    opened: Opener, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else tells an application that only polls why there are no packs."""
    monkeypatch.setattr(driver, "_PATIENT_S", 0.0)
    with caplog.at_level("WARNING", logger="dataproxy.consumer"):
        consumer = opened(target="tubemq://127.0.0.1:1")
        assert eventually(lambda: any("no master has given a good answer" in text for text in caplog.messages))
        assert consumer.poll(0) is None
    assert any("Connection refused" in text for text in caplog.messages)
    assert eventually(lambda: consumer.stats().connects > 1)
    assert len(caplog.messages) == 1  # and no more of it for a minute


@pytest.mark.parametrize(
    ("address", "why"), [("no-such-host.invalid:8123", "no address"), ("127.0.0.1:1", "Connection refused")]
)
def test_brokers_that_nobody_can_reach_are_in_the_log(
    tube: TubeServer, opened: Opener, caplog: pytest.LogCaptureFixture, address: str, why: str
) -> None:
    """As where brokers tell masters addresses that only they know."""
    tube.put("three", b"a")

    def elsewhere(answer: Any) -> None:
        if answer.HasField("event"):
            moved = [re.sub(r"#1:[^#]+#", f"#1:{address}#", text) for text in answer.event.subscribeInfo]
            del answer.event.subscribeInfo[:]
            answer.event.subscribeInfo.extend(moved)

    tube.on(BEAT, ("mangle", elsewhere), times=None)
    with caplog.at_level("WARNING", logger="dataproxy.consumer"):
        consumer = opened("three", register_retries=1)
        assert eventually(lambda: any("does not give partition" in text for text in caplog.messages))
        consumer.close()
    assert any(why in text for text in caplog.messages)
    assert len(caplog.messages) == 1  # once for all partitions of a broker


def test_partitions_of_other_topics_are_not_read(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"not asked for")
    tube.put("three", b"a")

    def other(answer: Any) -> None:
        if answer.HasField("event"):
            answer.event.subscribeInfo.append(answer.event.subscribeInfo[0].replace("#three:", "#one:"))

    tube.on(BEAT, ("mangle", other), times=None)
    consumer = opened("three")
    assert drain(consumer, 1) == [b"a"]
    assert consumer.poll(0.1) is None
    assert eventually(lambda: len(consumer.assignment()) == 3)
    assert {key.split(":")[1] for key in consumer.assignment()} == {"three"}


def test_broken_answers_of_a_master(tube: TubeServer, opened: Opener) -> None:
    tube.put("one", b"a")
    tube.on(JOIN, ("mangle", lambda answer: answer.ClearField("errCode")))
    tube.on(BEAT, ("mangle", lambda answer: answer.ClearField("errCode")))

    def spoil(answer: object) -> None:
        answer.event.rebalanceId, answer.event.opType, answer.event.status = 7, 10, 0
        answer.event.subscribeInfo.extend(["nonsense", "", "a@b#c", "x@y#1:127.0.0.1:99999#one:0"])

    tube.on(BEAT, ("mangle", spoil))
    tube.on(BEAT, ("mangle", lambda answer: setattr(answer, "groupFlowControlInfo", "{")))
    assert drain(opened(), 1) == [b"a"]


def test_texts_that_are_no_targets() -> None:
    from dataproxy.consumer.consumer import Consumer

    for target in ("", "http://a", "tubemq://", "tubemq://a:0", "tubemq://a:99999", 5, [], [5], b"tubemq://a", None):
        with pytest.raises(ConfigError):
            Consumer(target, group="g", topics="one")
