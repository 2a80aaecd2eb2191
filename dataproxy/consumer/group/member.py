"""A member whose partitions a master gives and takes, by events; `membership` has what every member does."""

from __future__ import annotations

import random
from typing import Any, ClassVar, Final

from dataproxy.consumer.group.asking import Drop, Fault, MemberOptions, Untaken
from dataproxy.consumer.group.holdings import Holding, State
from dataproxy.consumer.group.membership import NONE, Life, Membership
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.texts import Partition, Subscription, join_offsets

__all__ = ["Life", "Member"]

_CONNECTS, _DISCONNECTS = (1, 10), (2, 20)
_DONE: Final = 2  # status of an event
_READ: Final = (State.HELD, State.RELEASING)  # no call about a partition is under way


class _Event:
    """An order of the master to take partitions, or to give them back."""

    def __init__(self, proto: Any, first: bool) -> None:
        self.first = first  # the group had no assignment when it came: where a bound group begins counts
        self.reported = True  # to the master that gave it; False once that has forgotten it
        self.number, self.kind = proto.rebalanceId, proto.opType
        self.texts = list(proto.subscribeInfo)
        self.keys: set[str] = set()  #: of partitions that are not settled yet

    def done(self) -> Any:
        """Return the message that reports its end."""
        return messages.EventProto(rebalanceId=self.number, opType=self.kind, status=_DONE, subscribeInfo=self.texts)


class Member(Membership):
    """One member; see `membership` for how it is driven."""

    _register_name: ClassVar[str] = "RegisterRequestC2M"
    _heartbeat_name: ClassVar[str] = "HeartRequestC2M"

    def __init__(self, options: MemberOptions, source: random.Random) -> None:
        super().__init__(options, source)
        self._event: _Event | None = None
        self._queued: _Event | None = None
        self._finished: _Event | None = None
        self._reporting: _Event | None = None
        self._missed = False  # an answer was lost that may have had an event
        self._not_allocated = True

    # --- masters

    def _texts(self) -> list[str]:
        who = self._options
        return [str(Subscription(who.client, who.group, one)) for one in self.holdings.reported]

    def _registration(self) -> Any:
        options = self._options
        bound: dict[str, Any] = {}
        if options.bound:
            bound = {
                "sessionKey": options.session, "totalCount": options.members, "selectBig": options.larger_wins,
                "requiredPartition": join_offsets(options.offsets),
            }  # fmt: skip
        return messages.RegisterRequestC2M(
            clientId=options.client, groupName=options.group, hostName=options.host, topicList=list(options.topics),
            topicCondition=self._conditions(), subscribeInfo=self._texts(), requireBound=options.bound,
            sessionTime=self._session_ms, notAllocated=self._not_allocated, ssdStoreId=NONE, jdkVersion="",
            **self._ids, **bound, **self._proof(),
        )  # fmt: skip

    def _heartbeat(self) -> Any:
        options = self._options
        self._reporting, self._finished = self._finished or self._reporting, None
        full = self._full(now=self._reporting is not None)
        message = messages.HeartRequestC2M(
            clientId=options.client, groupName=options.group, reportSubscribeInfo=full, ssdStoreId=NONE,
            subscribeInfo=self._texts() if full else [], **self._ids, **self._proof_if_asked(),
        )  # fmt: skip
        if self._reporting is not None:
            message.event.CopyFrom(self._reporting.done())
        elif self._missed:
            # A master gives an event once, and balances nothing of the group for ten periods while it waits for the
            # result.  It looks at no number: now it forgets a lost event, and divides anew by the report beside this.
            message.event.CopyFrom(messages.EventProto(rebalanceId=1, opType=_DISCONNECTS[1], status=2))
        return message

    def _has_registered(self, answer: Any, now: float) -> None:
        if answer.HasField("notAllocated") and not answer.notAllocated:
            self._not_allocated = False

    def _has_heard(self, answer: Any, now: float) -> None:
        self._reporting, self._missed = None, False
        first = self._not_allocated
        if answer.HasField("notAllocated") and not answer.notAllocated:
            self._not_allocated = False
        if answer.HasField("event") and answer.event.rebalanceId > 0 and self.life is Life.MEMBER:
            self._queued = _Event(answer.event, first)
            self._next_event(now)
        if self._finished is not None or self._report_soon:
            self._master_due = now

    def _has_forgotten(self) -> None:
        """Tell no result of an earlier event any more, because it would count for the next one."""
        self._finished = self._reporting = None
        self._missed = False
        if self._event is not None:
            self._event.reported = False

    def _has_missed(self) -> None:
        # Of a bound group a result would end the first assignment, in which alone its offsets count.
        self._missed = self._event is None and not self._options.bound

    # --- events

    def _next_event(self, now: float) -> None:
        if self._event is not None or self._queued is None:
            return
        self._event, self._queued = self._queued, None
        partitions = []
        for text in self._event.texts:  # of one that is left out the report tells the master that it is not held
            try:
                partition = Subscription.read(text, self._options.broker_port).partition
            except ValueError as error:
                self.trouble = Fault(str(error))
                continue
            if partition.topic in self._options.topics:
                partitions.append(partition)
            else:  # nobody asked for it: its messages would be taken for others
                self.trouble = Fault(f"a master gives partition {partition.key!r}, whose topic was not asked for")
        if self._event.kind in _DISCONNECTS:
            self._disconnect(self._event, partitions, now)
        elif self._event.kind in _CONNECTS:
            self._connect(self._event, partitions, now)
        self._settle(now)

    def _disconnect(self, event: _Event, partitions: list[Partition], now: float) -> None:
        for partition in partitions:
            holding = self.holdings.get(partition.key)
            if holding is not None:
                event.keys.add(partition.key)
                self._give_back(holding, now)

    def _connect(self, event: _Event, partitions: list[Partition], now: float) -> None:
        for partition in partitions:
            known = self.holdings.get(partition.key)
            if known is not None and known.partition.broker != partition.broker and known.state in _READ:
                # Its broker has moved, and does not know this member there.
                self._out.append(Drop(known.partition, 0))
                self._end_seek(known, "revoked")
                self.holdings.remove(known)
                known = None
            if known is None:
                event.keys.add(partition.key)
                self.holdings.want(partition, now).bound_start = event.first

    def _give_all_back(self, now: float) -> None:
        self._event = self._queued = self._finished = self._reporting = None
        super()._give_all_back(now)

    def _settle(self, now: float, key: str | None = None) -> None:
        """End the event when the last of its partitions is settled; its report is sent at once."""
        event = self._event
        if event is None:
            return
        if key is not None:
            event.keys.discard(key)
        if not event.keys:
            self._event = None
            if event.reported:
                self._finished = event
            self._tell_soon(now)
            self._next_event(now)

    def _forget(self, holding: Holding, now: float) -> None:
        if self._event is None and self.life is Life.MEMBER:
            self._tell_soon(now)  # no event's result tells the master
        super()._forget(holding, now)

    def _other_answered(self, answer: Any, now: float) -> None:
        raise AssertionError("a member makes no other call")

    def _not_taken(self, holding: Holding, code: int, now: float) -> None:
        self._out.append(Untaken(holding.partition, code, holding.why))
        self._give_up(holding, code, now)
