"""What every member of a group does: registered at a master, holding partitions at brokers, leaving.

A member makes no call itself.  ``poll`` returns what is to be done now: calls, and orders to the part that reads packs.
The ends of calls come back by ``answered`` and ``failed``, the ends of packs by ``released``, and what brokers said to
readers by ``lost``; ``due`` says when ``poll`` has something to do by itself.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, ClassVar, Final

from dataproxy.consumer.group.asking import (
    EARLIEST,
    LATEST,
    Address,
    Ask,
    Drop,
    Fault,
    Hold,
    MemberOptions,
    Order,
    Refusal,
    Release,
    Reply,
)
from dataproxy.consumer.group.holdings import Holding, Holdings, Seek, State
from dataproxy.consumer.group.masters import Masters
from dataproxy.shown import foreign
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.credentials import Signature
from dataproxy.wire.tubemq.texts import Condition, Failure

__all__ = ["NONE", "Life", "Membership"]

_OK, _UNKNOWN, _CREDENTIALS = 200, 411, 415
#: A master's answers to a registration that no other master and no later time will change by itself.
_REFUSALS: Final = frozenset((424, 425, 426, 427, 428, 429, 430, 431, 450, 455))
_REGISTER, _UNREGISTER = 31, 32
_COMMIT, _DISCARD = 0, 1
_FROM_END: Final = 2  # readStatus of a registration
_NONCES: Final = 1 << 31
_ERRORS: Final = 8  # of a master in a row, after which another one is asked

#: Of ids that are not known.
NONE: Final = -2


class Life(Enum):
    """How far a member is."""

    NEW = "new"
    JOINING = "joining"  #: no master has taken its registration yet
    MEMBER = "member"
    LEAVING = "leaving"  #: partitions are given back
    CLOSING = "closing"  #: the master is told
    GONE = "gone"


class Membership(ABC):
    """A member, whoever decides what it holds; see the module for how it is driven."""

    _register_name: ClassVar[str]
    _heartbeat_name: ClassVar[str]

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
        self._brokers: dict[Address, float] = {}  # when each gets its next heartbeat
        self._beating: dict[Address, tuple[float, bool]] = {}  # under way: when sent, whether with credentials
        self._strict: set[Address] = set()  # brokers that ask for credentials
        self._errors = 0  # of a master, in a row
        self._fresh = False  # no heartbeat was taken since the registration
        self._closes = 0
        self._seen: set[str] = set()  # partitions that were registered before
        self._visit = NONE
        self._credentials = False  # asked for, by the master in use
        self._wall_ms = self._session_ms = 0
        self._random = source
        self._ids: dict[str, Any] = {"defFlowCheckId": NONE, "groupFlowCheckId": NONE, "qryPriorityId": NONE}
        self.trouble: Fault | None = None  #: the newest of a call to a master
        self.troubled: float | None = None  #: since when no master has given a good answer
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

    def seek(self, key: str, offset: int, number: int, now: float) -> None:
        """Read a partition from an offset on, from EARLIEST or from LATEST; ``Reply`` tells the end of it.

        ``number``: that of the reply; 0: nobody waits for one, and an offset behind the end means the end.

        Its problems: ``revoked`` (it is not this member's, or not any more), ``beyond`` (the offset is behind the end),
        ``later`` (another wish came in between).
        """
        holding = self.holdings.get(key)
        if holding is None or holding.unwanted or not (holding.state is State.HELD or holding.kept):
            if number:
                self._out.append(Reply(number, "revoked"))
            return
        self._end_seek(holding, "later")
        holding.seek = Seek(number, offset, checked=offset <= 0 or not number)
        if holding.state is State.HELD:
            holding.kept = True
            self.holdings.enter(holding, State.RELEASING, now)
            self._out.append(Release(holding.partition, now, moves=True))

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
                self.troubled = None
            else:
                self._note(Fault(f"{answer.errCode}: {foreign(answer.errMsg)}"), now)
            self._take_tokens(answer)
            getattr(self, f"_{about}_answered")(answer, now)
        elif about == "beat":
            self._beat_answered(what, answer, now)
        elif about == "take":
            what.why = foreign(answer.errMsg)
            self._take_answered(what, answer.errCode, answer, now)
        elif about == "leave":
            self._left_broker(what, now)
        else:
            self._other_answered(answer, now)

    def failed(self, number: int, fault: Fault, now: float) -> None:
        """Take the end of a call without an answer."""
        about, what = self._asks.pop(number)
        if about in ("register", "heartbeat", "close"):
            self._asking_master = False
            self._note(fault, now)
            self._master_failed(about, fault, now)
        elif about == "beat":
            self._beating.pop(what, None)
        elif about == "take":
            what.why = fault.text
            self._take_answered(what, 0, None, now)
        elif about == "leave":
            self._left_broker(what, now)
        else:
            self._other_answered(None, now)

    def released(self, key: str, consumed: bool, now: float) -> None:
        """Take the end of a partition's last pack; ``consumed``: it was, and the broker does not know it."""
        holding = self.holdings.get(key)
        if holding is None or holding.state is not State.RELEASING:
            return
        if holding.kept:
            self.holdings.enter(holding, State.WANTED, now)
            holding.due, holding.rounds = now, 0
        else:
            holding.consumed = consumed
            self.holdings.enter(holding, State.LEAVING, now)

    def lost(self, key: str, code: int, now: float) -> None:
        """Take a broker's word to a reader that this member does not hold a partition (411, 412, 415)."""
        holding = self.holdings.get(key)
        if holding is not None and holding.state in (State.HELD, State.RELEASING, State.LEAVING):
            self._drop(holding, code, now)

    # --- what kinds of members do in their own ways

    @abstractmethod
    def _registration(self) -> Any:
        """Return the message that registers this member at a master."""

    @abstractmethod
    def _heartbeat(self) -> Any:
        """Return the next heartbeat to the master."""

    @abstractmethod
    def _has_registered(self, answer: Any, now: float) -> None:
        """Take the answer of a master that has registered this member."""

    @abstractmethod
    def _has_heard(self, answer: Any, now: float) -> None:
        """Take the answer of a master that has taken a heartbeat."""

    @abstractmethod
    def _has_forgotten(self) -> None:
        """Take the news that the master has forgotten this member."""

    @abstractmethod
    def _has_missed(self) -> None:
        """Take the loss of an answer to a heartbeat."""

    @abstractmethod
    def _settle(self, now: float, key: str) -> None:
        """Take the news that a partition is held, or is not this member's any more."""

    @abstractmethod
    def _not_taken(self, holding: Holding, code: int, now: float) -> None:
        """Take a broker's last word that it does not register a partition; 0: it does not answer."""

    @abstractmethod
    def _other_answered(self, answer: Any, now: float) -> None:
        """Take the end of a call that is none of the above; None: it has no answer."""

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
            self._ask(self._masters.current, self._heartbeat_name, self._heartbeat(), "heartbeat")
        else:
            self._ask(self._masters.current, self._register_name, self._registration(), "register")

    def _note(self, fault: Fault, now: float) -> None:
        """Remember what is wrong with a master, and since when."""
        self.trouble = fault
        if self.troubled is None:
            self.troubled = now

    def _conditions(self) -> list[str]:
        return [str(Condition(topic, items)) for topic, items in self._options.topics.items() if items]

    def _full(self, *, now: bool) -> bool:
        """Return whether the next heartbeat lists all partitions; ``now``: it has to."""
        self._reports += 1
        full = now or self._report_soon or self._reports >= self._options.full_report_every
        if full:
            self._reports = 0
            self._report_soon = False
        return full

    def _proof(self) -> dict[str, Any]:
        """Return the fields that prove to a master who this is."""
        made = self._signature()
        if made is None:
            return {}
        info = messages.AuthenticateInfo(
            userName=made.user, timestamp=made.time_ms, nonce=made.nonce, othParams="", signature=made.signature
        )
        return {"authInfo": messages.MasterCertificateInfo(authInfo=info)}

    def _proof_if_asked(self) -> dict[str, Any]:
        return self._proof() if self._credentials else {}

    def _signature(self) -> Signature | None:
        user, password = self._options.user, self._options.password
        return Signature.make(user, password, self._wall_ms, self._random.randrange(_NONCES)) if user else None

    def _take_tokens(self, answer: Any) -> None:
        fields = answer.DESCRIPTOR.fields_by_name
        tasks = answer.opsTaskInfo if "opsTaskInfo" in fields else answer
        known = tasks.DESCRIPTOR.fields_by_name
        if answer.errCode == _CREDENTIALS or getattr(tasks, "requireAuth", False):
            self._credentials = True
        if "authorizedInfo" in fields and answer.HasField("authorizedInfo"):
            self._visit = answer.authorizedInfo.visitAuthorizedToken
        if answer.errCode != _OK:
            return
        for name, text in (("defFlow", "cluster"), ("groupFlow", "group")):
            field = f"{name}CheckId"
            if field not in known or not tasks.HasField(field):
                continue
            number = getattr(tasks, field)
            if number != self._ids[field]:  # without rules any more, it is that of none
                self._ids[field] = number
                self.rules[text] = getattr(tasks, f"{name}ControlInfo")
        if "qryPriorityId" in known and tasks.HasField("qryPriorityId"):
            self._ids["qryPriorityId"] = tasks.qryPriorityId

    def _register_answered(self, answer: Any, now: float) -> None:
        self._perhaps = False
        if answer.errCode == _OK:
            self._registered = self._fresh = True
            self._master_due = now
            if self.life is Life.JOINING:
                self.life = Life.MEMBER
            self._has_registered(answer, now)
        elif answer.errCode in _REFUSALS:
            self._out.append(Refusal(answer.errCode, foreign(answer.errMsg)))
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
        self._errors, self._fresh = 0, False
        self._has_heard(answer, now)

    def _begin_again(self, when: float) -> None:
        self._registered, self._errors = False, 0
        self._has_forgotten()
        self._report_soon = True
        self._master_due = when

    def _close_answered(self, answer: Any, now: float) -> None:
        self.life = Life.GONE

    def _master_failed(self, about: str, fault: Fault, now: float) -> None:
        # A member stays one: the next master says whether it knows it.
        if about == "heartbeat":
            self._report_soon = True
            self._has_missed()
        self._perhaps |= about == "register" and fault.sent and not fault.exception
        wait = self._masters.move()
        self._master_due = now + wait
        if about == "close" and self._closes >= max(2, len(self._options.masters)):
            self.life = Life.GONE  # every master was asked; they will miss this member's heartbeats

    # --- partitions

    def _give_back(self, holding: Holding, now: float) -> None:
        kept, holding.kept = holding.kept, False
        self._end_seek(holding, "revoked")
        if holding.state is State.HELD or (holding.state is State.RELEASING and kept):
            if holding.state is State.HELD:
                self.holdings.enter(holding, State.RELEASING, now)
            self._out.append(Release(holding.partition, now + self._options.confirm_wait_s))
            return
        if kept:  # nothing of it is read, and its broker has it for this member
            self._out.append(Release(holding.partition, now))
        if holding.state is State.WANTED:
            if kept:
                self.holdings.enter(holding, State.LEAVING, now)
            else:
                self._forget(holding, now)
        elif holding.state is State.REGISTERING:
            holding.unwanted, holding.kept = True, kept  # a master is told of it until its broker has it back

    def _give_all_back(self, now: float) -> None:
        for holding in self.holdings.within(*State):
            self._give_back(holding, now)

    def _end_seek(self, holding: Holding, problem: str, offset: int = -1, end: int = -1) -> None:
        """Tell whoever waits for a seek, if somebody does."""
        seek, holding.seek = holding.seek, None
        if seek is not None and seek.number:
            self._out.append(Reply(seek.number, problem, offset, end))

    def _forget(self, holding: Holding, now: float) -> None:
        self._end_seek(holding, "revoked")
        self.holdings.remove(holding)
        self._settle(now, holding.partition.key)

    def _drop(self, holding: Holding, code: int, now: float) -> None:
        self._out.append(Drop(holding.partition, code))
        self._forget(holding, now)
        self._tell_soon(now)

    def _tell_soon(self, now: float) -> None:
        """Let the master know at once what is held."""
        self._report_soon = True
        self._master_due = now

    # --- brokers

    def _ask_brokers(self, now: float) -> None:
        for holding in self.holdings.within(State.WANTED):
            if holding.due <= now:
                self.holdings.enter(holding, State.REGISTERING, now)
                holding.rounds += 1
                holding.asked = holding.seek
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
            "clientId": self._options.client, "groupName": self._options.group, "ssdStoreId": NONE,
            "qryPriorityId": self._ids["qryPriorityId"],
            "authInfo": messages.AuthorizedInfo(
                visitAuthorizedToken=self._visit, authAuthorizedToken=None if made is None else made.token
            ),
        }  # fmt: skip

    def _begins(self, holding: Holding) -> dict[str, Any]:
        """Return the fields of a registration that say where reading begins."""
        options, key = self._options, holding.partition.key
        first = key not in self._seen
        found: dict[str, Any] = {"readStatus": options.first_read if first else 0}
        if options.bound:
            found |= {"sessionKey": options.session, "sessionTime": self._session_ms}
            if first and holding.bound_start and key in options.offsets:
                found["currOffset"] = options.offsets[key]
        seek = holding.seek
        if seek is not None:  # one that is not checked asks where the end is, and moves nothing
            found["readStatus"] = _FROM_END if seek.offset == LATEST else 0
            found.pop("currOffset", None)
            if seek.checked and seek.offset != LATEST:
                found["currOffset"] = 0 if seek.offset == EARLIEST else seek.offset
        return found

    def _taking(self, holding: Holding) -> Any:
        partition, options = holding.partition, self._options
        return messages.RegisterRequestC2B(
            opType=_REGISTER, topicName=partition.topic, partitionId=partition.id,
            filterCondStr=options.topics.get(partition.topic, ()),
            **self._begins(holding), **self._to_broker(holding.address),
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

    def _take_answered(self, holding: Holding, code: int, answer: Any, now: float) -> None:
        if code == _CREDENTIALS and not holding.unwanted and self._can_sign(holding.address, signed=holding.signed):
            self._want_again(holding, now)
        elif code == _OK:
            self._seen.add(holding.partition.key)
            if holding.unwanted or self.life in (Life.LEAVING, Life.CLOSING):
                self.holdings.enter(holding, State.LEAVING, now)
            else:
                self._taken(holding, max(answer.currOffset, 0), answer, now)
        elif holding.unwanted or (holding.kept and not self._tries_again(holding, code)):
            if holding.kept and not holding.unwanted:
                self._out.append(Drop(holding.partition, code))
                self._tell_soon(now)
            self._give_up(holding, code, now)
        elif self._tries_again(holding, code):
            self._want_again(holding, now, self._options.register_pause_s)
        else:
            self._not_taken(holding, code, now)

    def _taken(self, holding: Holding, offset: int, answer: Any, now: float) -> None:
        """Hold a partition that its broker has registered, unless it is wanted from another place."""
        seek = holding.seek
        holding.rounds = 0
        if seek is not holding.asked:  # a later wish
            self._want_again(holding, now)
            return
        problem, end = "", answer.maxOffset if answer.HasField("maxOffset") else -1
        if seek is not None and not seek.checked:
            if seek.offset <= end or end < 0:
                seek.checked = True
                self._want_again(holding, now)
                return
            problem = "beyond"
        holding.kept = False
        self.holdings.enter(holding, State.HELD, now)
        self._out.append(Hold(holding.partition, offset, end))
        self._end_seek(holding, problem, offset, end if problem else -1)
        self._settle(now, holding.partition.key)

    def _tries_again(self, holding: Holding, code: int) -> bool:
        return holding.rounds < self._options.register_rounds and code in (0, 410, 503)

    def _want_again(self, holding: Holding, now: float, wait_s: float = 0.0) -> None:
        self.holdings.enter(holding, State.WANTED, now)
        holding.due = now + wait_s

    def _give_up(self, holding: Holding, code: int, now: float) -> None:
        """Forget a partition that its broker does not register; one that does not answer is told, it may have it."""
        if code == 0:
            self._end_seek(holding, "revoked")
            holding.kept = False
            self.holdings.enter(holding, State.LEAVING, now)
        else:
            self._forget(holding, now)

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
