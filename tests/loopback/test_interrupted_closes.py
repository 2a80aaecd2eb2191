"""Closes that a signal handler ends, at each place where it can: another close does the rest."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dataproxy import Consumer, Producer
from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer as RocketProducer
from dataproxy.rocketmq import PullConsumer, PushConsumer, TransactionProducer
from tests.support.interrupting import interrupted_at
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0, tubemq_port=0) as made, RocketProducer(made.rocketmq_target) as producer:
        producer.send("T", b"x").result()
        yield made


def sender(hub: Hub) -> Producer:
    made = Producer(hub.target, group_id="g")
    made.send("s", b"x").result()
    return made


def tube_sender(hub: Hub) -> Producer:
    made = Producer(hub.tubemq_target)
    made.send("T", b"x").result()
    return made


def rocket_sender(hub: Hub) -> RocketProducer:
    made = RocketProducer(hub.rocketmq_target)
    made.send("T", b"x").result()
    return made


def teller(hub: Hub) -> TransactionProducer:
    made = TransactionProducer(hub.rocketmq_target, "tg", lambda _message: "unknown")
    made.send("T", b"x").result()
    return made


def puller(hub: Hub) -> PullConsumer:
    made = PullConsumer(hub.rocketmq_target, "pull", "T", begin="first", auto_commit=True)
    made.poll(0)
    return made


def listener(hub: Hub) -> PushConsumer:
    return PushConsumer(hub.rocketmq_target, "listen", "T", lambda _messages: None, threads=2)


def reader(hub: Hub) -> Consumer:
    return Consumer(hub.rocketmq_target, group="read", topics=["T"])


def tube_reader(hub: Hub) -> Consumer:
    return Consumer(hub.tubemq_target, group="tube", topics=["T"])


def noted_ends(monkeypatch: pytest.MonkeyPatch, kind: type[Any]) -> list[bool]:
    """Return a list that grows whenever a client of a kind begins to end its threads on the thread that closes it."""
    begun: list[bool] = []
    end_all = getattr(kind, "_end_all", None)
    if end_all is not None:  # others end them on a thread that no signal handler meets

        def noted(made: Any, *given: float) -> Any:
            begun.append(True)
            return end_all(made, *given)

        monkeypatch.setattr(kind, "_end_all", noted)
    return begun


@pytest.mark.parametrize(
    "make",
    [sender, tube_sender, rocket_sender, teller, puller, listener, reader, tube_reader],
    ids=lambda f: f.__name__,
)
def test_a_close_that_a_signal_handler_ends_is_brought_to_its_end(
    hub: Hub, make: Callable[[Hub], Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once its threads are being ended, all of them end before the exception goes on; before, another close does it."""
    caplog.set_level(logging.CRITICAL, "dataproxy")  # records hold what they are about
    first = make(hub)
    first.close()  # which loads modules
    begun = noted_ends(monkeypatch, type(first))
    del first

    def held() -> tuple[int, int]:
        gc.collect()  # an exception holds what it has ended
        return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    before = held()
    call = 0
    while True:
        made = make(hub)
        begun.clear()
        _, raised = interrupted_at(call, made.close)
        assert not begun or eventually(lambda: threading.active_count() <= before[0]), call
        made.close()
        del made
        assert eventually(lambda: all(now <= then for now, then in zip(held(), before, strict=True))), call
        if not raised:
            break
        call += 1
    assert call > 5


def test_a_transaction_producer_that_has_begun_to_close_is_closed(hub: Hub) -> None:
    """It would take messages, and answer no checks."""
    call, raised = 0, True
    while raised:
        made = teller(hub)
        _, raised = interrupted_at(call, made.close)
        assert made.closed or not made._leaving, call
        made.close()
        call += 1
    assert call > 5
