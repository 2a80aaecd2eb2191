"""Members of a group at TubeMQ's own master and broker: joining and leaving, with messages all the while."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataproxy.consumer.asking import Address, Ask, Drop, Fault, Hold, MemberOptions, Release
from dataproxy.consumer.member import Life, Member
from tests.interop.tubemq.conftest import Servers
from tests.interop.tubemq.rawclient import Connection, RpcError
from tests.interop.tubemq.test_raw_calls import Reader, Sender, bodies

TOPIC = "group"
SECONDS = 90


class Process:
    """A member with its own connections; each turn makes the calls that are due and reads a pack of each partition."""

    def __init__(self, servers: Servers, group: str, number: int) -> None:
        self.client = f"{group}_127.0.0.1-{time.time_ns()}-{number}"
        options = MemberOptions(
            (Address("127.0.0.1", servers.master),), self.client, group, {TOPIC: ()}, heartbeat_s=1.0, first_read=1
        )
        self.group = group
        self.member = Member(options, random.Random(number))
        self.readers: dict[str, Reader] = {}
        self.bodies: list[bytes] = []
        self._connections: dict[Address, Connection] = {}
        self.member.start(time.monotonic())

    def turn(self) -> None:
        """Do what is due."""
        for one in self.member.poll(time.monotonic(), int(time.time() * 1000)):
            if isinstance(one, Ask):
                self._ask(one)
            elif isinstance(one, Hold):
                reader = Reader(self._to(Address("127.0.0.1", one.partition.broker.port)), TOPIC, self.group)
                reader.become(self.client, one.partition.id)
                self.readers[one.partition.key] = reader
            elif isinstance(one, Release):
                del self.readers[one.partition.key]
                self.member.released(one.partition.key, False, time.monotonic())
            elif isinstance(one, Drop):
                self.readers.pop(one.partition.key, None)
        for key, reader in list(self.readers.items()):
            self._read(key, reader)

    def _read(self, key: str, reader: Reader) -> None:
        answer = reader.get()
        if answer["errCode"] == 200:
            self.bodies += bodies(answer)
            assert reader.commit()["errCode"] == 200
        elif answer["errCode"] in (411, 412, 415):
            del self.readers[key]
            self.member.lost(key, answer["errCode"], time.monotonic())

    def _ask(self, one: Ask) -> None:
        try:
            answer = self._to(one.address).ask_message(one.name, one.message)
        except RpcError as error:
            self.member.failed(one.number, Fault(error.text, error.name.rpartition(".")[2]), time.monotonic())
        except OSError as error:
            self._connections.pop(one.address, None)
            self.member.failed(one.number, Fault(str(error)), time.monotonic())
        else:
            self.member.answered(one.number, answer, time.monotonic())

    def _to(self, address: Address) -> Connection:
        if address not in self._connections:
            self._connections[address] = Connection(address.port)
        return self._connections[address]

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()

    @property
    def held(self) -> set[str]:
        """Return the keys of the partitions that are read."""
        return set(self.readers)


@pytest.fixture
def sender(tubemq: Servers) -> Iterator[Sender]:
    with Connection(tubemq.master) as master, Connection(tubemq.broker) as broker:
        yield Sender(master, broker, TOPIC)


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


def test_members_share_partitions_and_miss_nothing(tubemq: Servers, sender: Sender) -> None:
    group = f"group_{time.time_ns()}"
    processes = [Process(tubemq, group, i) for i in range(2)]
    sent: list[bytes] = []

    def even(*counts: int) -> Callable[[], bool]:
        return lambda: sorted(len(one.held) for one in processes if one.member.life is Life.MEMBER) == sorted(counts)

    turns(processes, sender, sent, even(3, 3))
    begun = len(sent)
    turns(processes, sender, sent, lambda: len(sent) > begun + 50)
    processes.append(Process(tubemq, group, 2))
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
    first, second = Process(tubemq, group, 0), Process(tubemq, group, 1)
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
