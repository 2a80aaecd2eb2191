"""Hubs that name the same ZooKeeper 3.9: who leads, what all of them know, servers and leaders that go away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataproxy.errors import HubError
from dataproxy.hub.leader.cluster import Cluster
from dataproxy.hub.leader.seat import Hub, NotLeaderError
from tests.support.tubekit import ZooKeeper
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(300)
SESSION_S = 2.0

# A hub in a process of its own: says when it begins to lead and when it has ceased to, with its epoch.
MEMBER = """
import sys, time
from dataproxy.hub.leader.cluster import Cluster
from dataproxy.hub.leader.seat import Hub
servers, path, number, session = sys.argv[1:]
cluster = Cluster(servers, path, Hub(int(number), "127.0.0.1", int(number)), session_s=float(session))
cluster.start(30.0)
led = False
while True:
    now = time.monotonic()
    if cluster.leads() != led:
        led = not led
        print(f"{'leads' if led else 'ceased'} {cluster.epoch} {now}", flush=True)
    time.sleep(0.002)
"""


@pytest.fixture
def path(request: pytest.FixtureRequest) -> str:
    return f"/{request.node.name.replace('[', '-').replace(']', '')}/hubs"


@pytest.fixture
def hubs(zookeeper: ZooKeeper, path: str) -> Iterator[list[Cluster]]:
    made: list[Cluster] = []
    try:
        for i in (1, 2, 3):
            made.append(Cluster(zookeeper.address, path, Hub(i, f"h{i}", 8000 + i), session_s=SESSION_S))
            made[-1].start(30.0)
        yield made
    finally:
        for one in made:
            one.stop()


def leader(hubs: list[Cluster]) -> Cluster:
    """Return the hub that leads, which comes soon."""
    assert eventually(lambda: any(one.leads() for one in hubs))
    (found,) = (one for one in hubs if one.leads())
    return found


def knows(cluster: Cluster, document: dict[str, int]) -> bool:
    """Tell whether a hub has a document, and knows that it is not old."""
    return cluster.document() == (document, True)


def test_one_leads_and_all_know_what_it_writes(hubs: list[Cluster]) -> None:
    first = leader(hubs)
    others = [one for one in hubs if one is not first]
    for i in range(20):
        first.change(lambda document, i=i: document.update({str(i): i}))  # type: ignore[misc]
    wanted = {str(i): i for i in range(20)}
    assert knows(first, wanted)
    for one in others:
        assert eventually(lambda one=one: knows(one, wanted))  # type: ignore[misc]
        assert eventually(lambda one=one: one.leader == first.hub)  # type: ignore[misc]
        assert eventually(lambda one=one: sorted(one.hubs) == [1, 2, 3])  # type: ignore[misc]
        with pytest.raises(NotLeaderError):
            one.change(lambda document: document.clear())
    epoch = first.epoch
    first.stop()
    second = leader(others)
    assert second.epoch > epoch
    assert knows(second, wanted)
    with pytest.raises(NotLeaderError):
        first.change(lambda document: document.clear())


def test_a_write_of_a_stale_leader_is_refused(hubs: list[Cluster]) -> None:
    first = leader(hubs)
    first.change(lambda document: document.update(a=1))
    first._session._client.set(first._session._epoch, b"another leader")  # as one does that this hub has not heard of
    with pytest.raises(NotLeaderError):
        first.change(lambda document: document.update(a=2))
    second = leader(hubs)
    assert knows(second, {"a": 1})
    second.change(lambda document: document.update(a=3))
    assert knows(second, {"a": 3})


def test_servers_that_are_away_end_the_leadership_and_lose_nothing(hubs: list[Cluster], zookeeper: ZooKeeper) -> None:
    first = leader(hubs)
    first.change(lambda document: document.update(a=1))
    zookeeper.run("kill", "zookeeper")
    try:
        assert eventually(lambda: not first.leads())
        assert eventually(lambda: all(not one.document()[1] for one in hubs))
        with pytest.raises(NotLeaderError):
            first.change(lambda document: document.update(a=2))
    finally:
        zookeeper.run("start", "zookeeper")
    second = leader(hubs)
    assert knows(second, {"a": 1})


def test_a_document_has_a_greatest_size(hubs: list[Cluster]) -> None:
    first = leader(hubs)
    with pytest.raises(HubError, match="ZooKeeper takes 900000"):
        first.change(lambda document: document.update(a=os.urandom(1_000_000).hex()))
    first.change(lambda document: document.update(a=1))


def test_who_finds_no_server_says_so() -> None:
    with pytest.raises(HubError, match="no server of ZooKeeper"):
        Cluster("127.0.0.1:1", "/nobody", Hub(1, "h", 1)).start(0.5)


class Member:
    """A hub in a process of its own."""

    def __init__(self, zookeeper: ZooKeeper, path: str, number: int, log: Path) -> None:
        self.log = log
        with log.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-c", MEMBER, zookeeper.address, path, str(number), str(SESSION_S)], stdout=out
            )

    def said(self) -> list[tuple[str, int, float]]:
        """Return what it has said: (leads or ceased, epoch, when)."""
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return [(word, int(epoch), float(at)) for word, epoch, at in (line for line in lines if len(line) == 3)]

    @property
    def leads(self) -> bool:
        """Tell whether it leads by its own word."""
        said = self.said()
        return bool(said) and said[-1][0] == "leads"


@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_a_leader_in_another_process_dies_or_freezes(zookeeper: ZooKeeper, path: str, tmp_path: Path, how: str) -> None:
    members = [Member(zookeeper, path, i, tmp_path / str(i)) for i in (1, 2, 3)]
    try:
        for round_ in range(3):
            assert eventually(lambda: any(one.leads for one in members))
            (first,) = (one for one in members if one.leads)
            others = [one for one in members if one is not first]
            begin = time.monotonic()
            first.process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
            assert eventually(lambda others=others: any(one.leads for one in others))  # type: ignore[misc]
            (second,) = (one for one in others if one.leads)
            took = second.said()[-1][2] - begin
            print(f"{how}: epoch {second.said()[-1][1]} leads after {took:.2f} s, sessions have {SESSION_S:g} s")
            assert took <= SESSION_S + 3
            if how == "killed":
                first.process.wait()
                members[members.index(first)] = Member(zookeeper, path, 4 + round_, tmp_path / str(4 + round_))
            else:
                first.process.send_signal(signal.SIGCONT)
                assert eventually(lambda first=first: not first.leads)  # type: ignore[misc]
    finally:
        for one in members:
            one.process.kill()
            one.process.wait()
    epochs = [epoch for _, epoch in sorted((at, e) for one in members for word, e, at in one.said() if word == "leads")]
    assert epochs == sorted(set(epochs))
