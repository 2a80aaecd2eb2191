"""The life of one member of a group: registered at a master, told what to hold, holding it at brokers, leaving.

A member makes no call itself.  ``poll`` returns what is to be done now: calls, and orders to the part that reads packs.
The ends of calls come back by ``answered`` and ``failed``, the ends of packs by ``released``, and what brokers said to
readers by ``lost``; ``due`` says when ``poll`` has something to do by itself.
"""

from __future__ import annotations

import random
from enum import Enum
from typing import Any, Final

from dataproxy.consumer.group.asking import Address, Ask, Drop, Fault, Hold, MemberOptions, Order, Refusal, Release
from dataproxy.consumer.group.holdings import Holding, Holdings, State
from dataproxy.consumer.group.masters import Masters
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.credentials import Signature
from dataproxy.wire.tubemq.texts import Condition, Failure, Partition, Subscription, join_offsets

__all__ = ["Life", "Member"]

_OK, _TAKEN, _UNKNOWN, _CREDENTIALS = 200, 410, 411, 415
#: A master's answers to a registration that no other master and no later time will change by itself.
_REFUSALS: Final = frozenset((424, 425, 426, 427, 428, 429, 430, 431, 450, 455))
_CONNECTS, _DISCONNECTS = (1, 10), (2, 20)
_REGISTER, _UNREGISTER = 31, 32
_COMMIT, _DISCARD = 0, 1
_NONE = -2  # of ids that are not known
_NONCES: Final = 1 << 31
_ERRORS: Final = 8  # of a master in a row, after which another one is asked


class Life(Enum):
    """How far a member is."""

    NEW = "new"
    JOINING = "joining"  #: no master has taken its registration yet
    MEMBER = "member"
    LEAVING = "leaving"  #: partitions are given back
    CLOSING = "closing"  #: the master is told
    GONE = "gone"


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
        return messages.EventProto(rebalanceId=self.number, opType=self.kind, status=2, subscribeInfo=self.texts)


class Member:
    """One member; see the module for how it is driven."""

    def __init__(self, options: MemberOptions, source: random.Random) -> None:
        self.life = Life.NEW
        self.holdings = Holdings()
        self._options = options
        self._masters = Masters(options.masters, options.slow_s, source)
        self._asks: dict[int, tuple[str, Any]] = {}  # what each call is about: a word, and a partition or a broker
        self._numbers = 0
        self._out: list[Ask | Order] = []
        self._registered = False
        self._perhaps = False  # registered: a registration was sent, and has no answer
        self._master_due = 0.0
        self._asking_master = False
        self._report_soon = False
        self._reports = 0
        self._event: _Event | None = None
        self._queued: _Event | None = None
        self._finished: _Event | None = None
        self._reporting: _Event | None = None
        self._missed = False  # an answer was lost that may have had an event
        self._brokers: dict[Address, float] = {}  # when each gets its next heartbeat
        self._beating: dict[Address, tuple[float, bool]] = {}  # under way: when sent, whether with credentials
        self._strict: set[Address] = set()  # brokers that ask for credentials
        self._errors = 0  # of a master, in a row
        self._fresh = False  # no heartbeat was taken since the registration
        self._closes = 0
        self._seen: set[str] = set()  # partitions that were registered before
        self._not_allocated = True
        self._visit = _NONE
        self._credentials = False  # asked for, by the master in use
        self._wall_ms = self._session_ms = 0
        self._random = source
        self._ids: dict[str, Any] = {"defFlowCheckId": _NONE, "groupFlowCheckId": _NONE, "qryPriorityId": _NONE}
        self.trouble: Fault | None = None  #: the newest of a call to a master
        self.rules: dict[str, str] = {}  #: texts of flow rules, as masters sent them last: group, cluster

    # --- what the driver calls

    def start(self, now: float) -> None:
        """Begin to join the group."""
        self.life = Life.JOINING
        self._master_due = now

    def close(self, now: float) -> None:
        """Give everything back, then leave."""
        if self.life in (Life.LEAVING, Life.CLOSING, Life.GONE):
            return
        if self.life is Life.NEW:
            self.life = Life.GONE
            return
        self.life = Life.LEAVING
        self._give_all_back(now)

    def poll(self, now: float, wall_ms: int) -> list[Ask | Order]:
        """Return what is to be done now; ``wall_ms``: the time of day, which servers are told."""
        self._wall_ms = wall_ms
        self._session_ms = self._session_ms or wall_ms
        if self.life is Life.LEAVING and not len(self.holdings):
            self.life = Life.CLOSING
            self._master_due = now
        if self.life in (Life.JOINING, Life.MEMBER, Life.CLOSING):
            self._ask_master(now)
        if self.life is not Life.GONE:
            self._ask_brokers(now)
        out, self._out = self._out, []
        return out

    def due(self) -> float:
        """Return the time of the next ``poll`` that has something to do, whatever comes until then."""
        leaves = self.life is Life.LEAVING and not len(self.holdings)
        closes = self.life is Life.CLOSING and not self._asking_master
        if self._out or leaves or closes or self.holdings.within(State.LEAVING):
            return float("-inf")
        times = [one.due for one in self.holdings.within(State.WANTED)]
        times += [due for broker, due in self._brokers.items() if broker not in self._beating]
        if self.life in (Life.JOINING, Life.MEMBER) and not self._asking_master:
            times.append(self._master_due)
        return min(times, default=float("inf"))

    def answered(self, number: int, answer: Any, now: float) -> None:
        """Take the answer to a call."""
        about, what = self._asks.pop(number)
        if about in ("register", "heartbeat", "close"):
            self._asking_master = False
            if answer.errCode == _OK or answer.errCode in _REFUSALS:
                self._masters.answered()
            else:
                self.trouble = Fault(f"{answer.errCode}: {answer.errMsg}")
            self._take_tokens(answer)
            getattr(self, f"_{about}_answered")(answer, now)
        elif about == "beat":
            self._beat_answered(what, answer, now)
        elif about == "take":
            self._take_answered(what, answer.errCode, max(answer.currOffset, 0), now)
        else:
            self._left_broker(what, now)

    def failed(self, number: int, fault: Fault, now: float) -> None:
        """Take the end of a call without an answer."""
        about, what = self._asks.pop(number)
        if about in ("register", "heartbeat", "close"):
            self._asking_master = False
            self.trouble = fault
            self._master_failed(about, fault, now)
        elif about == "beat":
            self._beating.pop(what, None)
        elif about == "take":
            self._take_answered(what, 0, 0, now)
        else:
            self._left_broker(what, now)

    def released(self, key: str, consumed: bool, now: float) -> None:
        """Take the end of a partition's last pack; ``consumed``: it was, and the broker does not know it."""
        holding = self.holdings.get(key)
        if holding is not None and holding.state is State.RELEASING:
            holding.consumed = consumed
            self.holdings.enter(holding, State.LEAVING, now)

    def lost(self, key: str, code: int, now: float) -> None:
        """Take a broker's word to a reader that this member does not hold a partition (411, 412, 415)."""
        holding = self.holdings.get(key)
        if holding is not None and holding.state in (State.HELD, State.RELEASING, State.LEAVING):
            self._drop(holding, code, now)

    # --- masters

    def _ask(self, address: Address, name: str, message: Any, about: str, what: Any = None) -> None:
        self._numbers += 1
        self._asks[self._numbers] = (about, what)
        self._out.append(Ask(self._numbers, address, name, message, self._options.timeout_s))

    def _ask_master(self, now: float) -> None:
        if self._asking_master or (now < self._master_due and self.life is not Life.CLOSING):
            return
        if self.life is Life.CLOSING and not self._registered and not self._perhaps:
            self.life = Life.GONE
            return
        self._asking_master = True
        if self.life is Life.CLOSING:
            message = messages.CloseRequestC2M(
                clientId=self._options.client, groupName=self._options.group, **self._proof()
            )
            self._closes += 1
            self._ask(self._masters.current, "CloseRequestC2M", message, "close")
        elif self._registered:
            self._ask(self._masters.current, "HeartRequestC2M", self._heartbeat(), "heartbeat")
        else:
            self._ask(self._masters.current, "RegisterRequestC2M", self._registration(), "register")

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
        conditions = [str(Condition(topic, items)) for topic, items in options.topics.items() if items]
        return messages.RegisterRequestC2M(
            clientId=options.client, groupName=options.group, hostName=options.host, topicList=list(options.topics),
            topicCondition=conditions, subscribeInfo=self._texts(), requireBound=options.bound,
            sessionTime=self._session_ms, notAllocated=self._not_allocated, ssdStoreId=_NONE, jdkVersion="",
            **self._ids, **bound, **self._proof(),
        )  # fmt: skip

    def _heartbeat(self) -> Any:
        options = self._options
        self._reporting, self._finished = self._finished or self._reporting, None
        self._reports += 1
        full = self._reporting is not None or self._report_soon or self._reports >= options.full_report_every
        if full:
            self._reports = 0
            self._report_soon = False
        message = messages.HeartRequestC2M(
            clientId=options.client, groupName=options.group, reportSubscribeInfo=full, ssdStoreId=_NONE,
            subscribeInfo=self._texts() if full else [], **self._ids, **(self._proof() if self._credentials else {}),
        )  # fmt: skip
        if self._reporting is not None:
            message.event.CopyFrom(self._reporting.done())
        elif self._missed:
            # A master gives an event once, and balances nothing of the group for ten periods while it waits for the
            # result.  It looks at no number: now it forgets a lost event, and divides anew by the report beside this.
            message.event.CopyFrom(messages.EventProto(rebalanceId=1, opType=_DISCONNECTS[1], status=2))
        return message

    def _proof(self) -> dict[str, Any]:
        """Return the fields that prove to a master who this is."""
        made = self._signature()
        if made is None:
            return {}
        info = messages.AuthenticateInfo(
            userName=made.user, timestamp=made.time_ms, nonce=made.nonce, othParams="", signature=made.signature
        )
        return {"authInfo": messages.MasterCertificateInfo(authInfo=info)}

    def _signature(self) -> Signature | None:
        user, password = self._options.user, self._options.password
        return Signature.make(user, password, self._wall_ms, self._random.randrange(_NONCES)) if user else None

    def _take_tokens(self, answer: Any) -> None:
        if answer.errCode == _CREDENTIALS or getattr(answer, "requireAuth", False):
            self._credentials = True
        if answer.DESCRIPTOR.fields_by_name.get("authorizedInfo") and answer.HasField("authorizedInfo"):
            self._visit = answer.authorizedInfo.visitAuthorizedToken
        if answer.errCode != _OK:
            return
        for name, text in (("defFlow", "cluster"), ("groupFlow", "group")):
            field = f"{name}CheckId"
            if field not in answer.DESCRIPTOR.fields_by_name or not answer.HasField(field):
                continue
            number = getattr(answer, field)
            if number != self._ids[field]:  # none, too: rules were taken back
                self._ids[field] = number
                self.rules[text] = getattr(answer, f"{name}ControlInfo")
        if "qryPriorityId" in answer.DESCRIPTOR.fields_by_name and answer.HasField("qryPriorityId"):
            self._ids["qryPriorityId"] = answer.qryPriorityId

    def _register_answered(self, answer: Any, now: float) -> None:
        self._perhaps = False
        if answer.errCode == _OK:
            self._registered = self._fresh = True
            self._master_due = now
            if self.life is Life.JOINING:
                self.life = Life.MEMBER
            if answer.HasField("notAllocated") and not answer.notAllocated:
                self._not_allocated = False
        elif answer.errCode in _REFUSALS:
            self._out.append(Refusal(answer.errCode, answer.errMsg))
            self._master_due = now + self._options.heartbeat_s
            if self.life is Life.MEMBER:
                self.life = Life.JOINING
                self._give_all_back(now)  # to a master that does not know this member its partitions are free
        else:
            self._master_due = now + max(self._masters.move(), self._options.register_pause_s)

    def _heartbeat_answered(self, answer: Any, now: float) -> None:
        self._master_due = now + self._options.heartbeat_s
        if answer.errCode == _UNKNOWN:
            self._begin_again(now + (self._options.register_pause_s if self._fresh else 0.0))
            return
        if answer.errCode != _OK:
            self._report_soon = True
            self._errors += 1
            if self._errors >= _ERRORS:
                self._perhaps = True
                self._begin_again(now + self._masters.move())
            elif answer.errCode == _CREDENTIALS:
                self._master_due = now + self._options.register_pause_s
            return
        self._reporting, self._missed = None, False
        self._errors, self._fresh = 0, False
        first = self._not_allocated
        if answer.HasField("notAllocated") and not answer.notAllocated:
            self._not_allocated = False
        if answer.HasField("event") and answer.event.rebalanceId > 0 and self.life is Life.MEMBER:
            self._queued = _Event(answer.event, first)
            self._next_event(now)
        if self._finished is not None or self._report_soon:
            self._master_due = now

    def _begin_again(self, when: float) -> None:
        """Register again: no result of an earlier event is told, because it would count for the next one."""
        self._registered, self._missed, self._errors = False, False, 0
        self._finished = self._reporting = None
        if self._event is not None:
            self._event.reported = False
        self._report_soon = True
        self._master_due = when

    def _close_answered(self, answer: Any, now: float) -> None:
        self.life = Life.GONE

    def _master_failed(self, about: str, fault: Fault, now: float) -> None:
        # A member stays one: the next master says whether it knows it.
        if about == "heartbeat":
            self._report_soon = True
            # Of a bound group a result would end the first assignment, in which alone its offsets count.
            self._missed = self._event is None and not self._options.bound
        self._perhaps |= about == "register" and fault.sent and not fault.exception
        wait = self._masters.move()
        self._master_due = now + wait
        if about == "close" and self._closes >= max(2, len(self._options.masters)):
            self.life = Life.GONE  # every master was asked; they will miss this member's heartbeats

    # --- events

    def _next_event(self, now: float) -> None:
        if self._event is not None or self._queued is None:
            return
        self._event, self._queued = self._queued, None
        partitions = []
        for text in self._event.texts:
            try:
                partitions.append(Subscription.read(text, self._options.broker_port).partition)
            except ValueError:
                continue  # the report tells the master that it is not held
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
            if self.holdings.get(partition.key) is None:
                event.keys.add(partition.key)
                self.holdings.want(partition, now).bound_start = event.first

    def _give_back(self, holding: Holding, now: float) -> None:
        if holding.state is State.WANTED:
            self._forget(holding, now)
        elif holding.state is State.REGISTERING:
            holding.unwanted = True
        elif holding.state is State.HELD:
            self.holdings.enter(holding, State.RELEASING, now)
            self._out.append(Release(holding.partition, now + self._options.confirm_wait_s))

    def _give_all_back(self, now: float) -> None:
        self._event = self._queued = self._finished = self._reporting = None
        for holding in self.holdings.within(*State):
            self._give_back(holding, now)

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
            self._report_soon = True
            self._master_due = now
            self._next_event(now)

    def _forget(self, holding: Holding, now: float) -> None:
        self.holdings.remove(holding)
        if self._event is None and self.life is Life.MEMBER:
            self._report_soon = True  # no event's result tells the master
            self._master_due = now
        self._settle(now, holding.partition.key)

    def _drop(self, holding: Holding, code: int, now: float) -> None:
        self._out.append(Drop(holding.partition, code))
        self._forget(holding, now)
        self._report_soon = True
        self._master_due = now

    # --- brokers

    def _ask_brokers(self, now: float) -> None:
        for holding in self.holdings.within(State.WANTED):
            if holding.due <= now:
                self.holdings.enter(holding, State.REGISTERING, now)
                holding.rounds += 1
                holding.signed = holding.address in self._strict
                self._ask(holding.address, "RegisterRequestC2B", self._taking(holding), "take", holding)
        for holding in self.holdings.within(State.LEAVING):
            self.holdings.enter(holding, State.UNREGISTERING, now)
            self._ask(holding.address, "RegisterRequestC2B", self._leaving(holding), "leave", holding)
        held: dict[Address, list[Holding]] = {}
        for holding in self.holdings.within(State.HELD, State.RELEASING):
            held.setdefault(holding.address, []).append(holding)
        self._brokers = {one: self._brokers.get(one, now + self._options.heartbeat_s / 2) for one in held}
        for broker, due in self._brokers.items():
            if due <= now and broker not in self._beating:
                self._beating[broker] = (now, broker in self._strict)
                self._brokers[broker] = now + self._options.heartbeat_s
                message = messages.HeartBeatRequestC2B(
                    partitionInfo=[str(one.partition) for one in held[broker]], readStatus=0, **self._to_broker(broker)
                )
                self._ask(broker, "HeartBeatRequestC2B", message, "beat", broker)

    def _to_broker(self, broker: Address) -> dict[str, Any]:
        made = self._signature() if broker in self._strict else None
        return {
            "clientId": self._options.client, "groupName": self._options.group, "ssdStoreId": _NONE,
            "qryPriorityId": self._ids["qryPriorityId"],
            "authInfo": messages.AuthorizedInfo(
                visitAuthorizedToken=self._visit, authAuthorizedToken=None if made is None else made.token
            ),
        }  # fmt: skip

    def _taking(self, holding: Holding) -> Any:
        partition, options = holding.partition, self._options
        first = partition.key not in self._seen
        more: dict[str, Any] = {}
        if options.bound:
            more = {"sessionKey": options.session, "sessionTime": self._session_ms}
            if first and holding.bound_start and partition.key in options.offsets:
                more["currOffset"] = options.offsets[partition.key]
        return messages.RegisterRequestC2B(
            opType=_REGISTER, topicName=partition.topic, partitionId=partition.id,
            readStatus=options.first_read if first else 0, filterCondStr=options.topics.get(partition.topic, ()),
            **self._to_broker(holding.address), **more,
        )  # fmt: skip

    def _leaving(self, holding: Holding) -> Any:
        return messages.RegisterRequestC2B(
            opType=_UNREGISTER, topicName=holding.partition.topic, partitionId=holding.partition.id,
            readStatus=_COMMIT if holding.consumed else _DISCARD, **self._to_broker(holding.address),
        )  # fmt: skip

    def _can_sign(self, broker: Address, *, signed: bool = False) -> bool:
        """Let a broker have credentials from now on; return whether they help a request that had none."""
        if not self._options.user or signed:
            return False
        self._strict.add(broker)
        return True

    def _take_answered(self, holding: Holding, code: int, offset: int, now: float) -> None:
        if code == _CREDENTIALS and not holding.unwanted and self._can_sign(holding.address, signed=holding.signed):
            self.holdings.enter(holding, State.WANTED, now)
            holding.due = now
            return
        if code == _OK:
            self._seen.add(holding.partition.key)
            if holding.unwanted or self.life in (Life.LEAVING, Life.CLOSING):
                self.holdings.enter(holding, State.LEAVING, now)
                return
            self.holdings.enter(holding, State.HELD, now)
            self._out.append(Hold(holding.partition, offset))
            self._settle(now, holding.partition.key)
        elif holding.unwanted or holding.rounds >= self._options.register_rounds or code not in (0, _TAKEN, 503):
            # Without an answer the broker may have it for this member: it is told, and does not mind if it has not.
            if code == 0:
                self.holdings.enter(holding, State.LEAVING, now)
            else:
                self._forget(holding, now)
        else:
            self.holdings.enter(holding, State.WANTED, now)
            holding.due = now + self._options.register_pause_s

    def _left_broker(self, holding: Holding, now: float) -> None:
        # Whatever the broker said: without heartbeats the registration ends by itself.
        if self.holdings.get(holding.partition.key) is holding:
            self._forget(holding, now)

    def _beat_answered(self, broker: Address, answer: Any, now: float) -> None:
        sent, signed = self._beating.pop(broker, (now, False))
        if answer.errCode == _CREDENTIALS and self._can_sign(broker, signed=signed):
            self._brokers[broker] = now
            return
        if answer.requireAuth:
            self._can_sign(broker)
        refused: dict[str, int] = {}
        if answer.errCode == _OK:
            for text in answer.failureInfo:
                try:
                    failure = Failure.read(text, self._options.broker_port)
                except ValueError:
                    continue
                refused[failure.partition.key] = failure.code
        for holding in self.holdings.within(State.HELD, State.RELEASING):
            if holding.address != broker or holding.since > sent:
                continue
            if answer.errCode == _CREDENTIALS:
                self._drop(holding, answer.errCode, now)
            elif holding.partition.key in refused:
                self._drop(holding, refused[holding.partition.key], now)
