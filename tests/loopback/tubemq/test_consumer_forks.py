"""Callbacks of a consumer that fork: the child ends with its callback, and is no member of the group."""

from __future__ import annotations

import os

import pytest

from dataproxy.consumer.consumer import Consumer
from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer
from tests.support.consumers import Opener, drain
from tests.support.forking import Forks
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

WAYS = pytest.mark.parametrize(("how", "code"), [("return", 0), ("raise", 1), ("exit", 3)])


class Once:
    """A callback that forks at its first call, and lists its calls in this process and its children."""

    def __init__(self, how: str) -> None:
        self.forks, self.parent = Forks(how), os.getpid()
        self.keys, self.log = os.pipe()

    def __call__(self, key: str, *_lost: bool) -> None:
        os.write(self.log, f"{os.getpid()} {key}\n".encode())
        if os.getpid() == self.parent and not self.forks.over.is_set():
            self.forks.fork()

    def callers(self) -> list[int]:
        """Return who has called; once."""
        os.close(self.log)
        with os.fdopen(self.keys) as keys:
            return [int(line.split()[0]) for line in keys]


@WAYS
def test_a_child_that_an_assignment_forks_ends_with_it(tube: TubeServer, opened: Opener, how: str, code: int) -> None:
    once = Once(how)
    tube.put("three", b"x")
    consumer = opened("three", on_assigned=once)
    assert once.forks.ended() == code
    assert drain(consumer, 1) == [b"x"]
    consumer.close()
    assert set(once.callers()) == {once.parent}


def test_a_child_that_a_revocation_forks_ends_with_it(tube: TubeServer, opened: Opener) -> None:
    once = Once("return")
    tube.put("three", b"x")
    consumer = opened("three", on_revoked=once)
    drain(consumer, 1)
    consumer._begin_close()
    assert once.forks.ended() == 0
    consumer.close()
    assert set(once.callers()) == {once.parent}


def test_a_child_of_a_consumer_of_rocketmq_ends_too() -> None:
    once = Once("return")
    with Hub(rocketmq_port=0) as hub, Producer(hub.rocketmq_target, "p") as producer:
        producer.send("T", b"x").result(SECONDS)
        with Consumer(hub.rocketmq_target, group="g", topics=["T"], release_wait=0, on_assigned=once) as consumer:
            assert once.forks.ended() == 0
            assert drain(consumer, 1) == [b"x"]
    assert set(once.callers()) == {once.parent}
