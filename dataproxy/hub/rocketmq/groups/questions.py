"""Requests to clients that are answered: the offsets of members (223, 221), and what is passed on (307, 309, 326).

All clients are asked at the same time, each has the same limit, and who asked gets what has come and reads what is
missing.  A client whose connection ends has failed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

from dataproxy.errors import RemoteProtocolError
from dataproxy.hub.rocketmq.clients.actions import Ask, Outbox, RefusedError, Reply
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.clients.members import Member, Members
from dataproxy.problems import shown
from dataproxy.wire.rocketmq.codes import LEAST_VERSIONS, Answer, Code
from dataproxy.wire.rocketmq.headers import PushedReply, StatusOf
from dataproxy.wire.rocketmq.queues import Queue, read_own_offsets, write_member_offsets

__all__ = ["Answered", "Questions"]

_TELLS_OFFSETS: Final = LEAST_VERSIONS["reset offsets, tell offsets"]
_TELLS_STATE: Final = LEAST_VERSIONS["tell its state, consume a message"]
_NAMED: Final = 10  # members in a remark
_NUMBERS: Final = 1 << 31  # of requests; by the time that one is used again its first question has ended


class Answered(NamedTuple):
    """A client's answer; a ``code`` of None: there is none, and the remark says why."""

    code: int | None
    remark: str
    body: bytes = b""


class _Waiting(NamedTuple):
    connection: int
    then: Callable[[Answered], None]


@dataclass(slots=True)
class _Status:
    """An administrator's question, and what has come for it."""

    call: Any
    asked: int
    offsets: dict[str, dict[Queue, int]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class Questions:
    """What clients were asked.  One thread; times are seconds of a monotonic clock."""

    def __init__(self, members: Members, limits: Limits, outbox: Outbox) -> None:
        self._members, self._limits, self._outbox = members, limits, outbox
        self._waiting: dict[int, _Waiting] = {}
        self._connections: dict[int, dict[int, None]] = {}  # the numbers of each
        self._ends: list[tuple[float, int]] = []  # a heap; some may have their answers already
        self._number = 0

    # --- offsets of members

    def ask_status(self, call: Any, header: StatusOf, now: float) -> None:
        """Ask the members of a group, or one of them, for their offsets; what came is a Reply.  Raises RefusedError."""
        members = self._members.of(header.group)
        if header.client_addr:
            members = tuple(one for one in members if one.client_id == header.client_addr)
        if not members:
            who = f"no client {shown(header.client_addr)}" if header.client_addr else "no member"
            raise RefusedError(Answer.CONSUMER_NOT_ONLINE, f"the group {shown(header.group)} has {who}")
        status = _Status(call, len(members))
        asked = [one for one in members if one.peer.version >= _TELLS_OFFSETS]
        self._check_room(len(asked))
        status.failed = {
            one.client_id: f"its version is {one.peer.version}; {_TELLS_OFFSETS} is the first that tells its offsets"
            for one in members
            if one.peer.version < _TELLS_OFFSETS
        }
        own = StatusOf(header.topic, header.group)
        for one in asked:
            then = partial(self._collect, status, one)
            self._ask(one.peer.connection, Code.GET_CONSUMER_STATUS_FROM_CLIENT, own, b"", now, self._limits.status,
                      then)  # fmt: skip
        self._finish(status)

    def _collect(self, status: _Status, member: Member, answer: Answered) -> None:
        if answer.code == Answer.SUCCESS:
            try:
                status.offsets[member.client_id] = read_own_offsets(answer.body)
            except RemoteProtocolError as error:
                status.failed[member.client_id] = str(error)
        else:
            status.failed[member.client_id] = answer.remark or f"it answered {answer.code}"
        self._finish(status)

    def _finish(self, status: _Status) -> None:
        if len(status.offsets) + len(status.failed) < status.asked:
            return
        remark = ""
        if status.failed:
            named = [f"{shown(client)} ({why})" for client, why in sorted(status.failed.items())[:_NAMED]]
            more = len(status.failed) - len(named)
            remark = f"{len(status.failed)} of {status.asked} members have told nothing: {', '.join(named)}"
            remark += f", and {more} more" if more else ""
        code = Answer.SUCCESS if status.offsets else Answer.SYSTEM_ERROR
        self._outbox.append(Reply(status.call, code, remark, write_member_offsets(status.offsets)))

    # --- passing on

    def relay(
        self, call: Any, code: int, group: str, client_id: str, fields: Mapping[str, str], body: bytes, now: float
    ) -> None:
        """Pass a request on to a client; its answer, or that it has none, is a Reply.  Raises RefusedError."""
        member = self._members.find(group, client_id)
        if member is None:
            text = f"the group {shown(group)} has no client {shown(client_id)}"
            raise RefusedError(Answer.SYSTEM_ERROR, text)
        if member.peer.version < _TELLS_STATE:
            text = f"the version of the client {shown(client_id)} is {member.peer.version}; {_TELLS_STATE} is needed"
            raise RefusedError(Answer.SYSTEM_ERROR, text)
        self._check_room(1)

        def then(answer: Answered) -> None:
            if answer.code is None:
                text = f"the client {shown(client_id)} of the group {shown(group)}: {answer.remark}"
                self._outbox.append(Reply(call, Answer.CONSUME_MSG_TIMEOUT, text))
            else:
                self._outbox.append(Reply(call, answer.code, answer.remark, answer.body))

        self._ask(member.peer.connection, code, fields, body, now, self._limits.relay, then)

    def pass_reply(
        self, call: Any, client_id: str, connection: int, header: PushedReply, body: bytes,
        place: Mapping[str, str], now: float,
    ) -> None:  # fmt: skip
        """Give a reply to the client that waits for it; what it says of it is a Reply.  Raises RefusedError.

        ``place``: the fields of an answer that says that it was taken.
        """
        self._check_room(1)

        def then(answer: Answered) -> None:
            if answer.code == Answer.SUCCESS:
                self._outbox.append(Reply(call, Answer.SUCCESS, fields=place))
                return
            why = answer.remark or f"it answered {answer.code}"
            text = f"push reply message to {shown(client_id)} fail: {why}"
            self._outbox.append(Reply(call, Answer.SYSTEM_ERROR, text))

        self._ask(connection, Code.PUSH_REPLY_MESSAGE_TO_CLIENT, header, body, now, self._limits.reply, then)

    # --- the table

    def answered(self, number: int, connection: int, answer: Answered) -> bool:
        """Take a client's answer; False if nobody waits for it, or another client was asked."""
        waiting = self._waiting.get(number)
        if waiting is None or waiting.connection != connection:
            return False
        self._end(number, answer)
        return True

    def closed(self, connection: int) -> None:
        """Let the questions fail that a connection can answer no more."""
        for number in list(self._connections.get(connection, ())):
            self._end(number, Answered(None, "its connection ended before it had answered"))

    def tick(self, now: float) -> None:
        """Let the questions fail whose time is over."""
        while self._ends and self._ends[0][0] <= now:
            _, number = heappop(self._ends)
            if number in self._waiting:
                self._end(number, Answered(None, "it has not answered in time"))

    @property
    def next_tick(self) -> float:
        """Return when ``tick`` has to be called next; infinity if nobody waits."""
        return self._ends[0][0] if self._ends else float("inf")

    def __len__(self) -> int:
        return len(self._waiting)

    def _check_room(self, n: int) -> None:
        if len(self._waiting) + n > self._limits.questions:
            raise RefusedError(
                Answer.SYSTEM_BUSY, f"{len(self._waiting)} questions to clients wait for an answer; try again later"
            )

    def _ask(
        self, connection: int, code: int, header: Any, body: bytes, now: float, limit_s: float,
        then: Callable[[Answered], None],
    ) -> None:  # fmt: skip
        self._number = (self._number + 1) % _NUMBERS
        self._waiting[self._number] = _Waiting(connection, then)
        heappush(self._ends, (now + limit_s, self._number))
        self._connections.setdefault(connection, {})[self._number] = None
        self._outbox.append(Ask(self._number, connection, code, header, body))

    def _end(self, number: int, answer: Answered) -> None:
        waiting = self._waiting.pop(number)
        own = self._connections[waiting.connection]
        del own[number]
        if not own:
            del self._connections[waiting.connection]
        waiting.then(answer)
