"""Brokers whose names have no address: they are told, and everything else goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal

import pytest

from dataproxy import Producer
from dataproxy.errors import DeliveryExpired, TransportError
from dataproxy.producer.tubemq.addresses import BrokerAddresses
from dataproxy.wire.tubemq.texts import Broker
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS, eventually

NOWHERE = "nosuch.invalid"
QUICK: dict[str, Any] = {
    "retry_backoff": 0.01,
    "reconnect_backoff": 0.01,
    "reconnect_backoff_max": 0.05,
    "discovery_interval": 1.0,
}


def renamed(number: int, host: str) -> Callable[[Any], None]:
    """Return what gives a broker another host in a master's answers."""

    def mangle(answer: Any) -> None:
        if answer.brokerInfos:
            broker = Broker.read(answer.brokerInfos[number])
            answer.brokerInfos[number] = str(broker._replace(host=host))
            answer.brokerCheckSum = 1  # of another list than the true one

    return mangle


def let_masters_say(tube: TubeServer, number: int, host: str) -> None:
    for method in ("RegisterRequestP2M", "HeartRequestP2M"):
        tube.on(method, ("mangle", renamed(number, host)), times=None)


@pytest.mark.parametrize("ordering", ["none", "key"])
def test_messages_wait_for_a_broker_without_an_address(
    tube: TubeServer, ordering: Literal["none", "key"], caplog: pytest.LogCaptureFixture
) -> None:
    let_masters_say(tube, 0, NOWHERE)
    with caplog.at_level(logging.WARNING), Producer(tube.target, **QUICK, ordering=ordering) as producer:
        delivery = producer.send("one", b"x", key="k" if ordering == "key" else None)
        assert eventually(lambda: NOWHERE in str(producer.report().last_error))
        tube.off()
        delivery.result(SECONDS)
        producer.send("three", b"new topic").result(SECONDS)
    said = [text for text in caplog.messages if text.startswith("broker 1 cannot be used: no address found for")]
    assert len(said) == 1


def test_a_message_whose_time_is_over_names_the_broker(tube: TubeServer) -> None:
    let_masters_say(tube, 0, NOWHERE)
    producer = Producer(tube.target, **QUICK, delivery_timeout=0.5)
    with pytest.raises(DeliveryExpired, match=f"broker 1 cannot be used: .*{NOWHERE}"):
        producer.send("one", b"x").result(SECONDS)
    producer.close(0)


def test_other_brokers_take_the_messages() -> None:
    with TubeServer({"t": 2}, more_brokers=1) as tube:
        let_masters_say(tube, 1, NOWHERE)
        with Producer(tube.target, **QUICK) as producer:
            for _ in range(50):
                producer.send_nowait("t", b"x")
            assert producer.flush(SECONDS).delivered == 50
        assert {one.broker for one in tube.stored("t")} == {1}


def test_a_broker_that_has_no_address_any_more_keeps_the_one_it_had() -> None:
    now = [0.0]
    addresses = BrokerAddresses(lambda: now[0])
    good, bad = Broker(1, "localhost", 8123), Broker(2, NOWHERE, 8123)
    addresses.look_up([good, bad, Broker(3, "127.0.0.1", 8123)])
    assert addresses.of(good)
    assert not addresses.fault(good)
    assert addresses.of(bad) == []
    assert NOWHERE in addresses.fault(bad)
    before = addresses.of(good)
    now[0] = 61.0
    addresses._found = lambda endpoint: (_ for _ in ()).throw(OSError("no name service"))  # type: ignore[method-assign]
    addresses.look_up([good])
    assert addresses.of(good) == before
    assert addresses.of(Broker(3, "127.0.0.1", 8123)) == []


def test_waiting_for_a_connection_without_a_topic_says_what_to_do(tube: TubeServer) -> None:
    with Producer(tube.target) as producer:
        with pytest.raises(TransportError, match="no broker was reached") as caught:
            producer.wait_ready(0.05)
        assert "stream(TOPIC)" in caught.value.hint
        producer.stream("one")
        producer.wait_ready(SECONDS)


def test_many_topics_that_are_not_there_are_told_in_few_words(tube: TubeServer) -> None:
    with Producer(tube.target, **QUICK) as producer:
        for number in range(30):
            producer.stream(f"gone{number:02}")
        assert eventually(lambda: "'gone04' and 25 more" in str(producer.report().last_error))


def test_what_a_master_says_is_shown_with_escapes_and_in_parts(tube: TubeServer) -> None:
    said = "\x1b[31m" + "y" * 100_000
    for action in (("exception", "java.io.IOException", said), ("code", 500, said)):
        tube.on("RegisterRequestP2M", action)
        with pytest.raises(Exception, match=r"\\x1b\[31myyy") as caught:
            Producer(tube.target)
        assert len(str(caught.value)) < 1000
