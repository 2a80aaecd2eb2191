"""A master for tests, and the calls of its clients."""

from __future__ import annotations

import random
from collections.abc import Callable, Container
from typing import Any

from dataproxy.hub.clients import Clients
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.layout import Layout, TopicAt
from dataproxy.hub.tubemq.cluster.limits import MasterLimits
from dataproxy.hub.tubemq.master import Master
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker, Partition, Subscription

__all__ = ["BROKER", "Cluster", "given", "texts"]

BROKER = Broker(1, "10.0.0.1", 8123)
WALL_MS = 1_764_043_200_000


def given(answer: Any) -> list[int]:
    """Return the numbers of the partitions in an answer's event."""
    return [Subscription.read(text).partition.id for text in answer.event.subscribeInfo]


def texts(client: str, group: str, topic: str, numbers: Any, broker: Broker = BROKER) -> list[str]:
    """Return what a member reports that holds partitions of a topic."""
    return [str(Subscription(client, group, Partition(broker, topic, one))) for one in numbers]


class Cluster:
    """A master over brokers and topics; ``now`` is its time, and every call comes from an address of its own."""

    def __init__(
        self,
        topics: dict[str, int] | None = None,
        *,
        access: Access | None = None,
        seed: int = 1,
        returning: Container[str] | None = None,
        admit: Callable[[Broker], bool] = lambda broker: False,
        **limits: Any,
    ) -> None:
        self.now = 1000.0
        self.peer = "10.0.2.1"
        self.layout = Layout(7)
        self.layout.put(BROKER, {name: TopicAt(n) for name, n in (topics or {"t": 4}).items()})
        self.clients = Clients()
        self.master = Master(
            self.layout, self.clients, random.Random(seed), self.now, version=100, access=access,
            limits=MasterLimits(**limits), returning=returning, admit=admit,
        )  # fmt: skip

    def call(self, request: Any) -> Any:
        """Return the answer to a request; all that it requires is there."""
        answer = self.master.answer(request, self.peer, self.now, WALL_MS)
        assert answer.IsInitialized()
        return answer

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.master.tick(self.now)

    def register(self, client: str, group: str = "g", topics: Any = ("t",), **more: Any) -> Any:
        """Register a member of a group."""
        fields = {"clientId": client, "groupName": group, "hostName": "h", "topicList": topics, **more}
        return self.call(messages.RegisterRequestC2M(**fields))

    def beat(self, client: str, group: str = "g", **more: Any) -> Any:
        """Send a member's heartbeat."""
        fields = {"clientId": client, "groupName": group, "reportSubscribeInfo": False, **more}
        return self.call(messages.HeartRequestC2M(**fields))

    def report(self, client: str, held: Any, event: Any = None, group: str = "g") -> Any:
        """Send a heartbeat with what a member holds of topic t, and the result of an event."""
        more = {"reportSubscribeInfo": True, "subscribeInfo": texts(client, group, "t", held)}
        if event is not None:
            more["event"] = messages.EventProto(rebalanceId=event.rebalanceId, opType=event.opType, status=2)
        return self.beat(client, group, **more)

    def close(self, client: str, group: str = "g") -> Any:
        """Let a member go."""
        return self.call(messages.CloseRequestC2M(clientId=client, groupName=group))

    def held(self, client: str, group: str = "g") -> list[int]:
        """Return what a member holds in the master's view."""
        found = self.master.consumers.group(group)
        assert found is not None
        return sorted(one.id for one in found.members[client].held)
