"""Registrations at brokers: under a group, or under a name beside it that nobody else has the partition under."""

from __future__ import annotations

import itertools
import os
import random
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dataproxy.consumer.ranges.calls import Prepared
from dataproxy.errors import GroupRefusedError, RemoteProtocolError, TransportError
from dataproxy.shown import foreign
from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.credentials import Signature

if TYPE_CHECKING:
    from dataproxy.config import ConsumerConfig
    from dataproxy.consumer.ranges.calls import Calls
    from dataproxy.consumer.ranges.places import Place

__all__ = ["CREDENTIALS", "FOUND", "TAKEN", "Client", "Registered", "new_client", "reader_name", "refusal_of"]

FOUND: Final = 200
TAKEN: Final = 410
CREDENTIALS: Final = 415
_REGISTER, _UNREGISTER = 31, 32
_STORED, _DISCARD = 0, 1  # readStatus of a registration, and of its end
_NONE: Final = -2
_NONCES: Final = 1 << 31
_MOST_NAMES: Final = 64

_numbers = itertools.count(1)


class Registered(NamedTuple):
    """What a broker says to a registration: a code, where the name reads next, and the end of the store."""

    code: int
    text: str
    group: str
    offset: int
    end: int


def reader_name(group: str, number: int) -> str:
    """Return the name beside a group under which a range is read; numbers are used again."""
    return f"{group}-read-{number}"


def new_client(group: str) -> str:
    """Return an id of a client that nobody else has."""
    return f"{group}_{os.getpid()}-{time.time_ns() // 1000}-{random.randrange(1 << 32):08x}-{next(_numbers)}-ranges"


class Client:
    """One client of brokers: it registers partitions, under a group or under a free name, and gives them back.

    One thread.
    """

    def __init__(self, calls: Calls, config: ConsumerConfig, client: str = "") -> None:
        self.calls, self._config = calls, config
        self.id = client or new_client(config.group)
        self._filters = dict(config.topics)
        self._requests: dict[tuple[str, Place, str, bool], Prepared] = {}

    def take(self, place: Place, offset: int) -> Registered:
        """Register a partition under the first name that is free, to read from an offset on.

        Raises TransportError if the broker refuses it or cannot be asked, GroupRefusedError if all names are taken.
        """
        for number in range(_MOST_NAMES):
            found = self.register(place, reader_name(self._config.group, number), offset)
            if found.code != TAKEN:
                return self._checked(place, found)
        raise GroupRefusedError(
            f"{_MOST_NAMES} readers have partition {place.key} under names of group {self._config.group!r} already",
            code="NAMES_TAKEN",
            hint="wait half a minute: brokers forget readers that were killed; or read with another group",
            details={"partition": place.key},
        )

    def register(self, place: Place, group: str, offset: int | None = None) -> Registered:
        """Register a partition, to read from an offset on or from the stored one; return whatever the broker says.

        Raises TransportError, RemoteProtocolError.
        """
        return self.registered(self.post_register(place, group, offset), group)

    def post_register(self, place: Place, group: str, offset: int | None = None) -> int:
        """Begin a registration; ``registered`` waits for its end."""
        message = messages.RegisterRequestC2B(
            opType=_REGISTER, topicName=place.topic, partitionId=place.partition, readStatus=_STORED,
            filterCondStr=self._filters.get(place.topic, ()), currOffset=offset, **self._who(group),
        )  # fmt: skip
        return self.calls.post(place.address, message)

    def registered(self, number: int, group: str) -> Registered:
        """Wait for the end of a registration.

        Raises TransportError, and RemoteProtocolError for a success that does not say where the partition is read:
        without offsets a store would look empty.
        """
        answer = self.calls.wait(number)
        told = answer.HasField("currOffset") and answer.HasField("maxOffset")
        if answer.errCode == FOUND and not (told and answer.currOffset >= 0 and answer.maxOffset >= 0):
            raise RemoteProtocolError(
                f"a broker takes {group!r} as the reader of a partition, and names no offsets of it"
            )
        return Registered(answer.errCode, foreign(answer.errMsg), group, answer.currOffset, answer.maxOffset)

    def post_unregister(self, place: Place, group: str, client: str = "") -> int:
        """Begin to give a partition back; what was read and not confirmed is not confirmed by it."""
        message = messages.RegisterRequestC2B(
            opType=_UNREGISTER, topicName=place.topic, partitionId=place.partition, readStatus=_DISCARD,
            **{**self._who(group), **({"clientId": client} if client else {})},
        )  # fmt: skip
        return self.calls.post(place.address, message)

    def post_get(self, place: Place, group: str) -> int:
        """Ask for the next pack."""
        return self.calls.post_again(place.address, self._prepared("get", place, group, consumed=False))

    def post_confirm(self, place: Place, group: str, *, consumed: bool) -> int:
        """Confirm the last pack; without ``consumed`` only ask where the next one begins."""
        return self.calls.post_again(place.address, self._prepared("confirm", place, group, consumed=consumed))

    def _prepared(self, kind: str, place: Place, group: str, *, consumed: bool) -> Prepared:
        """Return a request that is the same for each pack of a partition, written once."""
        key = (kind, place, group, consumed)
        known = self._requests.get(key)
        if known is None:
            who: dict[str, Any] = {
                "clientId": self.id, "topicName": place.topic, "partitionId": place.partition, "groupName": group
            }  # fmt: skip
            message: Any
            if kind == "get":
                message = messages.GetMessageRequestC2B(
                    lastPackConsumed=False, manualCommitOffset=False, escFlowCtrl=False, **who
                )
            else:
                message = messages.CommitOffsetRequestC2B(lastPackConsumed=consumed, **who)
            known = self._requests[key] = Prepared(message.DESCRIPTOR.name, message.SerializeToString())
        return known

    def post_heartbeat(self, places: list[Place], group: str) -> int:
        """Keep partitions of one broker."""
        message = messages.HeartBeatRequestC2B(
            partitionInfo=[place.text for place in places], readStatus=_STORED, **self._who(group)
        )
        return self.calls.post(places[0].address, message)

    def _who(self, group: str) -> dict[str, Any]:
        proof = None
        if self._config.user:
            now_ms, nonce = time.time_ns() // 1000000, random.randrange(_NONCES)
            proof = Signature.make(self._config.user, self._config.password.reveal(), now_ms, nonce).token
        info = messages.AuthorizedInfo(visitAuthorizedToken=_NONE, authAuthorizedToken=proof)
        return {"clientId": self.id, "groupName": group, "ssdStoreId": _NONE, "authInfo": info}

    def _checked(self, place: Place, found: Registered) -> Registered:
        if found.code != FOUND:
            raise refusal_of(place, found.group, found.code, found.text, user=bool(self._config.user))
        return found


def refusal_of(place: Place, group: str, code: int, text: str, *, user: bool) -> TransportError:
    """Return the error for a broker's refusal."""
    hint = "brokers that authorise groups have to allow the group and its names 'GROUP-read-0', 'GROUP-read-1', ..."
    if code == CREDENTIALS and not user:
        hint = "give the options user and password"
    return TransportError(
        f"broker {place.address.host}:{place.address.port} refuses partition {place.key} to {group!r}"
        f" with code {code}: {text!r}",
        code="BROKER_REFUSED",
        retriable=code in (500, 503),
        hint=hint,
        details={"partition": place.key, "group": group, "code": code, "text": text},
    )
