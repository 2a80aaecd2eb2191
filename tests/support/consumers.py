"""Consumers for tests: opened with short times, closed at the end, and read until all messages are there."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from typing import Any, Final

from dataproxy.consumer import kinds
from dataproxy.consumer.consumer import Consumer
from dataproxy.consumer.stats import Amounts
from dataproxy.errors import ConfirmError
from tests.support.tubeserver import TubeServer
from tests.support.waiting import SECONDS

__all__ = ["COMMIT", "GET", "HEARTBEAT_S", "Opener", "balanced", "drain", "next_pack", "quick_members"]

GET: Final = "GetMessageRequestC2B"
COMMIT: Final = "CommitOffsetRequestC2B"
HEARTBEAT_S: Final = 0.05  # far below what the option allows: a group settles within a test


@contextlib.contextmanager
def quick_members() -> Iterator[None]:
    """Let consumers that are opened here send heartbeats, and try again, after short times."""
    real = kinds._member_options

    def quick(*args: Any) -> Any:
        return dataclasses.replace(real(*args), heartbeat_s=HEARTBEAT_S, register_pause_s=0.02, slow_s=0.05)

    kinds._member_options = quick  # type: ignore[assignment]
    try:
        yield
    finally:
        kinds._member_options = real


class Opener:
    """Open consumers of one server, and close them together."""

    def __init__(self, server: TubeServer) -> None:
        self.server = server
        self.opened: list[Consumer] = []

    def __call__(self, topics: Any = "one", group: str = "g", target: Any = None, **options: Any) -> Consumer:
        """Return a consumer with options for fast tests."""
        options = {"not_found_wait": 0.02, "release_wait": 0.0, **options}
        consumer = Consumer(target or self.server.target, group=group, topics=topics, **options)
        self.opened.append(consumer)
        return consumer

    def close(self) -> None:
        """Close all of them; what is not closed within a short time is left to itself."""
        for consumer in self.opened:
            consumer._begin_close()
        for consumer in self.opened:
            consumer.close(2.0)


def next_pack(consumer: Consumer) -> Any:
    """Return the next pack, which must come."""
    pack = consumer.poll(SECONDS)
    assert pack is not None, consumer.stats()
    return pack


def drain(consumer: Consumer, n: int, *, distinct: bool = False) -> list[bytes]:
    """Read and confirm packs until so many messages came, or so many different ones; return their bodies in order."""
    bodies: list[bytes] = []
    end = time.monotonic() + SECONDS
    while len(set(bodies) if distinct else bodies) < n:
        assert time.monotonic() < end, (bodies[-5:], consumer.stats())
        pack = consumer.poll(0.5)
        if pack is not None:
            bodies += pack.bodies()
            with contextlib.suppress(ConfirmError):  # then the messages come again
                pack.confirm()
    return bodies


def balanced(amounts: Amounts) -> bool:
    """Tell whether nothing is lost from the counts."""
    parts = amounts.confirmed + amounts.rolled_back + amounts.expired + amounts.held
    return amounts.fetched == parts and min(dataclasses.astuple(amounts)) >= 0
