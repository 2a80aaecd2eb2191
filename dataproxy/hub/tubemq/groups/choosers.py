"""Groups whose members choose their partitions: the master counts them and says what there is (20 to 22)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from dataproxy.hub.clients import Clients, End, Identity
from dataproxy.hub.tubemq.cluster.access import Access
from dataproxy.hub.tubemq.cluster.answers import BAD_REQUEST, UNKNOWN, RefusedError, success
from dataproxy.hub.tubemq.cluster.layout import Layout
from dataproxy.hub.tubemq.cluster.limits import MasterLimits
from dataproxy.hub.tubemq.cluster.room import Room
from dataproxy.hub.tubemq.groups.wishes import Wishes, read_topics, read_wishes, required_text

__all__ = ["Choosers"]

KIND: Final = "chooser"  #: in the registry of clients
_NOT_DEPLOYED, _OTHER_BALANCE, _OTHER_COUNT, _NODE_TAKEN = 431, 424, 429, 430
_GROUP_BYTES, _MEMBER_BYTES, _TEXT_BYTES = 2048, 1024, 100  # about
_MOST_TEXTS: Final = 1024  # of a report: one a topic


@dataclass(slots=True)
class _Chooser:
    node: int
    peer: str
    charged: int
    held: tuple[str, ...] = ()


@dataclass(slots=True)
class _Group:
    wishes: Wishes
    count: int  #: of members, by the word of each
    peer: str
    charged: int
    members: dict[str, _Chooser] = field(default_factory=dict)


class Choosers:
    """All such groups.  One thread; times are seconds of a monotonic clock.

    ``elsewhere`` tells whether a group is known as one whose partitions the master divides.
    """

    def __init__(
        self,
        clients: Clients,
        layout: Layout,
        access: Access,
        limits: MasterLimits,
        room: Room,
        elsewhere: Callable[[str], bool],
    ) -> None:
        self._clients, self._layout, self._access, self._room = clients, layout, access, room
        self._elsewhere = elsewhere
        self._groups: dict[str, _Group] = {}
        clients.add_kind(KIND, limits.consumer_s, self._ended, self._identity)

    def begin_again(self, now: float) -> None:
        """Forget all members."""
        self._clients.end_all(KIND, now)

    def has(self, group: str) -> bool:
        """Tell whether a group has members."""
        return group in self._groups

    def names(self) -> set[str]:
        """Return all groups."""
        return set(self._groups)

    def wishes(self, group: str) -> Wishes:
        """Return what the members of a group ask for."""
        return self._groups[group].wishes

    def members(self, group: str) -> dict[str, str]:
        """Return the members of a group, each with the address that it registered from."""
        return {client: one.peer for client, one in self._groups[group].members.items()}

    def held(self, group: str, client: str) -> tuple[str, ...]:
        """Return the texts of what a member holds, by its own word."""
        return self._groups[group].members[client].held

    def register(self, request: Any, peer: str, now: float) -> Any:
        """Take a member into its group.  Raises RefusedError."""
        client, _, name = (required_text(request, one) for one in ("clientId", "hostName", "groupName"))
        topics = read_topics(request.topicList)
        if missing := self._layout.missing(topics):
            raise RefusedError(_NOT_DEPLOYED, f"Requested topic [[{', '.join(missing[:10])}]] not deployed!")
        if not 0 <= request.nodeId < request.sourceCount:
            text = f"[Parameter error] nodeId {request.nodeId} is not one of 0 to {request.sourceCount - 1}"
            raise RefusedError(BAD_REQUEST, text)
        wishes = read_wishes(_Plain(request), topics)
        self._access.check_rights(name, topics, wishes.filters)
        if self._elsewhere(name):
            raise RefusedError(_OTHER_BALANCE, f"[Inconsistency subscribe] the master divides partitions of {name}")
        group = self._groups.get(name)
        if group is not None:
            self._check(group, name, wishes, request, client)
        self._leave(name, client)
        group = self._join(name, wishes, request, peer, client)
        self._clients.register(KIND, f"{client}@{name}", (name, client), now)
        return self._answer(request, request.subRepInfo, group, group.members[client], topics_too=False)

    def heartbeat(self, request: Any, now: float) -> Any:
        """Take what a member says, and tell it what is new.  Raises RefusedError."""
        group, member, node = self._member(request)
        if not self._clients.update(KIND, node, now):
            raise RefusedError(UNKNOWN, f"Invalid node id {node} the client may be timeout")
        return self._answer(request, request.subRepInfo, group, member)

    def metadata(self, request: Any, now: float) -> Any:
        """Tell a member what is new; this does not show that it lives.  Raises RefusedError."""
        group, member, _ = self._member(request)
        return self._answer(request, request, group, member)

    def close(self, group: str, client: str) -> None:
        """Let a member go."""
        self._clients.end(KIND, f"{client}@{group}", 0.0)

    @staticmethod
    def _check(group: _Group, name: str, wishes: Wishes, request: Any, client: str) -> None:
        group.wishes.check(wishes, name)
        if group.count != request.sourceCount:
            text = f"[Inconsistency subscribe] group {name} has {group.count} members, not {request.sourceCount}"
            raise RefusedError(_OTHER_COUNT, text)
        for other, member in group.members.items():
            if member.node == request.nodeId and other != client:
                raise RefusedError(_NODE_TAKEN, f"nodeId {request.nodeId} of group {name} is that of {other}")

    def _join(self, name: str, wishes: Wishes, request: Any, peer: str, client: str) -> _Group:
        group = self._groups.get(name)
        of_group = _GROUP_BYTES + wishes.size if group is None else 0
        self._room.take(peer, _MEMBER_BYTES + of_group)
        if group is None:
            group = self._groups[name] = _Group(wishes, request.sourceCount, peer, of_group)
        group.members[client] = _Chooser(request.nodeId, peer, _MEMBER_BYTES)
        return group

    def _member(self, request: Any) -> tuple[_Group, _Chooser, str]:
        client, name = (required_text(request, one) for one in ("clientId", "groupName"))
        group = self._groups.get(name)
        member = group.members.get(client) if group is not None else None
        if group is None or member is None:
            raise RefusedError(UNKNOWN, f"Not found consumer {client} of group {name} in holder!")
        return group, member, f"{client}@{name}"

    def _answer(self, request: Any, seen: Any, group: _Group, member: _Chooser, *, topics_too: bool = True) -> Any:
        """Take a report if there is one, and answer with the lists of which ``seen`` has another version."""
        if "reportSubInfo" in seen.DESCRIPTOR.fields_by_name and seen.reportSubInfo:
            self._report(member, tuple(seen.partSubInfo))
        version = self._layout.version
        answer = success(request.DESCRIPTOR.name, brokerConfigId=version)
        if seen.brokerConfigId != version:
            answer.brokerConfigList.extend(map(str, self._layout.brokers()))
        if topics_too:
            answer.topicMetaInfoId = version
            if seen.topicMetaInfoId != version:
                answer.topicMetaInfoList.extend(map(self._layout.metadata, sorted(group.wishes.topics)))
        return answer

    def _report(self, member: _Chooser, held: tuple[str, ...]) -> None:
        if len(held) > _MOST_TEXTS:
            raise RefusedError(BAD_REQUEST, f"partSubInfo has {len(held)} texts, at most {_MOST_TEXTS} are allowed")
        wanted = _MEMBER_BYTES + sum(len(text) + _TEXT_BYTES for text in held)
        if wanted > member.charged:
            self._room.take(member.peer, wanted - member.charged)
        elif wanted < member.charged:
            self._room.give(member.peer, member.charged - wanted)
        member.charged, member.held = wanted, held

    def _leave(self, name: str, client: str) -> None:
        group = self._groups.get(name)
        member = group.members.pop(client, None) if group is not None else None
        if group is None or member is None:
            return
        self._room.give(member.peer, member.charged)
        if not group.members:
            del self._groups[name]
            self._room.give(group.peer, group.charged)

    def _ended(self, node: str, value: tuple[str, str], now: float, why: End) -> None:
        self._leave(*value)

    def _identity(self, node: str, value: tuple[str, str]) -> Identity:
        name, client = value
        return Identity("tubemq", "consumer", client, name, self._groups[name].members[client].peer)


class _Plain:
    """A registration of who chooses, as one of an unbound member."""

    requireBound = False  # noqa: N815 - a field of the protocol

    def __init__(self, request: Any) -> None:
        self.topicCondition = request.topicCondition
