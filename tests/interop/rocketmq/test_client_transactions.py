"""Transactions of our producer at RocketMQ's own broker."""

from __future__ import annotations

import threading
import time

import pytest

from dataproxy.rocketmq import PullConsumer, ReceivedMessage, TransactionProducer
from tests.support.tubekit import RocketServers

pytestmark = pytest.mark.timeout(600)  # Java's client takes its time to start


def read(target: str, topic: str, seconds: float) -> list[bytes]:
    with PullConsumer(target, "transaction_readers") as consumer:
        consumer.assign(dict.fromkeys(consumer.queues(topic), 0))
        found, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            found += [one.body for one in consumer.poll(0.5)]
        return sorted(found)


def test_commit_rollback_and_check(rocketmq: RocketServers) -> None:
    target, checked = f"rocketmq://{rocketmq.names}", threading.Event()
    asked: list[tuple[str, bytes]] = []

    def check(message: ReceivedMessage) -> str:
        asked.append((message.topic, message.body))
        checked.set()
        return "commit"

    def broken(_delivered: object) -> str:
        raise ZeroDivisionError

    with TransactionProducer(target, "transactions", check, delivery_timeout=20) as producer:
        producer.create_topic("ended", 2)
        done = producer.send_in_transaction("ended", b"commit", lambda delivered: "commit", tag="t")
        assert done.end == "commit" and done.told and done.delivered.topic == "ended"
        producer.send_in_transaction("ended", b"rollback", lambda delivered: "rollback")
        with pytest.raises(ZeroDivisionError):
            producer.send_in_transaction("ended", b"raised", broken)
        with pytest.raises(ValueError, match="execute returned 'perhaps'"):
            producer.send_in_transaction("ended", b"wrong", lambda delivered: "perhaps")
        producer.send_in_transaction("ended", b"checked", lambda delivered: "unknown")
        assert checked.wait(60) and asked == [("ended", b"checked")]
        assert read(target, "ended", 5) == [b"checked", b"commit"]
