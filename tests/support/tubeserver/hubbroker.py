"""The hub's registrations in the place of this folder's, over the same stores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from dataproxy._core.server.tubemq.core import RegistrationsCore
from dataproxy.hub.tubemq.broker import Broker as Control
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.hub.tubemq.cluster.rules import Tokens
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker as Address
from tests.support.reference.tubemq import hash_of
from tests.support.tubeserver.answers import failure, success
from tests.support.tubeserver.broker import Broker
from tests.support.tubeserver.settings import Settings
from tests.support.tubeserver.store import Progress

__all__ = ["HubBroker"]

_US = 1_000_000
_MOST_BYTES = 16 << 20

_Key = tuple[str, str, int]


class _Progress(Mapping[_Key, Progress]):
    """Where groups are, by the word of the registrations."""

    def __init__(self, registrations: RegistrationsCore) -> None:
        self._registrations = registrations

    def _all(self) -> dict[_Key, Progress]:
        return {
            (group.decode(), topic.decode(), number): Progress(confirmed, pending)
            for group, topic, number, _, confirmed, pending in self._registrations.found()
            if confirmed >= 0
        }

    def __getitem__(self, key: _Key) -> Progress:
        return self._all()[key]

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class _Owners:
    """Who has what, by the word of the registrations."""

    def __init__(self, broker: HubBroker) -> None:
        self._broker = broker

    def owner(self, key: _Key, now: float) -> str | None:
        """Return who has a partition."""
        self._broker.control.tick(now)
        for group, topic, number, owner, *_ in self._broker.registrations.found():
            if (group.decode(), topic.decode(), number) == key and owner:
                return str(owner.decode())
        return None


class HubBroker(Broker):
    """A broker whose registrations and positions are the hub's."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._begin({})
        self._work["RegisterRequestC2B"] = self._registered
        self._work["HeartBeatRequestC2B"] = lambda request, now: self.control.answer(request, "", now, _wall_ms())

    def _begin(self, positions: Mapping[_Key, Progress]) -> None:
        """Begin with the positions that were stored."""
        settings = self._settings
        self.registrations = RegistrationsCore(b"0123456789abcdef", int(settings.lock_limit_s * _US), _MOST_BYTES)
        for (group, topic, number), progress in positions.items():
            self.registrations.restore(group.encode(), topic.encode(), number, progress.confirmed)
        self._layout = Layout()
        self._address = Address(settings.broker_id, "127.0.0.1", 1)
        self.control = Control(
            self._address, self._layout, self.registrations, self._extent, Access(), Tokens(1, 300.0, 0.0)
        )
        self.progress: Any = _Progress(self.registrations)
        self.locks: Any = _Owners(self)

    def restart(self, positions: dict[_Key, Progress] | None = None) -> None:
        """Forget registrations and packs that nobody confirmed, as after a crash; messages stay."""
        self._begin(dict(self.progress) if positions is None else positions)

    def work(self, name: str, request: Any, now: float) -> Any:
        """Answer a call, by the name of its message."""
        self._layout.put(self._address, {topic: TopicAt(store.partitions) for topic, store in self.stores.items()})
        return super().work(name, request, now)

    def _extent(self, topic: str, partition: int) -> tuple[int, int]:
        return self.stores[topic].least, self.stores[topic].end

    def _registered(self, request: Any, now: float) -> Any:
        answer = self.control.answer(request, "", now, _wall_ms())
        if answer.errCode == 200 and request.opType == 31:
            items = {item.strip() for item in request.filterCondStr if item.strip()}
            key = (request.groupName, request.topicName, request.partitionId)
            self._filters[key] = frozenset(map(hash_of, items))
        return answer

    def _get(self, request: Any, now: float) -> Any:
        name = "GetMessageRequestC2B"
        refusal = self._refusal(name, request)
        if refusal is not None:
            return refusal
        key = (request.groupName, request.topicName, request.partitionId)
        raw = (key[0].encode(), key[1].encode(), key[2])
        store, manual = self.stores[key[1]], request.manualCommitOffset
        code, position = self.registrations.locate(
            *raw, request.clientId.encode(), request.lastPackConsumed, manual, store.least, store.end, int(now * _US)
        )
        if code != 200:
            return failure(name, code, f"UnRegistered Consumer:{request.clientId}, you have to register firstly!")
        wait = {"minLimitTime": self._settings.empty_wait_ms}
        if position >= store.end:
            return failure(name, 404, "The request offset reached maxOffset!", **wait)
        pack = store.read(position, key[2], self._filters[key], self._settings.pack_bytes, self._settings.scan_entries)
        self.registrations.book(*raw, pack.scanned, bool(pack.entries), manual)
        if not pack.there:
            return failure(name, 404, "Can't found Message by index!", **wait)
        found = [
            messages.TransferedMessage(
                messageId=one.message, checkSum=one.checksum, payLoadData=one.payload, flag=one.flag
            )
            for one in pack.entries
        ]
        return success(
            name, messages=found, currOffset=position, minLimitTime=0, escFlowCtrl=False, currDataDlt=pack.behind,
            requireSlow=False, maxOffset=store.end,
        )  # fmt: skip

    def _commit(self, request: Any, now: float) -> Any:
        name = "CommitOffsetRequestC2B"
        refusal = self._refusal(name, request)
        if refusal is not None:
            return refusal
        if not self._has(request):
            return self._absent(name, request)
        raw = (request.groupName.encode(), request.topicName.encode(), request.partitionId)
        consumed = request.lastPackConsumed if request.HasField("lastPackConsumed") else True
        code, at = self.registrations.commit(*raw, request.clientId.encode(), consumed, int(now * _US))
        if code != 200:
            return failure(name, code, "The partition not registered by consumers")
        return success(name, currOffset=at, maxOffset=self.stores[request.topicName].end)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
