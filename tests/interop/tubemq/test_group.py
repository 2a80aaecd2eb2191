"""Members of a group at TubeMQ's own master and broker: joining and leaving, with messages all the while."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataproxy.consumer.group.asking import Address, Ask, MemberOptions
from dataproxy.consumer.group.member import Life, Member
from tests.support.rawclient import Connection, Sender
from tests.support.rawmember import Process
from tests.support.tubekit import Servers

TOPIC = "group"
SECONDS = 90


@pytest.fixture
def sender(tubemq: Servers) -> Iterator[Sender]:
    with Connection(tubemq.master) as master, Connection(tubemq.broker) as broker:
        yield Sender(master, broker, TOPIC)


@pytest.fixture
def heartbeat_s() -> float:
    """Return the time between two heartbeats of a member."""
    return 1.0


def turns(processes: list[Process], sender: Sender, sent: list[bytes], until: Callable[[], Any]) -> None:
    """Let the processes work, with a message in each round, until something holds."""
    deadline = time.monotonic() + SECONDS
    while not until():
        assert time.monotonic() < deadline, [one.held for one in processes]
        body = b"%d" % len(sent)
        assert sender.send(len(sent) % 6, body)["errCode"] == 200
        sent.append(body)
        for one in processes:
            one.turn()
        time.sleep(0.02)


def test_members_share_partitions_and_miss_nothing(tubemq: Servers, sender: Sender, heartbeat_s: float) -> None:
    group = f"group_{time.time_ns()}"
    sent: list[bytes] = []

    def begun_process(number: int) -> Process:
        return Process(tubemq.master, group, number, {TOPIC: ()}, heartbeat_s=heartbeat_s)

    processes = [begun_process(i) for i in range(2)]

    def even(*counts: int) -> Callable[[], bool]:
        return lambda: sorted(len(one.held) for one in processes if one.member.life is Life.MEMBER) == sorted(counts)

    turns(processes, sender, sent, even(3, 3))
    begun = len(sent)
    turns(processes, sender, sent, lambda: len(sent) > begun + 50)
    processes.append(begun_process(2))
    turns(processes, sender, sent, even(2, 2, 2))
    processes[0].member.close(time.monotonic())
    turns(processes, sender, sent, lambda: processes[0].member.life is Life.GONE)
    turns(processes, sender, sent, even(3, 3))
    assert len(set().union(*(one.held for one in processes))) == 6
    wanted = set(sent[begun:])
    turns(processes, sender, sent, lambda: wanted <= {body for one in processes for body in one.bodies})
    counts = Counter(body for one in processes for body in one.bodies)
    assert [body for body in wanted if counts[body] != 1] == []
    for one in processes[1:]:
        one.member.close(time.monotonic())
    turns(processes, sender, sent, lambda: all(one.member.life is Life.GONE for one in processes))
    for one in processes:
        one.close()


def test_a_group_that_wants_other_topics_is_refused(tubemq: Servers, sender: Sender) -> None:
    group = f"group_{time.time_ns()}"
    first, second = (Process(tubemq.master, group, i, {TOPIC: ()}) for i in range(2))
    first.turn()
    assert first.member.life is Life.MEMBER
    options = MemberOptions((Address("127.0.0.1", tubemq.master),), second.client, group, {"one": ()})
    member = Member(options, random.Random(1))
    member.start(0)
    (ask,) = member.poll(0, int(time.time() * 1000))
    assert isinstance(ask, Ask)
    with Connection(tubemq.master) as connection:
        member.answered(ask.number, connection.ask_message(ask.name, ask.message), 0)
    (refusal,) = member.poll(0, 0)
    assert refusal[0] == 425
    first.member.close(time.monotonic())
    first.turn()
    first.turn()
    assert first.member.life is Life.GONE
    first.close()
