"""A process of a group without an engine: a member, and a raw client that makes its calls and reads its partitions."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from dataproxy.consumer.group.asking import Address, Ask, Drop, Fault, Hold, MemberOptions, Refusal, Release
from dataproxy.consumer.group.member import Member
from dataproxy.wire.tubemq.texts import Partition
from tests.support.rawclient import Connection, Reader, RpcError, bodies
from tests.support.waiting import eventually

__all__ = ["Process", "together"]


class Process:
    """A member with its own connections; each turn makes the calls that are due and reads a pack of each partition."""

    def __init__(
        self, master: int, group: str, number: int, topics: Mapping[str, Collection[str]], **options: Any
    ) -> None:
        self.client = f"{group}_127.0.0.1-{time.time_ns()}-{number}"
        self._topics = {topic: tuple(items) for topic, items in topics.items()}
        settings = MemberOptions(
            (Address("127.0.0.1", master),), self.client, group, self._topics,
            **{"heartbeat_s": 1.0, "first_read": 1, **options},
        )  # fmt: skip
        self.group = group
        self.member = Member(settings, random.Random(number))
        self.readers: dict[str, Reader] = {}
        self.bodies: list[bytes] = []
        self.refusals: list[int] = []
        self._addresses: dict[str, Address] = {}
        self._connections: dict[Address, Connection] = {}
        self.member.start(time.monotonic())

    def turn(self) -> None:
        """Do what is due."""
        for one in self.member.poll(time.monotonic(), int(time.time() * 1000)):
            if isinstance(one, Ask):
                self._ask(one)
            elif isinstance(one, Hold):
                self._hold(one.partition)
            elif isinstance(one, Release):
                self.readers.pop(one.partition.key, None)
                self.member.released(one.partition.key, False, time.monotonic())
            elif isinstance(one, Drop):
                self.readers.pop(one.partition.key, None)
            elif isinstance(one, Refusal):
                self.refusals.append(one.code)
        for key, reader in list(self.readers.items()):
            self._read(key, reader)

    def _hold(self, partition: Partition) -> None:
        address = Address("127.0.0.1", partition.broker.port)
        reader = Reader(self._to(address), partition.topic, self.group)
        reader.become(self.client, partition.id)
        self.readers[partition.key] = reader
        self._addresses[partition.key] = address

    def _read(self, key: str, reader: Reader) -> None:
        address = self._addresses[key]
        try:
            reader.move(self._to(address))
            answer = reader.get()
            if answer["errCode"] == 200 and reader.commit()["errCode"] == 200:
                self.bodies += bodies(answer)
        except OSError:  # the registration may be there still: the next turn asks again
            self._forget(address)
            return
        if answer["errCode"] in (411, 412, 415):
            del self.readers[key]
            self.member.lost(key, answer["errCode"], time.monotonic())

    def _ask(self, one: Ask) -> None:
        try:
            answer = self._to(one.address).ask_message(one.name, one.message)
        except RpcError as error:
            self.member.failed(one.number, Fault(error.text, error.name.rpartition(".")[2]), time.monotonic())
        except OSError as error:
            self._forget(one.address)
            self.member.failed(one.number, Fault(str(error)), time.monotonic())
        else:
            self.member.answered(one.number, answer, time.monotonic())

    def _to(self, address: Address) -> Connection:
        if address not in self._connections:
            self._connections[address] = Connection(address.port)
        return self._connections[address]

    def _forget(self, address: Address) -> None:
        connection = self._connections.pop(address, None)
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()

    @property
    def held(self) -> set[str]:
        """Return the keys of the partitions that are read."""
        return set(self.readers)


def together(processes: list[Process], condition: Callable[[], object]) -> None:
    """Let processes work until something holds."""

    def turned() -> bool:
        for one in processes:
            one.turn()
        return bool(condition())

    assert eventually(turned), [one.held for one in processes]
