"""This hub as a broker at a master: which call comes next (7 to 9), and what its answer changes.

It decides, and does nothing by itself: the time and answers come in, calls go out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dataproxy.hub.tubemq.cluster.answers import NONE, OK, UNKNOWN
from dataproxy.hub.tubemq.cluster.layout import TopicAt
from dataproxy.logs import logger
from dataproxy.masters.target import Address
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.credentials import Signature
from dataproxy.wire.tubemq.deployed import BrokerClient, Defaults, TopicText, checksum
from dataproxy.wire.tubemq.texts import BROKER_TLS_PORT, Broker

__all__ = ["Call", "Joining", "JoiningTimes", "Told"]

_log: Final = logger("hub.tubemq")
_NEVER: Final = float("inf")
_SERVES: Final = 0  # status of reads and of writes
_NO_TEXT: Final = " "
_TOKEN: Final = re.compile(r"\s*-?[0-9]{1,19}\s*", re.ASCII)


@dataclass(frozen=True)
class JoiningTimes:
    """Seconds."""

    period_s: float = 8.0  #: between two heartbeats
    pause_s: float = 0.5  #: after every master was tried in vain, doubled each time
    longest_pause_s: float = 4.0


class Call(NamedTuple):
    """A call that is to be made now."""

    master: Address
    name: str  #: of the message
    request: Any


class Told(NamedTuple):
    """What masters have told this broker."""

    rules: str = _NO_TEXT  #: of flow control, for all groups
    tokens: tuple[int, ...] = ()  #: that clients may show
    topics: tuple[TopicText, ...] = ()  #: that it shall have, where the master decides it


class Joining:
    """One thread; times are seconds of a monotonic clock.

    ``broker`` is this broker as clients reach it.  ``sign`` makes a proof of who it is, None if nobody asks.  A master
    that does not know what this broker has is told; one that says what it shall have (TubeMQ's do) is told that it has
    all of it.
    """

    def __init__(
        self,
        broker: Broker,
        masters: Sequence[Address],
        version: str,
        times: JoiningTimes | None = None,
        sign: Callable[[], Signature] | None = None,
    ) -> None:
        self._broker, self._version, self._sign = broker, version, sign
        self._times = times if times is not None else JoiningTimes()
        self._masters = tuple(masters)
        self._at = 0  # in the masters
        self._tried = 0  # in vain, one after the other
        self._pause = self._times.pause_s
        self._topics: dict[str, TopicAt] = {}
        self._number = 1  # of this broker's own configuration
        self._told_number, self._told_sum, self._told_defaults = NONE, NONE, _NO_TEXT  # of the master's
        self._told_texts: list[str] = []
        self._rules_number = NONE
        self._reports = False  # the next heartbeat has all of it
        self._ending = False
        self._next = 0.0
        self._said = ""
        self.is_online = False  #: a master knows this broker
        self.told = Told()

    # --- what changes here

    def set_topics(self, topics: Mapping[str, TopicAt], now: float) -> None:
        """Say what this broker has; the master is told at once."""
        if dict(topics) != self._topics:
            self._topics = dict(topics)
            self._number += 1
            self._reports = True
            self._next = min(self._next, now)

    def set_masters(self, masters: Sequence[Address], now: float) -> None:
        """Say where masters are; if the present one is none of them, this broker registers at another one at once."""
        current = self._masters[self._at] if self._masters else None
        self._masters = tuple(masters)
        if current in self._masters:
            self._at = self._masters.index(current)
            return
        self._at = self._tried = 0
        self.is_online = False
        self._next = now if self._masters else _NEVER

    def end(self, now: float) -> None:
        """Leave the master with the next call; there is none after it."""
        self._ending = True
        self._next = now if self.is_online else _NEVER

    @property
    def next_at(self) -> float:
        """Return when ``next_call`` has to be asked next."""
        return self._next

    # --- calls

    def next_call(self, now: float) -> Call | None:
        """Return the call to be made now; its end is to be told by ``answered`` or ``failed``."""
        if now < self._next or not self._masters:
            return None
        master = self._masters[self._at]
        if self._ending:
            request = messages.CloseRequestB2M(brokerId=str(self._broker.id))
        elif self.is_online:
            request = self._heartbeat()
        else:
            request = self._registration()
        if self._sign is not None:
            one = self._sign()
            request.authInfo.authInfo.CopyFrom(
                messages.AuthenticateInfo(
                    userName=one.user, timestamp=one.time_ms, nonce=one.nonce, othParams="", signature=one.signature
                )
            )
        self._next = _NEVER
        return Call(master, request.DESCRIPTOR.name, request)

    def answered(self, call: Call, answer: Any, now: float) -> None:
        """Take a master's answer."""
        if call.name == "CloseRequestB2M":
            self.is_online = False
            return
        if answer.errCode == UNKNOWN and call.name == "HeartRequestB2M":
            self.is_online = False
            self._next = now
        elif answer.errCode != OK:
            self.failed(call, f"{answer.errCode}: {answer.errMsg}", now)
        elif call.master in self._masters:
            self._taken(call, answer, now)

    def failed(self, call: Call, why: str, now: float) -> None:
        """Take the end of a call without an answer, or with a refusal: the next master is tried, after all a pause."""
        if self._ending:
            self.is_online = False
            return
        if why != self._said:
            _log.warning("master %s:%d does not take this broker: %s", *call.master, why)
            self._said = why
        self.is_online = False
        self._tried += 1
        if not self._masters:
            return
        self._at = (self._at + 1) % len(self._masters)
        if self._tried % len(self._masters):
            self._next = now
        else:
            self._next = now + self._pause
            self._pause = min(2 * self._pause, self._times.longest_pause_s)

    # --- inside

    def _taken(self, call: Call, answer: Any, now: float) -> None:
        if not self.is_online:
            _log.info("master %s:%d has taken this broker", *call.master)
        self.is_online, self._said = True, ""
        self._tried, self._pause = 0, self._times.pause_s
        self._reports = False
        soon = False
        if answer.takeConfInfo:
            self._configured(answer)
            soon = self._reports = True
        if call.name == "HeartRequestB2M" and answer.needReportData:
            soon = self._reports = True
        elif call.name == "HeartRequestB2M" and call.request.curBrokerConfId != self._config()[0]:
            soon = self._reports = True  # it has changed while the call was under way
        if answer.HasField("flowCheckId") and answer.flowCheckId != self._rules_number:
            self._rules_number = answer.flowCheckId
            self.told = self.told._replace(rules=answer.flowControlInfo or _NO_TEXT)
        tokens = answer.brokerAuthorizedInfo.visitAuthorizedToken.split(",")
        if answer.HasField("brokerAuthorizedInfo") and all(map(_TOKEN.fullmatch, tokens)):
            self.told = self.told._replace(tokens=tuple(map(int, tokens)))
        self._next = now if soon else now + self._times.period_s

    def _configured(self, answer: Any) -> None:
        """Take what the master says that this broker shall have; texts that are none are left out."""
        try:
            defaults = Defaults.read(answer.brokerDefaultConfInfo)
            topics = tuple(TopicText.read(text, defaults) for text in answer.brokerTopicSetConfInfo if text.strip())
        except ValueError as error:
            _log.warning("the master's configuration of this broker is not taken: %s", error)
            return
        self._told_number, self._told_sum = answer.curBrokerConfId, answer.confCheckSumId
        self._told_defaults = answer.brokerDefaultConfInfo or _NO_TEXT
        self._told_texts = [text for text in answer.brokerTopicSetConfInfo if text.strip()]
        self.told = self.told._replace(topics=topics)

    def _config(self) -> tuple[int, int, str, list[str]]:
        """Return (number, sum, defaults, topics) as they are reported."""
        if self._told_number != NONE:
            return self._told_number, self._told_sum, self._told_defaults, self._told_texts
        texts = [
            str(TopicText(name, at.partitions, at.stores, at.publish, at.subscribe))
            for name, at in sorted(self._topics.items())
        ]
        defaults = str(Defaults())
        return self._number, checksum(defaults, texts), defaults, texts

    def _registration(self) -> Any:
        number, total, defaults, texts = self._config()
        return messages.RegisterRequestB2M(
            clientId=str(BrokerClient(self._broker, self._version)), brokerOnline=True, enableTls=False,
            readStatusRpt=_SERVES, writeStatusRpt=_SERVES, curBrokerConfId=number, confCheckSumId=total,
            brokerDefaultConfInfo=defaults, brokerTopicSetConfInfo=texts, ssdStoreId=NONE,
            flowCheckId=self._rules_number, qryPriorityId=NONE, tlsPort=BROKER_TLS_PORT,
        )  # fmt: skip

    def _heartbeat(self) -> Any:
        number, total, defaults, texts = self._config()
        request = messages.HeartRequestB2M(
            brokerId=str(self._broker.id), brokerOnline=True, readStatusRpt=_SERVES, writeStatusRpt=_SERVES,
            curBrokerConfId=number, confCheckSumId=total, takeConfInfo=self._reports, takeRemovedTopicInfo=False,
            ssdStoreId=NONE, flowCheckId=self._rules_number, qryPriorityId=NONE,
        )  # fmt: skip
        if self._reports:
            request.brokerDefaultConfInfo = defaults
            request.brokerTopicSetConfInfo.extend(texts)
        return request
