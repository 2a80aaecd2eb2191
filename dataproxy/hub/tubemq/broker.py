"""The hub's broker: registrations of partitions and heartbeats of who holds some (15 and 16).

Messages come in and go out on server loops, which look at the same registrations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.answers import BAD_REQUEST, NO_ROOM, RefusedError, failure, success
from dataproxy.hub.tubemq.cluster.layout import Layout
from dataproxy.hub.tubemq.cluster.room import Room
from dataproxy.hub.tubemq.cluster.rules import Tokens
from dataproxy.hub.tubemq.groups.wishes import read_items, required_text
from dataproxy.wire.tubemq.texts import Broker as Address
from dataproxy.wire.tubemq.texts import Failure, Partition

__all__ = ["Broker"]

_REGISTER, _UNREGISTER = 31, 32
_COMMIT: Final = 0  # readStatus of an end: what was read last counts as consumed
_OK, _ABSENT, _TAKEN, _UNKNOWN, _OTHER = 200, 403, 410, 411, 412
_US: Final = 1_000_000
_MOST_PARTITIONS: Final = 65_536  # of a heartbeat
_POSITION_BYTES: Final = 512  # of one group's, without names, about

#: (topic, partition) -> the offset of the oldest message, and the one that the next message gets.
Extent = Callable[[str, int], tuple[int, int]]


class Broker:
    """The calls of control.  One thread; ``now`` is in seconds of a monotonic clock.

    ``address``: this broker in the layout.  ``extent`` tells what the store has of a partition.  ``room``: bytes for
    positions of groups, which stay when their members have gone; an address may begin half of those that others leave.
    """

    def __init__(
        self,
        address: Address,
        layout: Layout,
        registrations: RegistrationsCore,
        extent: Extent,
        access: Access,
        tokens: Tokens,
        clocks_apart_s: float = 20.0,
        room: int = 64 << 20,
    ) -> None:
        self._address, self._layout, self._registrations, self._extent = address, layout, registrations, extent
        self._access, self._tokens, self._apart_s = access, tokens, clocks_apart_s
        self._room = Room(room, "bytes of the broker's memory for groups")
        self._calls: dict[str, Callable[[Any, str, float], Any]] = {
            "RegisterRequestC2B": self._register,
            "HeartBeatRequestC2B": lambda request, _, now: self._heartbeat(request, now),
        }

    def answer(self, request: Any, peer: str, now: float, wall_ms: int) -> Any:
        """Return the answer to a request, which is a message of the schema."""
        name = request.DESCRIPTOR.name
        try:
            self._access.check_visit(request.authInfo, wall_ms, self._apart_s, self._tokens.known(now))
            return self._calls[name](request, peer, now)
        except RefusedError as error:
            return failure(name, error)

    def tick(self, now: float) -> int:
        """Take partitions from owners whose time is over; return how many."""
        return self._registrations.expire(int(now * _US))

    def _register(self, request: Any, peer: str, now: float) -> Any:
        client, group = (required_text(request, field) for field in ("clientId", "groupName"))
        topic = request.topicName.strip()
        if not topic:
            raise RefusedError(BAD_REQUEST, "Request miss necessary topicName data!")
        parts = {one.id for one in self._layout.partitions({topic}) if one.broker.id == self._address.id}
        if not parts:
            raise RefusedError(_ABSENT, f"topicName {topic} not existed, please check your configure")
        if request.opType not in (_REGISTER, _UNREGISTER):
            raise RefusedError(BAD_REQUEST, f"Invalid request:{request.opType}")
        key = (group.encode(), topic.encode(), request.partitionId)
        if request.opType == _UNREGISTER:
            return self._unregister(request, key, client, now)
        if request.partitionId not in parts:
            text = f"Wrong partition value {request.partitionId},valid partitions in (0,{max(parts)})"
            raise RefusedError(NO_ROOM, f"Register broker failure!, exception is {text}")
        items = read_items(topic, request.filterCondStr)
        filters = b"".join(len(item).to_bytes(2) + item.encode() for item in sorted(items))
        is_known = self._registrations.knows(*key)
        size = _POSITION_BYTES + len(key[0]) + len(key[1])
        if not is_known:
            self._room.take(peer, size)
        code, owner = self._registrations.take(*key, client.encode(), filters, int(now * _US))
        if code == _TAKEN:
            place = f"Partition {self._address.id}#{group}:{topic}:{request.partitionId}"
            told = f"{place} has been registered by {owner.decode()}" if owner else "Remove Invalid Consumer Register"
            raise RefusedError(code, f"[Duplicated Register] {told}")
        if code != _OK:
            if not is_known:
                self._room.give(peer, size)
            raise RefusedError(code, "the broker has no room for registrations of further groups")
        least, end = self._extent(topic, request.partitionId)
        wanted = request.currOffset if request.HasField("currOffset") else -1
        begin = self._registrations.begin(*key, request.readStatus, wanted, least, end)
        return success(request.DESCRIPTOR.name, currOffset=begin, maxOffset=end)

    def _unregister(self, request: Any, key: tuple[bytes, bytes, int], client: str, now: float) -> Any:
        consumed = request.readStatus == _COMMIT
        code = self._registrations.leave(*key, client.encode(), consumed, int(now * _US))
        if code == _UNKNOWN:
            raise RefusedError(code, f"UnRegistered Consumer {client}, you have to register firstly!")
        if code == _OTHER:
            raise RefusedError(code, f"[Duplicated Request] another consumer than {client} has the partition")
        return success(request.DESCRIPTOR.name, currOffset=-1)

    def _heartbeat(self, request: Any, now: float) -> Any:
        client, group = (required_text(request, field) for field in ("clientId", "groupName"))
        if len(request.partitionInfo) > _MOST_PARTITIONS:
            raise RefusedError(BAD_REQUEST, f"a heartbeat for {len(request.partitionInfo)} partitions")
        failed = []
        for text in request.partitionInfo:
            try:
                partition = Partition.read(text)
            except ValueError as error:
                raise RefusedError(BAD_REQUEST, str(error)) from None
            key = (group.encode(), partition.topic.encode(), partition.id)
            code = self._registrations.use(*key, client.encode(), int(now * _US))
            if code != _OK:
                failed.append(str(Failure(code, partition)))
        return success(
            request.DESCRIPTOR.name, requireAuth=self._access.is_asked, hasPartFailure=bool(failed), failureInfo=failed
        )
