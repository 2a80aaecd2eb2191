"""The thread that does what may wait: it is woken for each thing, also where a signal handler has raised before."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator

import pytest

from dataproxy.rocketmq.network.keeper import Keeper
from tests.support.interrupting import interrupted_at
from tests.support.waiting import SECONDS, eventually


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    made = Keeper()
    yield made
    made.close(SECONDS)


def test_what_a_signal_handler_has_interrupted_is_done_when_it_is_asked_for_again(keeper: Keeper) -> None:
    interrupted, place = True, 0
    while interrupted:
        assert eventually(lambda: bool(keeper._changes._waiters)), "it waits"
        done = threading.Event()
        _, interrupted = interrupted_at(place, functools.partial(keeper.soon, done.set))
        keeper.soon(done.set)
        assert done.wait(SECONDS), f"after an interrupt at place {place}"
        place += 1
    assert place > 5
