"""Masters and brokers of a simulated run, with what can be wrong with them."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from dataproxy.wire.tubemq import messages
from dataproxy.wire.tubemq.calls import METHODS
from dataproxy.wire.tubemq.texts import Broker as BrokerText
from dataproxy.wire.tubemq.texts import Partition
from tests.native.probe_tubemq import answer, frame, payload, read_calls
from tests.simgroup.hubmaster import HUB_TICK_S, HubMaster, token_at
from tests.simgroup.plan import Plan, S
from tests.simgroup.servers import MasterModel
from tests.support.tubeserver.answers import ServerError, failure
from tests.support.tubeserver.broker import Broker
from tests.support.tubeserver.settings import Settings
from tests.support.tubeserver.store import INDEX_BYTES

if TYPE_CHECKING:
    from tests.simgroup.laws import Laws
    from tests.simgroup.lines import Line

__all__ = ["GROUP", "AnyBroker", "BrokerHost", "Host", "MasterHost", "Masters", "true_ms"]

GROUP: Final = "g"
_EXCEPTION: Final = "org.apache.inlong.tubemq.corerpc.exception."
_STORED_US: Final = 5 * S  # between two times a broker stores offsets
_BEGIN_MS: Final = 1_764_043_200_000
_CLOCKS_APART_MS: Final = 20_000
_PACKS, _REGISTER = "GetMessageRequestC2B", "RegisterRequestC2B"


def true_ms(now: int) -> int:
    """Return the time of day in a run, as clocks that nobody has set have it."""
    return _BEGIN_MS + now // 1000


def _token(now: int) -> int:
    return token_at(now / S)


class Host(ABC):
    """A server process: it can be down, with or without a sign, and frozen for a time."""

    def __init__(self, label: str, plan: Plan) -> None:
        self.label = label
        self.plan = plan
        self.up = True
        self.silent = False  #: a connect to it, while it is down, finds nobody who refuses
        self.frozen_until = 0

    @abstractmethod
    def exchange(self, line: Line, serial: int, data: bytes) -> list[bytes]:
        """Take a request; return the frames that its connection gets now.  Raises ServerError for an exception."""

    def left(self, line: Line) -> None:  # noqa: B027 - a model need not know
        """Take the end of a connection."""


class _Model(Host):
    """A server that answers every call at once."""

    @abstractmethod
    def call(self, name: str, request: Any, now: int) -> Any:
        """Answer a call.  Raises ServerError for an exception."""

    def exchange(self, line: Line, serial: int, data: bytes) -> list[bytes]:
        """Take a request; return the frames that its connection gets now.  Raises ServerError for an exception."""
        call, world = read_calls(data), line.node.world
        method = METHODS[call["method"]]
        request: Any = getattr(messages, method.request).FromString(call["request"])
        message = self.call(method.request, request, world.now)
        if world.traced:
            world.note(f"{self.label} {_shown(method.request, request)} -> {_shown('', message)}")
        return [frame(serial, answer(method.number, message.SerializeToString()))]


class Masters:
    """All masters of the cluster: one leads and knows the group, or none does."""

    def __init__(self, plan: Plan, partitions: list[Partition], rng: random.Random, *, hub: bool = False) -> None:
        self.model: MasterModel | HubMaster
        if hub:
            self.model = HubMaster(plan, partitions, GROUP, rng)
        else:
            self.model = MasterModel(
                partitions, GROUP, rng, member_limit_s=plan.times.member_limit, balance_s=plan.times.balance
            )
        self.period = HUB_TICK_S if hub else plan.times.balance  #: s between two looks of the leader at its members
        self.hosts = [MasterHost(f"10.0.0.1:{8715 + i}", plan, self, i) for i in range(plan.masters)]
        self.leader: int | None = 0
        self.unready_until = 0
        self.refused_until = 0  #: until then no member is let in
        self.refusal = 0
        self.rules = (plan.rules, 1)
        self.model.lead(0.0)

    def lead(self, which: int, now: int) -> None:
        """Let another master lead, or the same one begin anew: it knows nothing."""
        self.leader = which
        self.model.lead(now / S)


class MasterHost(_Model):
    """One master."""

    def __init__(self, label: str, plan: Plan, masters: Masters, index: int) -> None:
        super().__init__(label, plan)
        self._masters, self._index = masters, index

    def call(self, name: str, request: Any, now: int) -> Any:
        """Answer a member."""
        masters = self._masters
        if masters.leader != self._index:
            raise ServerError(f"{_EXCEPTION}StandbyException", "this master is not the leader")
        if now < masters.unready_until:
            raise ServerError(f"{_EXCEPTION}ServerNotReadyException", "the server is starting")
        refusal = self._refusal(name, request, now)
        if refusal is not None:
            return refusal
        if isinstance(masters.model, HubMaster):
            return masters.model.call_with_rules(request, masters.rules, now / S, true_ms(now))
        answer = masters.model.call(name, request, now / S)
        if not answer.success or name == "CloseRequestC2M":
            return answer
        answer.authorizedInfo.visitAuthorizedToken = _token(now)
        if self.plan.auth and name == "HeartRequestC2M":
            answer.requireAuth = True
        text, number = masters.rules
        answer.defFlowCheckId, answer.defFlowControlInfo = -2, " "
        answer.groupFlowCheckId = number if text.strip() else -2
        answer.groupFlowControlInfo = text if text.strip() and request.groupFlowCheckId != number else " "
        return answer

    def _refusal(self, name: str, request: Any, now: int) -> Any:
        if name == "RegisterRequestC2M" and now < self._masters.refused_until:
            return failure(name, self._masters.refusal, "not in this group")
        if not self.plan.auth or isinstance(self._masters.model, HubMaster):
            return None
        proof = request.authInfo.authInfo
        if not proof.userName:
            return failure(name, 415, "Illegal value: authInfo.userName is Blank!")
        if abs(proof.timestamp - true_ms(now)) > _CLOCKS_APART_MS:
            return failure(name, 415, "Illegal value: timestamp out of effective period in authenticateToken!")
        return None


class AnyBroker(Host):
    """What is the same for the model of a broker and for the hub's: when it refuses calls, and for what."""

    def __init__(self, text: BrokerText, plan: Plan) -> None:
        super().__init__(f"{text.host}:{text.port}", plan)
        self.text = text
        self.starting_until = 0
        self.refused_until = 0
        self.refusal = 0  #: the code of all answers to requests for packs until then
        self.slow_disk_s = 0.0  #: what a commit takes at most
        self.bad_disk = False

    @abstractmethod
    def put(self, topic: str, partition: int, body: bytes, item: str) -> None:
        """Store a message."""

    @abstractmethod
    def owner(self, partition: Partition, now: int) -> str | None:
        """Return who has registered a partition."""

    @abstractmethod
    def between(self, topic: str, partition: int, begin: int, end: int) -> list[bytes]:
        """Return the bodies of a partition's messages between two offsets."""

    @abstractmethod
    def confirmed(self, topic: str, partition: int) -> int:
        """Return the group's offset."""

    @abstractmethod
    def end_of(self, topic: str, partition: int) -> int:
        """Return the least offset with which all messages of a partition are confirmed."""

    @abstractmethod
    def restart(self, now: int, *, crash: bool) -> None:
        """Begin anew, with what was stored."""

    def end(self) -> None:
        """End with the run."""

    def refused(self, name: str, request: Any, now: int) -> Any:
        """Return the answer to a call that is refused, or None.  Raises ServerError."""
        if now < self.starting_until:
            if name == _PACKS:
                return failure(name, 503, "Read StoreService temporary unavailable!")
            raise ServerError(f"{_EXCEPTION}ServerNotReadyException", "the broker is starting")
        if now < self.refused_until and (name == _PACKS or (name == _REGISTER and self.refusal in (403, 503))):
            more = {"minLimitTime": 150} if self.refusal == 452 else {}
            return failure(name, self.refusal, "not now", **more)
        if self.plan.auth and "authInfo" in request.DESCRIPTOR.fields_by_name:
            known = range(_token(now) - 5, _token(now) + 1)
            if request.authInfo.visitAuthorizedToken not in known:
                return failure(name, 415, "visit authorized token is not correct")
        return None


class BrokerHost(AnyBroker, _Model):
    """The model of a broker: what it has stored survives it, offsets of its last seconds and registrations do not."""

    def __init__(self, text: BrokerText, plan: Plan, laws: Laws) -> None:
        super().__init__(text, plan)
        settings = Settings(
            plan.topics, broker_id=text.id, lock_limit_s=plan.times.lock_limit, pack_bytes=plan.pack_bytes,
            require_auth=plan.auth,
        )  # fmt: skip
        self.broker = Broker(settings)
        self.bodies: dict[bytes, bytes] = {}  #: of messages, by their bytes in the store
        self._laws = laws
        self._saved: dict[tuple[str, str, int], tuple[int, int | None]] = {}

    def put(self, topic: str, partition: int, body: bytes, item: str) -> None:
        """Store a message."""
        flag, data = payload(b"$msgType$=" + item.encode() if item else b"", body)
        self.bodies[data] = body
        self.broker.put(topic, partition, data, flag, item)

    def owner(self, partition: Partition, now: int) -> str | None:
        """Return who has registered a partition."""
        return self.broker.locks.owner((GROUP, partition.topic, partition.id), now / S)

    def between(self, topic: str, partition: int, begin: int, end: int) -> list[bytes]:
        """Return the bodies of a partition's messages between two offsets."""
        entries = self.broker.stores[topic]._entries[begin // INDEX_BYTES : end // INDEX_BYTES]
        return [self.bodies[one.payload] for one in entries if one.partition == partition]

    def confirmed(self, topic: str, partition: int) -> int:
        """Return the group's offset."""
        found = self.broker.progress.get((GROUP, topic, partition))
        return found.confirmed if found is not None else 0

    def end_of(self, topic: str, partition: int) -> int:
        """Return the least offset with which all messages of a partition are confirmed."""
        entries = self.broker.stores[topic]._entries
        return 1 + max((one.offset for one in entries if one.partition == partition), default=-1)

    def restart(self, now: int, *, crash: bool) -> None:
        """Forget registrations; after a crash, offsets that were not stored yet as well."""
        positions = dict(self.broker.progress)
        if crash:
            for key, progress in list(positions.items()):
                tick, saved = self._saved.get(key, (-1, 0))
                if tick != now // _STORED_US:
                    continue
                self._laws.forgotten(self, key[1], key[2], saved or 0, progress.confirmed)
                if saved is None:
                    del positions[key]
                else:
                    progress.confirmed = saved
        self.broker.restart(positions)

    def call(self, name: str, request: Any, now: int) -> Any:
        """Answer a member, or its reader."""
        refusal = self.refused(name, request, now)
        if refusal is not None:
            return refusal
        if name == "HeartBeatRequestC2B":
            return self.broker.work(name, request, now / S)
        key = (request.groupName, request.topicName, request.partitionId)
        progress = self.broker.progress.get(key)
        before = None if progress is None else progress.confirmed
        if self._saved.get(key, (-1, 0))[0] != now // _STORED_US:
            self._saved[key] = (now // _STORED_US, before)
        answer = self.broker.work(name, request, now / S)
        if name == _REGISTER and answer.errCode == 200:
            tell = self._laws.granted if request.opType == 31 else self._laws.left
            tell(f"{self.text.id}:{request.topicName}:{request.partitionId}", request.clientId)
        after = self.broker.progress[key].confirmed if before is not None else 0
        if before is not None and after > before:
            self._laws.moved(self, request.topicName, request.partitionId, before, after)
        return answer


def _shown(name: str, message: Any) -> str:
    """Return a message in one line."""
    left_out = ("clientId", "groupName", "ssdStoreId", "qryPriorityId", "hostName", "jdkVersion", "success", "authInfo")
    parts = []
    for field, value in message.ListFields():
        if field.name == "messages":
            parts.append(f"messages={[one.payLoadData.decode() for one in value]}")
        elif field.name not in left_out:
            text = str(value).replace("\n", " ")
            parts.append(f"{field.name}={text}")
    who = f" of {message.clientId}" if name else ""
    return f"{name}{who} {' '.join(parts)}"
