"""The object that tests use: a master and a broker on ports of loopback."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple, Self, TypeVar

from dataproxy.wire.tubemq import texts
from tests.support.tubeserver.broker import Broker
from tests.support.tubeserver.faults import Action, Faults
from tests.support.tubeserver.hubbroker import HubBroker
from tests.support.tubeserver.hubmaster import HubMaster
from tests.support.tubeserver.listener import Listener
from tests.support.tubeserver.master import Master
from tests.support.tubeserver.service import Call, Service
from tests.support.tubeserver.settings import Settings
from tests.support.waiting import SECONDS

__all__ = ["Stored", "TubeServer"]

_T = TypeVar("_T")
_HAS_ATTRIBUTE: Final = 1


class Stored(NamedTuple):
    """A message at a broker."""

    broker: int
    partition: int
    body: bytes
    attributes: dict[str, str]


def _split(flag: int, payload: bytes) -> tuple[bytes, dict[str, str]]:
    """Return body and attributes of a message."""
    if not flag & _HAS_ATTRIBUTE:
        return payload, {}
    size = int.from_bytes(payload[:4])
    text = payload[4 : 4 + size].decode()
    return payload[4 + size :], dict(pair.partition("=")[::2] for pair in text.split(","))


class TubeServer:
    """A master and a broker with topics; ``settings`` are those of `Settings`.

    ``hub_master``: master and registrations are the hub's; with ``users``, names and passwords, the master wants their
    signatures.
    A failure of the server itself, which an answer would hide, is raised at the end of the context.
    """

    def __init__(
        self, topics: Mapping[str, int], *, hub_master: bool = False, users: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:  # fmt: skip
        self.settings = Settings(topics, **settings)
        self._hub_master, self._users = hub_master, users
        self._calls: list[Call] = []
        self._faults = Faults()
        self._failures: list[Exception] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tubeserver", daemon=True)
        self._thread.start()
        self._run(self._open())
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        loop = self._loop
        assert loop is not None
        self._run(self._close())
        self._loop = None
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(SECONDS)
        loop.close()
        if kind is None and self._failures:
            raise self._failures[0]

    async def _open(self) -> None:
        kind = HubBroker if self._hub_master else Broker
        self._broker = kind(self.settings)
        self._brokers = [self._broker, *(kind(self.settings) for _ in range(self.settings.more_brokers))]
        services = [Service((2, 3), one.work, time.monotonic, self._calls, self._faults) for one in self._brokers]
        self._at_brokers = [Listener(service, self._failures) for service in services]
        self._at_broker = self._at_brokers[0]
        brokers = [
            texts.Broker(self.settings.broker_id + i, "127.0.0.1", one.port) for i, one in enumerate(self._at_brokers)
        ]
        self._master: Master | HubMaster
        if self._hub_master:
            self._master = HubMaster(self.settings, brokers, self._users)
        else:
            self._master = Master(self.settings, brokers)
        master = Service(
            (1,), self._master.work, time.monotonic, self._calls, self._faults, brokers=self._hub_master
        )  # fmt: skip
        self._at_master = Listener(master, self._failures)
        self._services = (master, *services)
        for listener in self._at_brokers:
            listener.start()
        self._at_master.start()

    async def _close(self) -> None:
        await self._at_master.close()
        for listener in self._at_brokers:
            await listener.close()

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    def _ask(self, question: Callable[[], _T]) -> _T:
        """Return what a function returns on the server's thread; when that has ended, on this one."""

        async def asked() -> _T:
            return question()

        return question() if self._loop is None else self._run(asked())

    # --- where it is

    @property
    def master_port(self) -> int:
        """Return the master's port."""
        return self._at_master.port

    @property
    def broker_port(self) -> int:
        """Return the broker's port."""
        return self._at_broker.port

    @property
    def target(self) -> str:
        """Return what a consumer is given to find the master."""
        return f"tubemq://127.0.0.1:{self.master_port}"

    # --- what is in it

    def put(self, topic: str, body: bytes, partition: int = 0, attribute: str = "") -> int:
        """Store a message without a producer and return its offset; filters see ``$msgType$`` of its attribute."""
        pairs = dict(pair.partition("=")[::2] for pair in attribute.split(",") if pair)
        text = attribute.encode()
        payload = len(text).to_bytes(4) + text + body if text else body
        flag, item = _HAS_ATTRIBUTE if text else 0, pairs.get("$msgType$", "")
        if not 0 <= partition < self.settings.topics[topic]:
            raise ValueError(f"{topic!r} has no partition {partition}")
        return self._ask(lambda: self._broker.put(topic, partition, payload, flag, item).offset)

    def stored(self, topic: str) -> list[Stored]:
        """Return all messages of a topic, in the order in which each broker has stored them."""

        def found() -> list[Stored]:
            return [
                Stored(self.settings.broker_id + i, one.partition, *_split(one.flag, one.payload))
                for i, broker in enumerate(self._brokers)
                for one in broker.stores[topic].entries
            ]

        return self._ask(found)

    def open_topic(self, topic: str, partitions: int = 1) -> None:
        """Add a topic, or give one another number of partitions; producers are told with their next heartbeats."""

        def add() -> None:
            self.settings.topics = {**self.settings.topics, topic: partitions}
            for broker in self._brokers:
                broker.open_topic(topic, partitions)

        self._ask(add)

    @property
    def producers(self) -> list[str]:
        """Return the producers that the master knows."""
        return self._ask(lambda: self._master.producers)

    def trim(self, topic: str, offset: int) -> None:
        """Delete the messages of a topic below an offset."""
        self._ask(lambda: self._broker.stores[topic].trim(offset))

    def end(self, topic: str) -> int:
        """Return the offset that the topic's next message will have."""
        return self._ask(lambda: self._broker.stores[topic].end)

    def confirmed(self, group: str, topic: str, partition: int) -> int | None:
        """Return where a group begins to read next; None if it never had the partition."""
        progress = self._ask(lambda: self._broker.progress.get((group, topic, partition)))
        return None if progress is None else progress.confirmed

    def owner(self, group: str, topic: str, partition: int) -> str | None:
        """Return the client that the broker knows as a partition's reader."""
        return self._ask(lambda: self._broker.locks.owner((group, topic, partition), time.monotonic()))

    def members(self, group: str) -> list[str]:
        """Return the clients that the master knows of a group, in the order of their registration."""
        return self._ask(lambda: self._master.members(group, time.monotonic()))

    def reported(self, group: str, client: str) -> tuple[str, ...]:
        """Return the texts of partitions that a client which chooses them has reported to the master."""
        return self._ask(lambda: self._master.held(group, client))

    @property
    def calls(self) -> list[Call]:
        """Return the calls so far, in the order in which they were done: (method, client, topic, partition, code).

        ``method`` is the name of the request's message, or ``UnregisterRequestC2B``.  ``code`` is the answer's, 1 for
        an exception, 0 if there was no answer or a test gave its bytes.
        """
        return list(self._calls)

    def declare(self, broker: texts.Broker, topics: Mapping[str, int]) -> None:
        """Let a broker of another process come to the hub's master, with topics."""

        def declare() -> None:
            assert isinstance(self._master, HubMaster)
            self._master.declare(broker, topics)

        self._ask(declare)

    def at_brokers(self, topic: str) -> set[int]:
        """Return the brokers at which the hub's master has partitions of a topic that can be read now."""

        def found() -> set[int]:
            assert isinstance(self._master, HubMaster)
            return self._master.at_brokers(topic, time.monotonic())

        return self._ask(found)

    @property
    def held(self) -> int:
        """Return how many calls are held by faults now."""
        return sum(service.held for service in self._services)

    def set_rules(self, *, cluster: str | None = None, group: str | None = None) -> None:
        """Change texts of flow rules; members are told with their next heartbeats.  An empty text ends them."""

        def change() -> None:
            assert isinstance(self._master, Master)
            for rules, text in ((self._master.cluster_rules, cluster), (self._master.group_rules, group)):
                if text is not None:
                    rules.text, rules.number = text, rules.number + 1

        self._ask(change)

    # --- what is done to it

    def on(
        self, method: str, action: Action, times: int | None = 1, topic: str | None = None,
        partition: int | None = None, *, worked: bool = False, when: Callable[[Any], bool] | None = None,
    ) -> None:  # fmt: skip
        """Do something to the next calls of a method, named as in ``calls``; `faults` describes the actions.

        ``times``: so many of them, None: all until ``off``.  ``topic``, ``partition``: only of those.  ``worked``: a
        call that gets another answer, or none, has its effect all the same; one that is held has it before.
        ``when``: only requests for which a function returns True.
        """
        self._ask(lambda: self._faults.add(method, action, times, topic, partition, worked, when))

    def off(self) -> None:
        """Drop all faults."""
        self._ask(self._faults.clear)

    def stop_broker(self, number: int = 0) -> None:
        """End a broker's connections and refuse new ones, as if it had crashed; messages and offsets stay."""

        async def stop() -> None:
            await self._at_brokers[number].stop()
            self._brokers[number].restart()

        self._run(stop())

    def start_broker(self, number: int = 0) -> None:
        """Start a broker again, on its port."""
        self._ask(self._at_brokers[number].start)

    def stop_master(self) -> None:
        """End the master's connections and refuse new ones; it forgets producers and groups."""

        async def stop() -> None:
            await self._at_master.stop()
            self._master.restart()

        self._run(stop())

    def start_master(self) -> None:
        """Start the master again, on its port."""
        self._ask(self._at_master.start)

    def cut(self) -> None:
        """End all connections; new ones are taken at once."""

        async def cut() -> None:
            await self._at_master.cut()
            for listener in self._at_brokers:
                await listener.cut()

        self._run(cut())
