"""`dataproxy.Consumer` of several brokers that push, while one of them is away."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dataproxy import Consumer
from tests.support.pushserver import claimed, full_port, pushing
from tests.support.rocketserver import RocketServer
from tests.support.waiting import SECONDS, eventually


@contextlib.contextmanager
def two_brokers(**options: Any) -> Iterator[tuple[RocketServer, RocketServer, Consumer]]:
    """Return two brokers that push, the first of them the name server, too, and a consumer of queues of both."""
    with contextlib.ExitStack() as held:
        here, there = (held.enter_context(pushing(RocketServer({"T": 2}))) for _ in range(2))
        here.others["a"] = f"127.0.0.1:{there.port}"  # it comes before "b", which is the first
        consumer = held.enter_context(
            Consumer(here.target, group="g", topics=["T"], release_wait=0, close_timeout=1, **options)
        )
        consumer.wait_ready(SECONDS)
        assert eventually(lambda: claimed(here) == claimed(there) == {0, 1})
        yield here, there, consumer


def test_a_pause_is_told_to_the_broker_of_its_queue_as_one_of_that_queue_alone() -> None:
    with two_brokers() as (here, there, consumer):
        consumer.pause("b:T:0")
        assert eventually(lambda: claimed(here) == {1}) and claimed(there) == {0, 1}
        consumer.resume("b:T:0")
        assert eventually(lambda: claimed(here) == {0, 1})


@pytest.mark.parametrize("how", ["refuses", "is silent"])
def test_a_broker_that_is_away_holds_back_no_resume_at_others(how: str) -> None:
    with two_brokers(connect_timeout=600) as (here, there, consumer), contextlib.ExitStack() as held:
        there.__exit__()
        if how == "is silent":
            held.enter_context(full_port(there.port))
        consumer.pause()
        assert eventually(lambda: claimed(here) == set())
        consumer.resume()
        assert eventually(lambda: claimed(here) == {0, 1})
        consumer.pause("b:T:1")
        assert eventually(lambda: claimed(here) == {0})


def test_a_seek_needs_the_broker_of_its_queue_alone() -> None:
    with two_brokers() as (here, there, consumer):
        here.put("T", 0, b"x")
        there.__exit__()
        assert consumer.seek("b:T:0", "latest") == 1
        assert eventually(lambda: here.offsets.get(("g", "T", 0)) == 1 and claimed(here) == {0, 1})


def test_a_queue_goes_on_when_its_broker_is_back() -> None:
    with two_brokers() as (here, there, consumer):
        there.__exit__()
        consumer.pause("a:T:0")
        consumer.resume("a:T:0")
        with pushing(RocketServer({"T": 2}, after=there)) as back:
            assert eventually(lambda: claimed(back) == {0, 1})


def test_a_pause_waits_for_no_other_broker_that_does_not_answer() -> None:
    with two_brokers(call_timeout=600) as (here, there, consumer):
        settled = threading.Event()
        consumer._core._client.keeper.soon(settled.set)  # type: ignore[union-attr]
        assert settled.wait(SECONDS)
        there.on[34] = lambda _client, _fields, _body: None
        consumer.pause("b:T:0")
        assert eventually(lambda: claimed(here) == {1})
        consumer.resume("b:T:0")
        assert eventually(lambda: claimed(here) == {0, 1})
