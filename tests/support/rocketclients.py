"""A registry of the hub's RocketMQ port for tests, and what its clients send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dataproxy.hub.clients import Clients
from dataproxy.hub.rocketmq.clients.actions import Close, Peer, RefusedError, Send, Subscribed
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.groups.configs import GroupConfigs
from dataproxy.hub.rocketmq.registry import Registry
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.headers import Unregister
from dataproxy.wire.rocketmq.queues import LockRequest, Queue

__all__ = ["BROKER", "Kept", "KeptEpochs", "RocketHub", "StoredQueues", "heartbeat", "queues", "refusal"]

BROKER = "broker-a"
_Wishes = Mapping[str, Mapping[str, str] | Iterable[str]]


def queues(topic: str, *numbers: int, broker: str = BROKER) -> tuple[Queue, ...]:
    """Return queues of a topic."""
    return tuple(Queue(broker, one, topic) for one in numbers)


def heartbeat(
    client: str,
    consumes: _Wishes | None = None,
    produces: Iterable[str] = (),
    *,
    version: int = 1,
    model: str = "CLUSTERING",
    kind: str = "CONSUME_PASSIVELY",
) -> bytes:
    """Return the body of a heartbeat; ``consumes`` has for each group its topics, or its topics with expressions."""
    consumers = [
        {
            "groupName": group, "consumeType": kind, "messageModel": model,
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "unitMode": False, "subscriptionDataSet": [
                {"topic": topic, "subString": text, "subVersion": version, "tagsSet": [], "codeSet": [],
                 "expressionType": "TAG", "classFilterMode": False}
                for topic, text in (topics.items() if isinstance(topics, Mapping) else ((one, "*") for one in topics))
            ],
        }
        for group, topics in (consumes or {}).items()
    ]  # fmt: skip
    body = {
        "clientID": client,
        "consumerDataSet": consumers,
        "producerDataSet": [{"groupName": one} for one in produces],
    }
    return msgspec.json.encode(body)


class StoredQueues:
    """Queues of topics, and the offsets of groups; what a store does."""

    def __init__(self, topics: Mapping[str, int]) -> None:
        self.topics = dict(topics)
        self.offsets: dict[tuple[str, str, int], int] = {}
        self.ends: dict[tuple[str, int], int] = {}
        self.times: dict[tuple[str, int], int] = {}  #: the offset at any time
        self.fails = False

    def read_queues(self, topic: str) -> int | None:
        """Return how many queues a topic has."""
        return self.topics.get(topic)

    def committed(self, group: str, topic: str, queue: int) -> int | None:
        """Return a group's offset."""
        return self.offsets.get((group, topic, queue))

    def at_time(self, topic: str, queue: int, ms: int) -> int:
        """Return the offset of a time."""
        return self.times.get((topic, queue), 0)

    def latest(self, topic: str, queue: int) -> int:
        """Return the offset of the end."""
        return self.ends.get((topic, queue), 0)

    def store(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Set a group's offsets."""
        if self.fails:
            raise OSError("the disk is full")
        self.offsets.update({(group, topic, queue): offset for queue, offset in offsets.items()})


class Kept:
    """Keeps configurations in memory."""

    def __init__(self, data: bytes | None = None) -> None:
        self.data = data
        self.fails = False

    def load(self) -> bytes | None:
        """Return what is kept."""
        return self.data

    def save(self, data: bytes) -> None:
        """Keep it."""
        if self.fails:
            raise OSError("the disk is full")
        self.data = data


class KeptEpochs:
    """Keeps the epochs of resets, as JSON does, for several hubs on one clock."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], bytes] = {}

    def load(self, now: float) -> list[tuple[str, str, Any]]:
        """Return what is kept."""
        return [(*key, msgspec.json.decode(value)) for key, value in self.rows.items()]

    def save(self, group: str, topic: str, value: Any, now: float) -> None:
        """Keep a value."""
        if value is None:
            self.rows.pop((group, topic), None)
        else:
            self.rows[group, topic] = msgspec.json.encode(value)


def refusal(call: Any) -> RefusedError:
    """Return the error of a call that is refused."""
    try:
        call()
    except RefusedError as error:
        return error
    raise AssertionError("it was not refused")


class RocketHub:
    """A registry with its time; clients have a connection each, named by its number."""

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        kept: Kept | None = None,
        epochs: KeptEpochs | None = None,
        **limits: Any,
    ) -> None:
        self.now = 1000.0
        self.clients = Clients()
        self.queues = StoredQueues(topics or {"t": 4, "u": 2})
        self.configs = GroupConfigs(kept or Kept())
        self.registry = Registry(
            self.clients, BROKER, self.queues, self.configs, self.now, limits=Limits(**limits) if limits else None,
            epochs=epochs,
        )  # fmt: skip
        self.peers: dict[int, Peer] = {}

    def peer(self, connection: int, language: str = "JAVA", version: int = 409) -> Peer:
        """Return who is at a connection."""
        return self.peers.setdefault(connection, Peer(connection, f"10.0.0.1:{50000 + connection}", language, version))

    def start_again(self, epochs: KeptEpochs) -> None:
        """Begin another hub with what the store has; no connection is left."""
        self.clients = Clients()
        self.registry = Registry(self.clients, BROKER, self.queues, self.configs, self.now, epochs=epochs)

    def beat(self, connection: int, client: str, consumes: _Wishes | None = None, produces: Iterable[str] = (),
             **more: Any) -> tuple[str, ...]:  # fmt: skip
        """Send a heartbeat."""
        return self.registry.heartbeat(self.peer(connection), heartbeat(client, consumes, produces, **more), self.now)

    def leave(self, connection: int, *, consumer: str = "", producer: str = "", client: str = "") -> None:
        """Unregister."""
        self.registry.unregister(connection, Unregister(client, producer, consumer), self.now)

    def close(self, connection: int) -> None:
        """End a connection."""
        self.registry.closed(connection, self.now)

    def lock(self, connection: int, client: str, group: str, *wanted: Queue) -> tuple[Queue, ...]:
        """Ask for queues."""
        return self.registry.lock(connection, LockRequest(client, group, wanted), self.now)

    def unlock(self, connection: int, client: str, group: str, *wanted: Queue) -> None:
        """Give queues back."""
        self.registry.unlock(connection, LockRequest(client, group, wanted), self.now)

    def wait(self, seconds: float) -> None:
        """Let time pass, with a tick whenever one is wanted."""
        until = self.now + seconds
        while (at := self.registry.next_tick) <= until:
            self.now = max(self.now, at)
            self.registry.tick(self.now)
        self.now = until
        self.registry.tick(self.now)

    def actions(self, kind: type[Any] | None = None) -> list[Any]:
        """Return what is to be done, without what tells of subscriptions unless it is asked for."""
        found = self.registry.drain()
        if kind is not None:
            return [one for one in found if isinstance(one, kind)]
        return [one for one in found if not isinstance(one, Subscribed)]

    def told(self, seconds: float = 0.2) -> list[tuple[int, str]]:
        """Let a short time pass, and return who is told of a change: (connection, group), in order."""
        self.wait(seconds)
        found = [one for one in self.actions(Send) if one.code == Code.NOTIFY_CONSUMER_IDS_CHANGED]
        return sorted((one.connection, one.header.consumer_group) for one in found)

    def closing(self) -> list[int]:
        """Return the connections that are to be closed."""
        return [one.connection for one in self.actions(Close)]
