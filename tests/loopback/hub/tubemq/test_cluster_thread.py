"""A hub whose thread for its cluster fails, whose ZooKeeper is frozen, or whose document is none."""

from __future__ import annotations

import threading
import zlib
from typing import Any

import pytest

from dataproxy.errors import HubError
from dataproxy.hub.leader import cluster
from dataproxy.hub.leader.cluster import Cluster
from dataproxy.hub.leader.commands import Command, End, Kind, Outcome
from dataproxy.hub.leader.seat import Hub
from tests.support.waiting import SECONDS


class Session:
    """One whose first command fails in a way that nobody has foreseen."""

    def __init__(self, servers: str, path: str, hub: int, session_s: float, events: Any) -> None:
        self.events = events
        self.did: list[str] = []
        self.enrolled = threading.Event()

    def start(self, limit: float) -> None:
        self.did.append("start")
        self.events.connected(10.0)

    def stop(self) -> None:
        self.did.append("stop")

    def send(self, command: Command) -> None:
        if self.did.count("start") == 1:
            raise RuntimeError("nobody has foreseen this")
        if command.kind is Kind.ENROL:
            self.enrolled.set()
        self.events.ended(command, Outcome(End.UNKNOWN))


def test_it_begins_anew(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(cluster, "Session", Session)
    monkeypatch.setattr(cluster, "_PAUSE_S", 0.0)
    one = Cluster("127.0.0.1:1", "/hubs", Hub(1, "127.0.0.1", 1))
    one.start()
    session: Any = one._session
    try:
        assert session.enrolled.wait(SECONDS)
        assert session.did == ["start", "stop", "start"]
    finally:
        one.stop()
    assert "nobody has foreseen this" in caplog.text
    assert not one._thread.is_alive()


class Frozen(Session):
    """One whose ZooKeeper does not answer when it is to end."""

    thawed = threading.Event()

    def start(self, limit: float) -> None:
        """Nothing comes."""

    def stop(self) -> None:
        assert self.thawed.wait(SECONDS)


def test_zookeeper_that_is_frozen_does_not_hold_up_who_leaves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster, "Session", Frozen)
    one = Cluster("127.0.0.1:1", "/hubs", Hub(1, "127.0.0.1", 1))
    one.start()
    one.stop(0.05)
    try:
        assert "ends by itself" in caplog.text
    finally:
        Frozen.thawed.set()
        for thread in threading.enumerate():
            if thread.name == "dataproxy-hub-cluster-end":
                thread.join(SECONDS)


def test_the_document_is_unpacked_once_and_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "Session", Session)
    one = Cluster("127.0.0.1:1", "/hubs", Hub(1, "127.0.0.1", 1))
    one._seat.document = zlib.compress(b'{"brokers": {}}')
    first, _ = one.document()
    assert first == {"brokers": {}}
    assert one.document()[0] is first
    one._seat.document = zlib.compress(b"[" * (65 << 20))
    for data in (one._seat.document, zlib.compress(b"{}")[:-3], b"x"):
        one._seat.document = data
        with pytest.raises(HubError, match="is none"):
            one.document()
