"""Our producer and consumer under load while RocketMQ's own broker is killed, and while it is stopped."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from dataproxy.errors import DeliveryExpired
from dataproxy.rocketmq import Delivery, Producer, PushConsumer, ReceivedMessage
from tests.support.tubekit import RocketServers
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(600)

_PAUSE_S = 0.005  # between two messages
_WAIT_S = 90.0
_HEARTBEAT_S = 30.0


class _Load:
    """A thread that sends messages, a consumer of their topic, and what became of them."""

    def __init__(self, target: str, topic: str) -> None:
        self.sent: dict[bytes, Delivery] = {}
        self.seen: Counter[bytes] = Counter()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self.producer = Producer(target, f"{topic}_producers", delivery_timeout=_WAIT_S)
        self.producer.create_topic(topic, 4)
        self.consumer = PushConsumer(target, f"{topic}_consumers", topic, self._listen, begin="first")
        self._topic = topic
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _listen(self, messages: list[ReceivedMessage]) -> None:
        with self._lock:
            self.seen.update(one.body for one in messages)

    def _run(self) -> None:
        n = 0
        while not self._over.wait(_PAUSE_S):
            body = b"%d" % n
            self.sent[body] = self.producer.send(self._topic, body)
            n += 1

    def goes_on(self) -> bool:
        """Wait until messages that are sent from now on are seen."""
        begun = len(self.sent)
        return eventually(lambda: any(b"%d" % n in self.seen for n in range(begun, len(self.sent))), _WAIT_S)

    def end(self) -> list[bytes]:
        """Send no more, and return the bodies that brokers have taken, when all of them were seen."""
        self._over.set()
        self._thread.join()
        taken = [body for body, one in self.sent.items() if one.exception(_WAIT_S) is None]
        eventually(lambda: self.seen.keys() >= set(taken), _WAIT_S)
        return taken

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self.producer.close(0)
        self.consumer.close()


@contextmanager
def _load(rocketmq: RocketServers, topic: str) -> Iterator[_Load]:
    load = _Load(f"rocketmq://{rocketmq.names}", topic)
    try:
        assert load.goes_on()
        yield load
    finally:
        load.close()


def _send_in_vain(producer: Producer, topic: str) -> DeliveryExpired:
    """Send a message while the broker is away, and return its error."""
    assert producer.send(topic, b"in vain").exception(30) is not None
    error = producer.send(topic, b"in vain").exception(30)
    assert isinstance(error, DeliveryExpired), error
    return error


def test_a_broker_that_is_killed_under_load(rocketmq: RocketServers) -> None:
    with (
        _load(rocketmq, "killed") as load,
        closing(Producer(f"rocketmq://{rocketmq.names}", "impatient", delivery_timeout=1)) as impatient,
    ):
        for _ in range(3):
            impatient.send("killed", b"known").result(30)
            rocketmq.run("kill", "rocketmq-broker")
            try:
                error = _send_in_vain(impatient, "killed")
            finally:
                rocketmq.run("start", "rocketmq-broker")
            assert error.retriable and not error.fatal
            assert error.details["maybe_delivered"] is False and "no connection to" in error.message
            assert load.goes_on()
        taken = load.end()
        assert len(taken) == len(load.sent)  # there was time to try them again
        assert load.seen.keys() >= set(taken)
        assert not load.consumer.trouble and not load.producer.trouble


def test_a_broker_that_is_stopped_for_longer_than_a_heartbeat(rocketmq: RocketServers) -> None:
    with (
        _load(rocketmq, "stopped") as load,
        closing(Producer(f"rocketmq://{rocketmq.names}", "impatient", delivery_timeout=1)) as impatient,
    ):
        impatient.send("stopped", b"known").result(30)
        pid = rocketmq.pid("rocketmq-broker")
        os.kill(pid, signal.SIGSTOP)
        try:
            ends = time.monotonic() + _HEARTBEAT_S + 10
            error = _send_in_vain(impatient, "stopped")
            assert error.details["maybe_delivered"] is True
            time.sleep(max(0.0, ends - time.monotonic()))
        finally:
            os.kill(pid, signal.SIGCONT)
        assert load.goes_on()
        taken = load.end()
        assert len(taken) == len(load.sent)
        assert load.seen.keys() >= set(taken)
        assert not load.consumer.trouble and not load.producer.trouble
