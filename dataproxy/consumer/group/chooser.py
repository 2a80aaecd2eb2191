"""A member whose application chooses its partitions: the master says what there is, and nobody gives or takes.

`membership` has what every member does.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar

from dataproxy.consumer.group.asking import Ask, Drop, Fault, Known, MemberOptions, Order, Reply, Untaken
from dataproxy.consumer.group.holdings import Holding, Seek, State
from dataproxy.consumer.group.membership import NONE, Life, Membership
from dataproxy.shown import foreign
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Broker, Partition, TopicPart, join_held, read_meta

__all__ = ["Chooser"]

_OK = 200


class Chooser(Membership):
    """One member; see `membership` for how it is driven.

    What is chosen is taken, and taken again whenever it is lost, until something else is chosen.  A broker that does
    not give a partition is asked again without an end: ``Untaken`` says so.
    """

    _register_name: ClassVar[str] = "RegisterRequestC2MV2"
    _heartbeat_name: ClassVar[str] = "HeartRequestC2MV2"

    def __init__(self, options: MemberOptions, source: random.Random) -> None:
        super().__init__(options, source)
        self._places: dict[int, Broker] = {}  # brokers by their ids
        self._topics: dict[str, tuple[tuple[TopicPart, bool], ...]] = {}
        self._broker_version = self._topic_version = NONE
        self._known: dict[str, Partition] | None = None  # None: no master has said it yet
        self._chosen: set[str] = set()
        self._starts: dict[str, int] = {}  # where partitions begin that are given back first
        self._chosen_ms = NONE
        self._topics_due = 0.0
        self._asking_topics = False

    # --- what the driver calls

    def assign(self, starts: Mapping[str, int | None], number: int, now: float) -> None:
        """Hold these partitions and no others; ``Reply`` tells the end of it.

        Each begins at an offset, at EARLIEST or LATEST, or (None) where it is: at the group's stored offset if it is
        not held yet.  The problem is ``missing`` if there is no such partition: then nothing has changed.
        """
        known = self._known or {}
        missing = tuple(key for key in starts if key not in known and self.holdings.get(key) is None)
        if missing or self.life not in (Life.JOINING, Life.MEMBER):
            self._out.append(Reply(number, "missing" if missing else "gone", keys=missing))
            return
        self._chosen, self._chosen_ms = set(starts), self._wall_ms
        self._starts.clear()
        for holding in self.holdings.within(*State):
            if holding.partition.key not in self._chosen:
                self._give_back(holding, now)
        for key, start in starts.items():
            self._choose(key, start, now)
        self._tell_soon(now)
        self._out.append(Reply(number))

    def due(self) -> float:
        """Return the time of the next ``poll`` that has something to do, whatever comes until then."""
        asks = self.life is Life.MEMBER and self._registered and not self._asking_topics
        return min(super().due(), self._topics_due if asks else float("inf"))

    def poll(self, now: float, wall_ms: int) -> list[Ask | Order]:
        """Return what is to be done now; ``wall_ms``: the time of day, which servers are told."""
        if self.life is Life.MEMBER and self._registered and not self._asking_topics and self._topics_due <= now:
            self._asking_topics = True
            message = messages.GetPartMetaRequestC2M(
                clientId=self._options.client, groupName=self._options.group, brokerConfigId=self._broker_version,
                topicMetaInfoId=self._topic_version, **self._proof_if_asked(),
            )  # fmt: skip
            self._ask(self._masters.current, "GetPartMetaRequestC2M", message, "topics")
        return super().poll(now, wall_ms)

    # --- masters

    def _report(self, *, full: bool) -> Any:
        held: dict[str, list[tuple[int, int]]] = {}
        for one in self.holdings.reported if full else ():
            held.setdefault(one.topic, []).append((one.broker.id, one.id))
        return messages.ClientSubRepInfo(
            brokerConfigId=self._broker_version, topicMetaInfoId=self._topic_version, lstAssignedTime=self._chosen_ms,
            reportSubInfo=full, partSubInfo=[join_held(topic, parts) for topic, parts in held.items()],
        )  # fmt: skip

    def _tasks(self) -> Any:
        return messages.OpsTaskInfo(csmFrmMaxOffsetCtrlId=NONE, **self._ids)

    def _registration(self) -> Any:
        options = self._options
        return messages.RegisterRequestC2MV2(
            clientId=options.client, groupName=options.group, hostName=options.host, sourceCount=options.members,
            nodeId=options.node, topicList=list(options.topics), topicCondition=self._conditions(),
            subRepInfo=self._report(full=True), opsTaskInfo=self._tasks(), jdkVersion="", **self._proof(),
        )  # fmt: skip

    def _heartbeat(self) -> Any:
        return messages.HeartRequestC2MV2(
            clientId=self._options.client, groupName=self._options.group,
            subRepInfo=self._report(full=self._full(now=False)), opsTaskInfo=self._tasks(), **self._proof_if_asked(),
        )  # fmt: skip

    def _has_registered(self, answer: Any, now: float) -> None:
        self._topics_due = now
        self._learn(answer, now)
        self._take_chosen(now)

    def _has_heard(self, answer: Any, now: float) -> None:
        self._learn(answer, now)
        if self._report_soon:
            self._master_due = now

    def _has_forgotten(self) -> None:
        self._broker_version = self._topic_version = NONE  # versions of one master mean nothing to another one

    def _has_missed(self) -> None:
        pass  # a master gives no orders to members that choose

    def _other_answered(self, answer: Any, now: float) -> None:
        """Take what there is of the topics."""
        self._asking_topics = False
        self._topics_due = now + self._options.topics_s
        if answer is None:
            return  # heartbeats find out whether the master is there
        if answer.errCode != _OK:
            self.trouble = Fault(f"{answer.errCode}: {foreign(answer.errMsg)}")
            return
        self._learn(answer, now)
        found = self._found()
        if found != self._known:
            self._known = found
            self._out.append(Known(tuple(found.values())))
            self._take_chosen(now)

    def _learn(self, answer: Any, now: float) -> None:
        """Take the brokers and topics of an answer; a list that is empty is one that has not changed."""
        places: dict[int, Broker] = {}
        for text in answer.brokerConfigList:
            try:
                broker = Broker.read(text, self._options.broker_port)
            except ValueError as error:
                self.trouble = Fault(str(error))
                continue
            places[broker.id] = broker
        if places:
            self._places, self._broker_version = places, answer.brokerConfigId
            self._follow(now)
        topics = {}
        for text in getattr(answer, "topicMetaInfoList", ()):  # an answer to a registration has none
            try:
                topic, parts = read_meta(text)
            except ValueError as error:
                self.trouble = Fault(str(error))
                continue
            topics[topic] = parts
        if topics:
            self._topics, self._topic_version = topics, answer.topicMetaInfoId

    def _found(self) -> dict[str, Partition]:
        """Return the partitions that can be read now."""
        found: dict[str, Partition] = {}
        for topic in self._options.topics:
            for part, is_open in self._topics.get(topic, ()):
                broker = self._places.get(part.broker)
                if broker is not None and is_open:
                    partitions = (Partition(broker, topic, number) for number in part.ids)
                    found.update((one.key, one) for one in partitions)
        return found

    def _follow(self, now: float) -> None:
        """Go to brokers that have moved, which do not know this member there."""
        for holding in self.holdings.within(State.WANTED, State.HELD, State.RELEASING):
            broker = self._places.get(holding.partition.broker.id)
            if broker is None or broker == holding.partition.broker:
                continue
            if holding.state is not State.WANTED:
                self._out.append(Drop(holding.partition, 0))
                self._end_seek(holding, "revoked")
                self.holdings.remove(holding)
                if holding.partition.key in self._chosen:
                    self.holdings.want(holding.partition._replace(broker=broker), now)
            elif not holding.kept:
                holding.partition = holding.partition._replace(broker=broker)

    # --- partitions

    def _choose(self, key: str, start: int | None, now: float) -> None:
        """Take one partition, or read it from another place."""
        holding = self.holdings.get(key)
        if holding is None and self.life is not Life.MEMBER:  # it is taken when a master takes this member
            if start is not None:
                self._starts[key] = start
            return
        if holding is None:
            holding = self.holdings.want((self._known or {})[key], now)
        leaves = holding.unwanted or holding.state in (State.LEAVING, State.UNREGISTERING)
        if leaves or (holding.state is State.RELEASING and not holding.kept):
            if start is not None:
                self._starts[key] = start
        elif holding.state is State.HELD or holding.kept:
            if start is not None:
                self.seek(key, start, 0, now)
        else:
            self._begin_at(holding, start)

    @staticmethod
    def _begin_at(holding: Holding, start: int | None) -> None:
        """Let a partition begin at a place; an offset outside of its store is moved into it by the broker."""
        holding.seek = None if start is None else Seek(0, start, checked=True)

    def _take_chosen(self, now: float) -> None:
        """Take what was chosen, is there, and is not held."""
        for key, partition in (self._known or {}).items():
            if key in self._chosen and self.holdings.get(key) is None:
                self._begin_at(self.holdings.want(partition, now), self._starts.pop(key, None))

    def _settle(self, now: float, key: str) -> None:
        self._report_soon = True
        partition = (self._known or {}).get(key)
        if (
            partition is None
            or self.life is not Life.MEMBER
            or key not in self._chosen
            or self.holdings.get(key) is not None
        ):
            return
        start = self._starts.pop(key, None)
        holding = self.holdings.want(partition, now)
        self._begin_at(holding, start)
        if start is None:
            holding.due = now + self._options.register_pause_s

    def _not_taken(self, holding: Holding, code: int, now: float) -> None:
        self._out.append(Untaken(holding.partition, code, holding.why))
        holding.rounds = 0
        self._want_again(holding, now, max(self._options.register_pause_s, self._options.heartbeat_s / 2))
