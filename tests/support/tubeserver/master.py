"""A master: producers (1 to 3) and groups of consumers (4 to 6); partitions are divided by the model of `simgroup`."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dataproxy.wire.tubemq.texts import Broker, Condition, Partition, Topic, TopicPart
from tests.simgroup.servers import CYCLES_OF_AN_EVENT, Bound, ChoiceModel, MasterModel
from tests.support.tubeserver.answers import ServerError, failure, success
from tests.support.tubeserver.settings import Settings

__all__ = ["Master", "Rules"]

_NONE: Final = -2  # of ids
_TOKEN: Final = 1_700_000_000_000  # visitAuthorizedToken: the same for everybody, and not looked at
_SHORTEST_S: Final = 0.01  # of a balance's period, when the cycles of an event are counted
_CLOCKS_APART_MS: Final = 20_000
_CRASHED: Final = "java.lang.reflect.InvocationTargetException"


@dataclass
class Rules:
    """A text of flow rules with the number that tells its version."""

    text: str
    number: int

    def tell(self, answer: Any, field: str, known: int) -> None:
        """Put them into an answer: the text only for who has another version."""
        setattr(answer, f"{field}CheckId", self.number if self.text else _NONE)
        setattr(answer, f"{field}ControlInfo", self.text if self.text and known != self.number else " ")


@dataclass
class _Group:
    """What the first member of a group fixes for all others, and the group's state."""

    model: MasterModel
    topics: frozenset[str]
    filters: dict[str, frozenset[str]]
    bound: tuple[str, bool, int] | None  # session key, larger wins, members


@dataclass
class _Choosing:
    """A group whose members choose their partitions, and what the first one has fixed."""

    model: ChoiceModel
    topics: frozenset[str]


class Master:
    """The only master.  One thread."""

    def __init__(self, settings: Settings, brokers: list[Broker]) -> None:
        self._settings, self._brokers, self._broker = settings, brokers, brokers[0]
        self._random = random.Random(settings.seed)
        self._version = time.time_ns() // 1_000_000  # of the list of brokers
        self._groups: dict[str, _Group] = {}
        self._choosing: dict[str, _Choosing] = {}
        self._producers: dict[str, float] = {}
        self.cluster_rules, self.group_rules = Rules(settings.cluster_rules, 1), Rules(settings.group_rules, 1)
        self._work: dict[str, Callable[[Any, float], Any]] = {
            "RegisterRequestP2M": self._register_producer,
            "HeartRequestP2M": self._heartbeat_of_producer,
            "CloseRequestP2M": self._close_producer,
            "RegisterRequestC2M": self._register,
            "HeartRequestC2M": self._heartbeat,
            "CloseRequestC2M": self._close,
            "RegisterRequestC2MV2": self._register_chooser,
            "HeartRequestC2MV2": self._work_of_chooser,
            "GetPartMetaRequestC2M": self._work_of_chooser,
        }

    def restart(self) -> None:
        """Forget producers and groups."""
        self._groups.clear()
        self._choosing.clear()
        self._producers.clear()

    @property
    def producers(self) -> list[str]:
        """Return the clients that have registered as producers, and have not left."""
        return list(self._producers)

    def work(self, name: str, request: Any, now: float) -> Any:
        """Answer a call, by the name of its message."""
        refusal = self._refusal(name, request)
        return refusal if refusal is not None else self._work[name](request, now)

    def members(self, group: str, now: float) -> list[str]:
        """Return the clients of a group, in the order of their registration."""
        self._forget(now)
        if group in self._choosing:
            return self._choosing[group].model.members
        return self._groups[group].model.members if group in self._groups else []

    def held(self, group: str, client: str) -> tuple[str, ...]:
        """Return the partitions that a client which chooses has reported."""
        return self._choosing[group].model.held(client)

    def _refusal(self, name: str, request: Any) -> Any:
        if self._settings.require_auth:
            proof = request.authInfo.authInfo
            if not proof.userName.strip():
                return failure(name, 415, "Illegal value: authInfo.userName is Blank!")
            if not proof.signature.strip():
                return failure(name, 415, "Illegal value: authInfo.signature is Blank!")
            if abs(time.time_ns() // 1_000_000 - proof.timestamp) > _CLOCKS_APART_MS:
                return failure(name, 415, "Illegal value: timestamp out of effective period in authenticateToken!")
        for field in ("clientId", "hostName", "groupName"):
            if field in request.DESCRIPTOR.fields_by_name and not getattr(request, field).strip():
                return failure(name, 400, f"Request miss necessary {field} data!")
        return None

    # --- producers

    def _register_producer(self, request: Any, now: float) -> Any:
        self._producers[request.clientId] = now + self._settings.producer_limit_s
        answer = success(
            "RegisterRequestP2M", brokerCheckSum=self._version, brokerInfos=list(map(str, self._brokers)),
            authorizedInfo={"visitAuthorizedToken": _TOKEN},
        )  # fmt: skip
        self._tell_largest(answer, request)
        return answer

    def _heartbeat_of_producer(self, request: Any, now: float) -> Any:
        if self._producers.get(request.clientId, now - 1) < now:
            text = f"Invalid node id {request.clientId} the client may be timeout"
            return failure("HeartRequestP2M", 411, text)
        self._producers[request.clientId] = now + self._settings.producer_limit_s
        topics = self._settings.topics
        infos = [
            str(Topic(name, tuple(TopicPart(one.id, topics[name], 1) for one in self._brokers), None))
            for name in dict.fromkeys(request.topicList)
            if name in topics and name not in self._settings.closed
        ]
        answer = success(
            "HeartRequestP2M", brokerCheckSum=self._version, topicInfos=infos,
            brokerInfos=[] if request.brokerCheckSum == self._version else list(map(str, self._brokers)),
            authorizedInfo={"visitAuthorizedToken": _TOKEN},
        )  # fmt: skip
        self._tell_largest(answer, request)
        return answer

    def _close_producer(self, request: Any, now: float) -> Any:
        self._producers.pop(request.clientId, None)
        return success("CloseRequestP2M")

    def _tell_largest(self, answer: Any, request: Any) -> None:
        """Put the settings of producers into an answer, for those who know other ones."""
        if not request.HasField("appdConfig"):
            return
        most = self._settings.max_body_bytes
        answer.appdConfig.configId = _NONE if most is None else 1
        if most is not None and request.appdConfig.configId != 1:
            answer.appdConfig.maxMsgSize = most

    # --- consumers

    def _forget(self, now: float) -> None:
        """Let the time of every group pass; one without members is no group any more."""
        for name, group in list(self._groups.items()):
            group.model.tick(now)
            if not group.model.members:
                del self._groups[name]
        for name, choosing in list(self._choosing.items()):
            choosing.model.tick(now)
            if not choosing.model.members:
                del self._choosing[name]

    def _register(self, request: Any, now: float) -> Any:
        self._forget(now)
        wanted = self._read_wishes(request)
        if not isinstance(wanted, _Group):
            return wanted
        group = self._groups.get(request.groupName, wanted)
        refusal = self._mismatch(request, group, wanted)
        if refusal is not None:
            return refusal
        if request.groupName in self._choosing:
            return failure("RegisterRequestC2M", 424, "[Inconsistency subscribe] the group's members choose partitions")
        if group is wanted:
            group.model.lead(now)
        answer = group.model.call("RegisterRequestC2M", request, now)
        self._groups[request.groupName] = group
        answer.authorizedInfo.visitAuthorizedToken = _TOKEN
        self._tell_rules(answer, request)
        return answer

    def _read_wishes(self, request: Any) -> Any:
        """Return the group that a request describes, or the answer that refuses it."""
        name = "RegisterRequestC2M"
        topics = {topic.strip() for topic in request.topicList if topic.strip()}
        if not topics:
            return failure(name, 400, "Request miss necessary subscribed topicList data!")
        unknown = sorted(topics - set(self._settings.topics))
        if unknown:
            return failure(name, 431, f"Requested topic [[{', '.join(unknown)}]] not deployed!")
        filters = {}
        for text in request.topicCondition:
            condition = Condition.read(text)
            if not condition.items:
                raise ServerError(_CRASHED, "")  # the real one fails on it
            filters[condition.topic] = frozenset(condition.items)
        bound = None
        if request.requireBound:
            larger = request.selectBig if request.HasField("selectBig") else True
            bound = (request.sessionKey.strip(), larger, request.totalCount)
            if not bound[0]:
                return failure(name, 400, "[Parameter error] blank value of sessionKey!")
            if bound[2] <= 0:
                return failure(name, 400, "[Parameter error] totalSourceCount must over zero!")
        allowed = self._settings.groups
        if allowed is not None and request.groupName not in allowed:
            return failure(name, 450, f"[unauthorized subscribe] {request.groupName} is not allowed")
        return _Group(self._model(request.groupName, topics, bound), frozenset(topics), filters, bound)

    def _model(self, group: str, topics: set[str], bound: tuple[str, bool, int] | None) -> MasterModel:
        settings = self._settings
        partitions = [
            Partition(self._broker, topic, i) for topic in sorted(topics) for i in range(settings.topics[topic])
        ]
        cycles = max(CYCLES_OF_AN_EVENT, math.ceil(settings.event_limit_s / max(settings.balance_s, _SHORTEST_S)))
        return MasterModel(
            partitions, group, self._random, bound=None if bound is None else Bound(bound[2], bound[1]),
            member_limit_s=settings.member_limit_s, balance_s=settings.balance_s, event_cycles=cycles,
        )  # fmt: skip

    @staticmethod
    def _mismatch(request: Any, group: _Group, wanted: _Group) -> Any:
        """Return the answer to who asks for another thing than the group's first member, None if it is the same."""

        def differs(code: int, what: str) -> Any:
            text = f"[Inconsistency subscribe] {request.clientId}: {what} differ from those of the group"
            return failure("RegisterRequestC2M", code, text)

        if (group.bound is None) != (wanted.bound is None):
            return differs(424, "kinds of subscription")
        if group.topics != wanted.topics:
            return differs(425, "topics")
        if group.filters != wanted.filters:
            return differs(426, "filters")
        if group.bound is not None and wanted.bound is not None:
            for code, what, i in ((427, "session keys", 0), (428, "values of selectBig", 1), (429, "counts", 2)):
                if group.bound[i] != wanted.bound[i]:
                    return differs(code, what)
        return None

    def _heartbeat(self, request: Any, now: float) -> Any:
        self._forget(now)
        group = self._groups.get(request.groupName)
        if group is None:
            return failure("HeartRequestC2M", 411, f"Not found groupName {request.groupName} in holder!")
        answer = group.model.call("HeartRequestC2M", request, now)
        if answer.success:
            answer.authorizedInfo.visitAuthorizedToken = _TOKEN
            self._tell_rules(answer, request)
        return answer

    def _close(self, request: Any, now: float) -> Any:
        group = self._groups.get(request.groupName)
        if group is not None:
            group.model.call("CloseRequestC2M", request, now)
        choosing = self._choosing.get(request.groupName)
        if choosing is not None:
            choosing.model.leave(request.clientId)
        self._forget(now)
        return success("CloseRequestC2M")

    # --- consumers that choose

    def _register_chooser(self, request: Any, now: float) -> Any:
        name = "RegisterRequestC2MV2"
        self._forget(now)
        topics = frozenset(topic.strip() for topic in request.topicList if topic.strip())
        unknown = sorted(topics - set(self._settings.topics))
        if unknown:
            return failure(name, 431, f"Requested topic [[{', '.join(unknown)}]] not deployed!")
        if request.groupName in self._groups:
            return failure(name, 424, "[Inconsistency subscribe] the group's partitions are divided by the master")
        group = self._choosing.get(request.groupName)
        if group is None:
            settings = self._settings
            texts = [f"{topic}#{self._broker.id}:1:{settings.topics[topic]}:1" for topic in sorted(topics)]
            model = ChoiceModel([self._broker], texts, request.sourceCount, member_limit_s=settings.member_limit_s)
            group = _Choosing(model, topics)
        if group.topics != topics:
            return failure(name, 425, "[Inconsistency subscribe] topics differ from those of the group")
        if group.model.count != request.sourceCount:
            return failure(name, 429, "[Inconsistency subscribe] counts differ from those of the group")
        self._choosing[request.groupName] = group
        return self._of_chooser(name, group, request, now)

    def _work_of_chooser(self, request: Any, now: float) -> Any:
        self._forget(now)
        name = request.DESCRIPTOR.name
        group = self._choosing.get(request.groupName)
        if group is None:
            return failure(name, 411, f"Not found groupName {request.groupName} in holder!")
        return self._of_chooser(name, group, request, now)

    def _of_chooser(self, name: str, group: _Choosing, request: Any, now: float) -> Any:
        answer = group.model.call(name, request, now)
        if answer.errCode == 200 and name != "GetPartMetaRequestC2M":
            answer.authorizedInfo.visitAuthorizedToken = _TOKEN
            tasks = answer.opsTaskInfo
            tasks.qryPriorityId = _NONE
            self.cluster_rules.tell(tasks, "defFlow", request.opsTaskInfo.defFlowCheckId)
            self.group_rules.tell(tasks, "groupFlow", request.opsTaskInfo.groupFlowCheckId)
        return answer

    def _tell_rules(self, answer: Any, request: Any) -> None:
        if not (request.HasField("defFlowCheckId") or request.HasField("groupFlowCheckId")):
            return
        answer.ssdStoreId = answer.qryPriorityId = _NONE
        self.cluster_rules.tell(answer, "defFlow", request.defFlowCheckId)
        self.group_rules.tell(answer, "groupFlow", request.groupFlowCheckId)
