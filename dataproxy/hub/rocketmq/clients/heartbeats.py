"""Heartbeats (34): read once, and not again while a client says the same.

A client repeats all it is every 30 s.  The digest of what it said last is kept for each connection, and a heartbeat
with the same digest only lets the records begin anew that it made.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Final, NamedTuple

from dataproxy.hub.clients import Clients
from dataproxy.hub.rocketmq.clients.actions import Peer, RefusedError
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.clients.members import KIND as CONSUMER
from dataproxy.hub.rocketmq.clients.members import Members
from dataproxy.hub.rocketmq.clients.producers import KIND as PRODUCER
from dataproxy.hub.rocketmq.clients.producers import Producers
from dataproxy.problems import shown
from dataproxy.wire.rocketmq.bodies import Heartbeat
from dataproxy.wire.rocketmq.codes import Answer

__all__ = ["Heartbeats", "check_name"]

_NAME_BYTES: Final = 255  # of a group or a client, as RocketMQ's own clients have it
_DIGEST: Final = 16


class _Last(NamedTuple):
    digest: bytes
    peer: Peer
    consumers: tuple[str, ...]
    producers: tuple[str, ...]


class Heartbeats:
    """What clients have said of themselves.  One thread; times are seconds of a monotonic clock."""

    def __init__(self, clients: Clients, members: Members, producers: Producers, limits: Limits) -> None:
        self._clients, self._members, self._producers, self._limits = clients, members, producers, limits
        self._last: dict[int, _Last] = {}
        self._bytes: dict[int, int] = {}
        self._used = 0
        self.shortcuts = 0

    def take(self, peer: Peer, body: bytes, now: float, admit: Callable[[str], None]) -> tuple[str, ...]:
        """Take a heartbeat and return the consumer groups that are new here.

        All of it holds, or nothing.  ``admit`` is called with each group that is to be new, and may refuse it.  Raises
        RefusedError, and RemoteProtocolError for a body that cannot be read.
        """
        digest = blake2b(body, digest_size=_DIGEST).digest()
        last = self._last.get(peer.connection)
        if last is not None and last.digest == digest and last.peer == peer and self._refresh(last, now):
            self.shortcuts += 1
            return ()
        said = Heartbeat.read(body)
        self._check(peer.connection, said, len(body))
        new = tuple(data.group_name for data in said.consumer_data_set or () if not self._members.has(data.group_name))
        for group in dict.fromkeys(new):
            admit(group)
        whole = True
        for data in said.consumer_data_set or ():
            whole &= self._members.register(peer, said.client_id, data, now)
        producers = tuple(data.group_name for data in said.producer_data_set or ())
        for group in producers:
            self._producers.register(group, peer, said.client_id, now)
        self._charge(peer.connection, len(body))
        self._last.pop(peer.connection, None)
        if whole:  # what was refused now may be taken next time
            consumers = tuple(data.group_name for data in said.consumer_data_set or ())
            self._last[peer.connection] = _Last(digest, peer, consumers, producers)
        return tuple(dict.fromkeys(group for group in new if self._members.has(group)))

    def changed(self, connection: int) -> None:
        """Read the next heartbeat of a connection whole: the connection has left a group."""
        self._last.pop(connection, None)

    def forget(self, connection: int) -> None:
        """Forget a connection that has ended, or that has no group any more."""
        self._last.pop(connection, None)
        self._charge(connection, 0)

    @property
    def used_bytes(self) -> int:
        """Return the bytes of the heartbeats that are kept."""
        return self._used

    def _refresh(self, last: _Last, now: float) -> bool:
        connection, there = last.peer.connection, True
        for group in last.consumers:
            there &= self._members.refresh(group, connection, now)
        for group in last.producers:
            there &= self._clients.update(PRODUCER, (group, connection), now)
        return there

    def _charge(self, connection: int, n: int) -> None:
        self._used += n - self._bytes.pop(connection, 0)
        if n:
            self._bytes[connection] = n

    def _check(self, connection: int, said: Heartbeat, n: int) -> None:
        check_name("the client id", said.client_id)
        groups = [(CONSUMER, data.group_name) for data in said.consumer_data_set or ()]
        groups += [(PRODUCER, data.group_name) for data in said.producer_data_set or ()]
        for _, group in groups:
            check_name("a group", group)
        limits = self._limits
        if len(groups) > limits.groups:
            raise RefusedError(
                Answer.SYSTEM_ERROR, f"the heartbeat names {len(groups)} groups; expected {limits.groups} at most"
            )
        pushed = sum(
            len(one.pushed_queues) for data in said.consumer_data_set or () for one in data.subscription_data_set or ()
        )
        if pushed > limits.pushes:
            raise RefusedError(
                Answer.SYSTEM_ERROR,
                f"the heartbeat names {pushed} queues that are to be pushed; expected {limits.pushes} at most",
            )
        records = self._clients.count(CONSUMER) + self._clients.count(PRODUCER)
        added = sum(self._clients.value(kind, (group, connection)) is None for kind, group in groups)
        used = self._used - self._bytes.get(connection, 0) + n
        if (added and records + added > limits.records) or used > limits.bytes:
            raise RefusedError(
                Answer.SYSTEM_BUSY,
                f"the hub has {records} groups of clients, whose heartbeats have {self._used} bytes; it has room for"
                f" {limits.records} and for {limits.bytes}",
            )


def check_name(what: str, name: str) -> None:
    """Refuse a name that no client of RocketMQ makes: empty, too long, or with characters that are not printable."""
    if not name or len(name) > _NAME_BYTES or not name.isprintable():
        raise RefusedError(
            Answer.SYSTEM_ERROR,
            f"{what} is {shown(name)}; expected 1 to {_NAME_BYTES} characters that can be printed",
        )
