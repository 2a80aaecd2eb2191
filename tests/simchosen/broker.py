"""A broker of TubeMQ as a model of registrations, without messages; time is an argument."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker, Failure, Partition
from tests.simgroup.servers import Locks

__all__ = ["BrokerModel"]


class BrokerModel:
    """One broker: who has registered which partition."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._locks = Locks()

    def restart(self) -> None:
        """Forget all registrations."""
        self._locks.clear()

    def owner(self, partition: Partition, now: float) -> str | None:
        """Return who has a partition."""
        return self._locks.owner((partition.topic, partition.id), now)

    def owned(self) -> Iterator[str]:
        """Yield the owner of each registration."""
        return iter(self._locks.owners())

    def get(self, client: str, partition: Partition, now: float) -> int:
        """Answer a request for a pack."""
        return self._locks.use((partition.topic, partition.id), client, now)

    def call(self, name: str, request: Any, now: float) -> Any:
        """Answer a call."""
        if name == "HeartBeatRequestC2B":
            failed = []
            for text in request.partitionInfo:
                partition = Partition.read(text)
                code = self.get(request.clientId, partition, now)
                if code != 200:
                    failed.append(str(Failure(code, partition)))
            return messages.HeartBeatResponseB2C(
                success=True, errCode=200, errMsg="OK!", hasPartFailure=bool(failed), failureInfo=failed
            )
        key = (request.topicName, request.partitionId)
        if request.opType == 32:
            code = self._locks.leave(key, request.clientId, now)
            return messages.RegisterResponseB2C(success=code == 200, errCode=code, errMsg="", currOffset=-1)
        if not self._locks.take(key, request.clientId, now):
            return messages.RegisterResponseB2C(
                success=False, errCode=410, errMsg="[Duplicated Register]", currOffset=-1
            )
        return messages.RegisterResponseB2C(success=True, errCode=200, errMsg="OK!", currOffset=0, maxOffset=0)
