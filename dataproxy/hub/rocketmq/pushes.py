"""The push sessions of a hub: they read the store, send to members, and take acknowledgements.

Members say in their heartbeats which queues they have (`ConsumeType.SERVER_PUSH`), and commits (15) acknowledge.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from dataproxy.hub.idling import nobody
from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.hub.rocketmq.clients.members import Member
from dataproxy.hub.rocketmq.pulls import Matches, matcher, read_message
from dataproxy.hub.rocketmq.push.positions import Positions
from dataproxy.hub.rocketmq.push.sessions import EVICTED, PAUSED, Event, Place, Session, Sessions, Wish
from dataproxy.hub.rocketmq.registry import Registry
from dataproxy.hub.rocketmq.topics.remoting import Answer, Remoting, Request
from dataproxy.hub.rocketmq.topics.table import Topics
from dataproxy.logs import logger
from dataproxy.wire.rocketmq.bodies import ConsumeFrom, ConsumeType, PushSession, PushSessions, Subscription
from dataproxy.wire.rocketmq.codes import Answer as Status
from dataproxy.wire.rocketmq.codes import Code
from dataproxy.wire.rocketmq.headers import Pushed, PushState, PushStateOf, header_fields
from dataproxy.wire.rocketmq.messages import offset_id
from dataproxy.wire.rocketmq.names import RETRIES

__all__ = ["PushCounts", "Pushes", "Tell"]

_log: Final = logger("hub.rocketmq")
_MESSAGES: Final = 128  # of a frame
_BYTES: Final = 256 << 10
_TURN: Final = 16  # frames, before calls have their turn
_LOOK_S: Final = 1.0  # between two looks at what could not go on
_LOOKS: Final = 8192  # at queues that are not there, at once: some milliseconds
_READABLE: Final = 4
_FROM_OLDEST: Final = (ConsumeFrom.FIRST, ConsumeFrom.MIN)
_NEVER: Final = float("inf")


class Tell(Protocol):
    """Send a request of one way to a connection."""

    def __call__(self, connection: int, code: int, fields: dict[str, str], body: bytes) -> None:
        """Raises ValueError for what no frame can hold."""


class PushCounts(NamedTuple):
    """Count since the start, but for ``sessions``, which is how many there are."""

    sessions: int
    frames: int
    messages: int
    bytes: int
    pauses: int
    evictions: int
    refused: int  #: acknowledgements


class _Want(NamedTuple):
    """What a member wants of a topic."""

    matches: Matches | None  # None: all
    where: ConsumeFrom | int
    begins: dict[int, int]  # by queue, where no offset is kept


class _Short(NamedTuple):
    """What a member wants, as `Sessions.wish` takes it."""

    client_id: str
    is_broadcasting: bool
    queues: list[tuple[str, int]]


class Pushes:
    """The sessions, and what of the store they wait for.  One thread, but for `counts`, which any thread may call.

    ``told`` hears of events.
    """

    def __init__(
        self, remoting: Remoting, topics: Topics, registry: Registry, positions: Positions, limits: Limits, tell: Tell,
        number: int, told: Callable[..., None] = nobody,
    ) -> None:  # fmt: skip
        self._remoting, self._topics, self._registry = remoting, topics, registry
        self._positions, self._limits, self._tell, self._say = positions, limits, tell, told
        registry.moved = self.reset
        self._sessions = Sessions(limits, number)
        self._locals: dict[int, str] = {}  # where a connection has reached the hub
        self._wants: dict[int, dict[str, dict[str, _Want]]] = {}  # by connection, group and topic
        self._short: dict[tuple[int, str], _Short] = {}  # by connection and group: those without room for all they want
        self._followed: dict[tuple[str, int], tuple[int, dict[Session, None]]] = {}  # bucket, and who follows
        self._buckets: dict[int, dict[tuple[str, int], None]] = {}
        self._ready: deque[Session] = deque()
        self._queued: set[Session] = set()  # those in `_ready` that have not ended
        self._held: dict[Session, None] = {}  # those that could not go on
        self._said: set[Session] = set()  # of which the log says so
        self._crowded: dict[int, dict[Session, None]] = {}  # by connection: those that its other sessions leave no room
        self._cuts: dict[int, float] = {}  # connections that are evicted, and when they are cut
        self._look_at = _NEVER
        self._trouble = ""  # why a session could not begin, said last
        self._sent = [0, 0, 0]  # frames, messages, bytes

    # --- what comes in

    def met(self, connection: int, local: str) -> None:
        """Note at which address a client has reached the hub: its messages name that."""
        self._locals[connection] = local

    def subscribed(self, connection: int, group: str, found: Mapping[str, Subscription], now: float) -> None:
        """Take what a member wants pushed; nothing, if it pulls."""
        member = self._registry.members.at(group, connection)
        queues: list[tuple[str, int]] = []
        groups = self._wants.setdefault(connection, {})
        groups.pop(group, None)
        if member is not None and member.data.consume_type is ConsumeType.SERVER_PUSH:
            wants = {topic: want for topic, one in found.items() if (want := _want(member, one)) is not None}
            groups[group] = wants
            queues = [(topic, queue) for topic in wants for queue in found[topic].pushed_queues]
        if not groups:
            del self._wants[connection]
        client = "" if member is None else member.client_id
        wanted = _Short(client, member is not None and member.is_broadcasting, queues)
        left = self._wish(connection, group, wanted, now)
        if left:
            _log.warning(
                "%d queues of the group %r are not pushed to %r: there are too many sessions", left, group, client
            )
        self._settle(now)

    def _wish(self, connection: int, group: str, wanted: _Short, now: float) -> int:
        """Let a member have the queues that it wants; those for which there is no room are looked at again later."""
        left = self._sessions.wish(connection, group, *wanted)
        if left:
            self._short[connection, group] = wanted
            self._look_at = min(self._look_at, now + _LOOK_S)
        else:
            self._short.pop((connection, group), None)
        return left

    def closed(self, connection: int, now: float) -> None:
        """End what a connection has."""
        self._sessions.part(connection)
        self._locals.pop(connection, None)
        self._cuts.pop(connection, None)
        for group in self._wants.pop(connection, ()):
            self._short.pop((connection, group), None)
        self._crowded.pop(connection, None)
        self._settle(now)

    def acknowledged(self, connection: int, group: str, topic: str, queue: int, offset: int, now: float) -> int | None:
        """Take a commit, and return the offset to be kept, as `Sessions.acknowledge` does.  Raises RefusedError."""
        place = Place(group, topic, queue)
        found = self._sessions.acknowledge(connection, place, offset, now)
        session = self._sessions.session(connection, place)
        if session is not None:
            self._go(session)
        if connection in self._crowded and 4 * self._sessions.line_room(connection) >= self._limits.push_line_bytes:
            for other in self._crowded.pop(connection):
                self._go(other)
        return found

    def reset(self, group: str, topic: str, offsets: Mapping[int, int], now: float) -> None:
        """Begin anew where the offsets of a group were set, by queue."""
        for queue, offset in offsets.items():
            self._sessions.rewind(Place(group, topic, queue), offset)
        self._settle(now)

    def state(self, request: Request, header: PushStateOf) -> Answer:
        """353: answer which sessions a connection has in a group."""
        found = tuple(
            PushSession(
                one.wish.place.topic, one.wish.place.queue, one.acknowledged, one.cursor, one.messages, one.bytes,
                "flowing" if one.paused_at is None else PAUSED,
            )
            for one in self._sessions.find(request.call.connection, header.consumer_group)
        )  # fmt: skip
        return Answer(body=PushSessions(found, self._limits.push_messages, self._limits.push_bytes).write())

    def counts(self) -> PushCounts:
        """Return what was counted.  Any thread."""
        of, (frames, messages, size) = self._sessions, self._sent
        return PushCounts(len(of), frames, messages, size, of.pauses, of.evictions, of.refused)

    def paused(self) -> set[tuple[str, str]]:
        """Return (group, client) of the members that were told that a queue is not pushed on until they acknowledge."""
        found = (one for one in self._sessions.find() if one.told_at is not None)
        return {(one.wish.place.group, one.wish.client_id) for one in found}

    # --- time

    @property
    def next_tick(self) -> float:
        """Return when `tick` has to be called next, if no messages come."""
        return -_NEVER if self._ready else min(self._sessions.next_tick, self._look_at)

    def tick(self, now: float) -> None:
        """Push what has come, and let time pass."""
        self._sessions.tick(now)
        if self._buckets:
            for bucket in self._remoting.news():
                for log in self._buckets.get(bucket, ()):
                    for session in self._followed[log][1]:
                        self._go(session)
        if now >= self._look_at:
            self._look(now)
        self._settle(now)
        for _ in range(min(len(self._ready), _TURN)):
            session = self._ready.popleft()
            if session not in self._queued:
                continue  # it has ended
            self._queued.discard(session)
            try:
                if self._push(session, now):
                    self._go(session)
                    self._said.discard(session)
            except Exception as error:  # noqa: BLE001 - the other sessions are others'
                place = session.wish.place
                if session not in self._said:
                    self._said.add(session)
                    _log.warning("the queue %d of %r is not pushed on to the group %r, and tried again: %s",
                                 place.queue, place.topic, place.group, error)  # fmt: skip
                self._held[session] = None
                self._look_at = min(self._look_at, now + _LOOK_S)
        self._settle(now)

    # --- inside: beginnings and ends

    def _settle(self, now: float) -> None:
        """Follow the sessions: end what has ended, begin what is vacant, tell what it tells."""
        ended, self._sessions.ended = self._sessions.ended, []
        for session in ended:
            self._unfollow(session)
        for wish in self._sessions.fresh():
            self._begin(wish, now)
        for event in self._sessions.events():
            self._told(event, now)

    def _begin(self, wish: Wish, now: float) -> None:
        """Begin a session, if the queue is there and the group may have it; else it is looked at again later."""
        try:
            at = self._start(wish, now)
        except Exception as error:  # noqa: BLE001 - the other queues are others'
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.warning("the queue %d of %r is not pushed to %r: %s", wish.place.queue, wish.place.topic,
                             wish.client_id, error)  # fmt: skip
            at = None
        if at is None:
            self._look_at = min(self._look_at, now + _LOOK_S)
            return
        session = self._sessions.open(wish, at)
        place = wish.place
        log = place.topic, place.queue
        if log not in self._followed:
            bucket = self._remoting.follow(*log)
            self._followed[log] = bucket, {}
            self._buckets.setdefault(bucket, {})[log] = None
        self._followed[log][1][session] = None
        self._go(session)

    def _start(self, wish: Wish, now: float) -> int | None:
        """Return where a session begins, None if it cannot yet.

        That is where the group goes on, which is set here if it has never been there; a member of a broadcasting group
        says it itself.
        """
        group, name, queue = wish.place
        topic = self._topics.find(name)
        if topic is None or not 0 <= queue < topic.reads or not self._may(wish):
            return None
        least, end = self._remoting.extent(name, queue)
        want = self._wants[wish.connection][group][name]
        begin = want.begins.get(queue, -1)
        if begin < 0:
            is_oldest = want.where in _FROM_OLDEST or name.startswith(RETRIES) or self._topics.is_young(name, now)
            begin = least if is_oldest else end
        begin = min(begin, end)  # else what comes before the first acknowledgement would count as read
        if not wish.is_broadcasting:
            begin = self._positions.create(self._positions.node, group, name, queue, begin)
        return min(begin, end)

    def _may(self, wish: Wish) -> bool:
        """Tell whether a group may have what it wants."""
        topic, config = self._topics.find(wish.place.topic), self._registry.configs.get(wish.place.group)
        if topic is None or not topic.perm & _READABLE or config is None or not config.consume_enable:
            return False
        return config.consume_broadcast_enable or not wish.is_broadcasting

    def _unfollow(self, session: Session) -> None:
        place = session.wish.place
        log = place.topic, place.queue
        self._held.pop(session, None)
        self._said.discard(session)
        self._queued.discard(session)
        self._crowded.get(session.wish.connection, {}).pop(session, None)
        bucket, followers = self._followed[log]
        followers.pop(session, None)
        if not followers:
            del self._followed[log]
            del self._buckets[bucket][log]
            if not self._buckets[bucket]:
                del self._buckets[bucket]
            self._remoting.unfollow(bucket)

    def _look(self, now: float) -> None:
        """Look again at what could not begin or go on, and cut the connections whose time is over."""
        self._look_at = _NEVER
        for session in list(self._held):
            del self._held[session]
            self._go(session)
        for connection, at in list(self._cuts.items()):
            if now >= at:
                del self._cuts[connection]
                self._remoting.close(connection, True)
            else:
                self._look_at = min(self._look_at, at)
        for (connection, group), wanted in list(self._short.items()):
            if self._sessions.has_room(connection):
                self._wish(connection, group, wanted, now)
        wishes = self._sessions.vacant(_LOOKS)
        if self._short or len(wishes) == _LOOKS:
            self._look_at = min(self._look_at, now + _LOOK_S)
        for wish in wishes:
            self._begin(wish, now)

    def _told(self, event: Event, now: float) -> None:
        """Tell a member and the operator what became of a session."""
        wish, place = event.wish, event.wish.place
        _log.warning(
            "the push of the queue %d of %r to %r of the group %r is %s: %d messages of %d bytes are not acknowledged,"
            " for %.1f s; the group goes on at offset %d", place.queue, place.topic, wish.client_id, place.group,
            event.what, event.messages, event.bytes, event.age_s, event.acknowledged,
        )  # fmt: skip
        self._say(
            f"push {event.what}", protocol="rocketmq", group=place.group, client=wish.client_id, topic=place.topic,
            queue=place.queue, messages=event.messages, bytes=event.bytes, age_s=round(event.age_s, 1),
            offset=event.acknowledged,
        )  # fmt: skip
        header = PushState(
            consumer_group=place.group, topic=place.topic, queue_id=place.queue, state=event.what,
            messages=event.messages, bytes=event.bytes, age_millis=int(event.age_s * 1000),
            commit_offset=event.acknowledged,
        )  # fmt: skip
        self._tell(wish.connection, Code.PUSH_STATE, header_fields(header), b"")
        if event.what == EVICTED:
            at = self._cuts[wish.connection] = now + self._limits.push_cut
            self._look_at = min(self._look_at, at)
            self._registry.evict(wish.connection, now, "it acknowledges nothing of what is pushed to it")

    # --- inside: messages

    def _go(self, session: Session) -> None:
        if session not in self._queued and session not in self._held:
            self._queued.add(session)
            self._ready.append(session)

    def _push(self, session: Session, now: float) -> bool:
        """Push the next messages of a session; False: there is nothing to push now, or no room."""
        wish, place = session.wish, session.wish.place
        messages, size = self._sessions.room(session)
        if not messages:
            if session.paused_at is None:
                self._crowded.setdefault(wish.connection, {})[session] = None
            return False
        if not self._may(wish):
            raise RefusedError(Status.NO_PERMISSION, "the group may not consume from it")
        least, end = self._remoting.extent(place.topic, place.queue)
        if session.cursor < least:
            _log.warning("%d messages of the queue %d of %r are gone, before they were pushed to the group %r",
                         least - session.cursor, place.queue, place.topic, place.group)  # fmt: skip
            self._sessions.skip(session, least)
        if session.cursor >= end:
            return False
        matches = self._wants[wish.connection][place.group][place.topic].matches
        most = _MESSAGES if matches is not None else min(messages, _MESSAGES)
        local = self._locals.get(wish.connection, "")
        page = self._remoting.read(place.topic, place.queue, session.cursor, most, min(size, _BYTES), local)
        if not page:
            raise RefusedError(Status.SYSTEM_ERROR, f"the message of offset {session.cursor} cannot be read")
        following, wanted = _chosen(page, matches, messages)
        self._send(session, wanted, following, end, now)
        return True

    def _send(self, session: Session, wanted: list[tuple[int, bytes]], following: int, end: int, now: float) -> None:
        """Send what the group wants of the messages before an offset, as one frame; none: pass over them."""
        wish, place = session.wish, session.wish.place
        if not wanted:
            before = session.acknowledged
            self._sessions.pushed(session, (), following, now)
            if session.acknowledged != before and not wish.is_broadcasting:
                node = self._positions.node
                self._positions.commit(node, place.group, place.topic, place.queue, session.acknowledged)
            return
        first, data = wanted[0]
        header = Pushed(
            queue_offset=first, message_id=offset_id(data), queue_id=place.queue, topic=place.topic,
            consumer_group=place.group, session=session.number, begin_offset=session.tail, next_offset=following,
            max_offset=end,
        )  # fmt: skip
        body = b"".join(one for _, one in wanted)
        self._tell(wish.connection, Code.SNODE_PUSH_MESSAGE, header_fields(header), body)
        self._sessions.pushed(session, [(offset + 1, len(one)) for offset, one in wanted], following, now)
        self._sent[0] += 1
        self._sent[1] += len(wanted)
        self._sent[2] += len(body)


def _chosen(page: list[tuple[int, bytes]], matches: Matches | None, most: int) -> tuple[int, list[tuple[int, bytes]]]:
    """Return the offset behind what was looked at, and those of some messages that are wanted, at most so many."""
    if matches is None:
        return page[-1][0] + 1, page
    wanted = []
    for offset, data in page:
        if matches(read_message(data)):
            wanted.append((offset, data))
            if len(wanted) == most:
                return offset + 1, wanted
    return page[-1][0] + 1, wanted


def _want(member: Member, wanted: Subscription) -> _Want | None:
    """Return what a member wants of a topic, None if it wants no queue of it, or by a filter that cannot be read."""
    if not wanted.pushed_queues:
        return None
    kind = wanted.expression_type or ""
    is_all = kind in ("", "TAG") and wanted.sub_string.strip() in ("", "*")
    try:
        matches = None if is_all else matcher(wanted.sub_string, kind)
    except RefusedError as error:
        _log.warning("the topic %r is not pushed to %r of the group %r: %s", wanted.topic, member.client_id,
                     member.group, error)  # fmt: skip
        return None
    return _Want(matches, member.data.consume_from_where, wanted.begins)
