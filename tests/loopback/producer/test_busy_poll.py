"""`busy_poll`: executors and waiting threads that look for a while before they sleep."""

from __future__ import annotations

import threading
import time

import pytest

from dataproxy import Producer
from dataproxy.errors import ConfigError
from dataproxy.hub import Hub


@pytest.fixture
def hub():
    with Hub() as hub:
        yield hub


@pytest.mark.parametrize("busy_poll", ["50us", "10ms"])
def test_results_come_from_many_threads_at_once(hub, busy_poll):
    with Producer(hub.target, group_id="g", linger=0, busy_poll=busy_poll) as producer:
        assert producer.config.busy_poll == {"50us": 50e-6, "10ms": 0.01}[busy_poll]
        failures = []

        def send(name: str) -> None:
            try:
                for i in range(200):
                    producer.send("s", f"{name} {i}".encode()).result(10)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=send, args=(f"t{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not failures
    assert producer.report().delivered == 800


def test_pauses_of_all_lengths_lose_no_wake_up(hub):
    """A message comes while the executor looks, while it goes to sleep, and while it sleeps."""
    with Producer(hub.target, group_id="g", linger=0, busy_poll="200us") as producer:
        for i in range(300):
            until = time.perf_counter() + i * 2e-6
            while time.perf_counter() < until:
                pass
            producer.send("s", b"m").result(10)


def test_timers_are_kept_while_it_looks(hub):
    with Producer(hub.target, group_id="g", linger="2ms", busy_poll="10ms") as producer:
        for _ in range(20):
            producer.send_nowait("s", b"m")
        producer.flush(10)
        began = time.perf_counter()
        delivered = threading.Event()
        producer.send("s", b"m").add_done_callback(lambda _: delivered.set())
        assert delivered.wait(10)  # nobody seals it but linger
        assert time.perf_counter() - began >= 0.002


@pytest.mark.parametrize("value", ["11ms", -1, "often"])
def test_a_wrong_value_is_told(value):
    with pytest.raises(ConfigError, match="busy_poll"):
        Producer("tcp://127.0.0.1:1", group_id="g", busy_poll=value)
