"""Clients of RocketMQ that are not made to the end: for want of a thread, or as a signal handler raised."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dataproxy import AsyncConsumer, Consumer
from dataproxy.hub import Hub
from dataproxy.rocketmq import Producer, PullConsumer, PushConsumer, TransactionProducer
from tests.support.waiting import eventually

_MAKERS: Final[dict[str, Callable[[str], Any]]] = {
    "producer": Producer,
    "transactions": lambda target: TransactionProducer(target, "p", lambda _message: "commit"),
    "push": lambda target: PushConsumer(target, "g", "T", lambda _messages: None, threads=3),
    "pushed": lambda target: PushConsumer(target, "g", "T", lambda _messages: None, threads=3, push=True),
    "pull": lambda target: PullConsumer(target, "g", "T"),
    "packs": lambda target: Consumer(target, group="g", topics=["T"], on_assigned=lambda _partition: None),
    "packs-asyncio": lambda target: AsyncConsumer(target, group="g", topics=["T"]),
}


class Stopped(BaseException):
    """What a signal handler raises."""


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with Hub(rocketmq_port=0) as hub:
        yield hub


def own_threads() -> set[threading.Thread]:
    """Return the threads of clients."""
    names = ("dataproxy-rocketmq-", "dataproxy-consumer-")
    return {one for one in threading.enumerate() if one.name.startswith(names)}


async def _wait_for(one: Any) -> None:
    await one


def files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("runs", [False, True], ids=["no-thread", "signal"])
@pytest.mark.parametrize("kind", list(_MAKERS))
def test_nothing_is_left_of_a_client_that_was_not_made(
    hub: Hub, kind: str, runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, start = _MAKERS[kind], threading.Thread.start
    with make(hub.rocketmq_target) if kind != "packs-asyncio" else Producer(hub.rocketmq_target):
        pass  # what is loaded, or opened, once
    before = files()
    left = 0  # threads that can be started

    def begin(thread: threading.Thread) -> None:
        nonlocal left
        left -= 1
        if left == 0 and not runs:
            raise RuntimeError("can't start new thread")
        start(thread)
        if left == 0:
            raise Stopped

    monkeypatch.setattr(threading.Thread, "start", begin)
    for left in range(1, 5):  # noqa: B007 - `begin` reads it
        made = None
        with contextlib.suppress(RuntimeError, Stopped):
            made = make(hub.rocketmq_target)
        if made is not None:
            break
        assert eventually(lambda: not own_threads()), own_threads()
        assert eventually(lambda: gc.collect() >= 0 and files() <= before), (files(), before)
    monkeypatch.undo()
    if made is not None:
        closing = made.close()
        if inspect.isawaitable(closing):
            asyncio.run(_wait_for(closing))
