"""Push sessions: who has which queue, what is pushed and not acknowledged, what becomes of who is slow.

A session is of a connection, a group, a topic and a queue.  It pushes what lies behind its cursor, in order, and goes
on while what is not acknowledged stays within bounds of messages, bytes and age.  Beyond one of them it is paused:
nothing is pushed, and nothing is lost.  A pause that lasts is told, and only who acknowledges nothing for a grace time
after that is evicted.  What is here decides; it has no store, no sockets and no clock.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.hub.rocketmq.clients.limits import Limits
from dataproxy.problems import shown
from dataproxy.wire.rocketmq.codes import Answer

__all__ = ["EVICTED", "PAUSED", "RESUMED", "Event", "Place", "Session", "Sessions", "Wish"]

PAUSED, RESUMED, EVICTED = "paused", "resumed", "evicted"  #: what members and operators are told
_SCAN_S: Final = 0.25  # between two looks at what is not acknowledged
_NEVER: Final = float("inf")


class Place(NamedTuple):
    """A queue as a group has it."""

    group: str
    topic: str
    queue: int


class Wish(NamedTuple):
    """A member that wants a queue pushed."""

    connection: int
    client_id: str
    is_broadcasting: bool
    place: Place


class Event(NamedTuple):
    """What a member and an operator are told of a session, as it was then."""

    what: str  #: PAUSED, RESUMED, EVICTED
    wish: Wish
    messages: int  #: that are not acknowledged
    bytes: int
    age_s: float
    acknowledged: int  #: the offset at which the queue goes on


@dataclass(slots=True)
class _Frame:
    """Messages that were pushed together; ``first`` of them are acknowledged."""

    behinds: array[int]  #: the offset behind each
    sizes: array[int]
    following: int  #: behind the last one, and behind what the group does not want after it
    at: float
    first: int = 0


@dataclass(slots=True, eq=False)
class Session:
    """One queue of one connection.  Only `Sessions` changes it."""

    wish: Wish
    number: int  #: no other session has it
    acknowledged: int  #: all before this offset is
    cursor: int  #: the next offset to be pushed
    tail: int  #: the offset at which the last frame ended
    messages: int = 0  #: that are not acknowledged
    bytes: int = 0
    frames: deque[_Frame] = field(default_factory=deque)
    paused_at: float | None = None
    told_at: float | None = None  #: of this pause
    moved_at: float = -_NEVER  #: when anything was acknowledged

    def age(self, now: float) -> float:
        """Return for how long the oldest message has not been acknowledged."""
        return now - self.frames[0].at if self.frames else 0.0


class Sessions:
    """All sessions of a hub.  One thread; times are seconds of a monotonic clock.

    ``number``: above those of earlier hubs, so that a client tells a new session from the one it had.
    """

    def __init__(self, limits: Limits, number: int) -> None:
        self._limits, self._number = limits, number
        self._wishes: dict[tuple[int, str], dict[Place, Wish]] = {}  # by connection and group
        self._groups: dict[int, dict[str, None]] = {}  # by connection
        self._claims: dict[Place, dict[int, Wish]] = {}  # in groups that share queues: the first one has it
        self._sessions: dict[tuple[int, Place], Session] = {}
        self._vacant: dict[tuple[int, Place], Wish] = {}
        self._fresh: dict[tuple[int, Place], Wish] = {}  # of them, the new ones
        self._owed: dict[Session, None] = {}  # those with something that is not acknowledged
        self._lines: dict[int, int] = {}  # bytes that are not acknowledged, by connection
        self._counts: dict[int, int] = {}  # wishes, by connection
        self._events: list[Event] = []
        self._scan_at = -_NEVER
        self.ended: list[Session] = []  #: since the last look of who follows them
        self.pauses = self.evictions = self.refused = 0

    # --- who wants what

    def wish(
        self, connection: int, group: str, client_id: str, is_broadcasting: bool, queues: Iterable[tuple[str, int]]
    ) -> int:
        """Take the queues that a connection wants in a group, in the place of those before; others' stay with them.

        Return how many are too many for one connection, or for the hub: they are not taken.
        """
        own = self._wishes.setdefault((connection, group), {})
        wanted = {Place(group, topic, queue) for topic, queue in queues}
        for place, wish in list(own.items()):
            if place not in wanted or wish[1:3] != (client_id, is_broadcasting):
                self._drop(wish)
        left = 0
        for place in sorted(wanted - own.keys()):
            if self.has_room(connection):
                self._add(Wish(connection, client_id, is_broadcasting, place))
            else:
                left += 1
        if not self._wishes.get((connection, group)):
            self._wishes.pop((connection, group), None)
        return left

    def has_room(self, connection: int) -> bool:
        """Tell whether a connection may want one queue more."""
        return self._counts.get(connection, 0) < self._limits.pushes and self._total() < self._limits.all_pushes

    def part(self, connection: int) -> None:
        """End all that a connection has."""
        for group in list(self._groups.get(connection, ())):
            self.wish(connection, group, "", False, ())

    def vacant(self, most: int | None = None) -> tuple[Wish, ...]:
        """Return the wishes that are entitled to a queue and have no session yet; ``most``: by turns, so many."""
        if most is None or len(self._vacant) <= most:
            return tuple(self._vacant.values())
        keys = tuple(islice(self._vacant, most))
        for key in keys:
            self._vacant[key] = self._vacant.pop(key)
        return tuple(self._vacant[key] for key in keys)

    def holder(self, place: Place) -> Session | None:
        """Return the session of a queue in a group that shares its queues."""
        claims = self._claims.get(place)
        return None if not claims else self._sessions.get((next(iter(claims)), place))

    def find(self, connection: int | None = None, group: str | None = None) -> tuple[Session, ...]:
        """Return the sessions there are, or those of a connection in a group."""
        if connection is None or group is None:
            return tuple(self._sessions.values())
        places = self._wishes.get((connection, group), {})
        return tuple(one for place in places if (one := self._sessions.get((connection, place))) is not None)

    def fresh(self) -> tuple[Wish, ...]:
        """Return the wishes that have become entitled to a queue since the last call, and have no session yet."""
        found, self._fresh = self._fresh, {}
        return tuple(wish for key, wish in found.items() if self._vacant.get(key) is wish)

    def __len__(self) -> int:
        return len(self._sessions)

    def session(self, connection: int, place: Place) -> Session | None:
        """Return the session of a connection."""
        return self._sessions.get((connection, place))

    def line_room(self, connection: int) -> int:
        """Return how many bytes all sessions of a connection together may have on their way besides what they have."""
        return self._limits.push_line_bytes - self._lines.get(connection, 0)

    def open(self, wish: Wish, offset: int) -> Session:
        """Begin a session of a vacant wish at an offset."""
        del self._vacant[wish.connection, wish.place]
        self._number += 1
        session = Session(wish, self._number, offset, offset, offset)
        self._sessions[wish.connection, wish.place] = session
        return session

    # --- what goes out and comes back

    def room(self, session: Session) -> tuple[int, int]:
        """Return how many messages and bytes may be pushed now; the last message may be larger.  (0, 0): none."""
        limits = self._limits
        if session.paused_at is not None:
            return 0, 0
        messages = limits.push_messages - session.messages
        size = min(limits.push_bytes - session.bytes, self.line_room(session.wish.connection))
        return (messages, size) if messages > 0 and size > 0 else (0, 0)

    def pushed(self, session: Session, messages: Sequence[tuple[int, int]], following: int, now: float) -> None:
        """Note what was pushed: (the offset behind it, bytes) of each message in order; all before ``following``.

        Without messages it is noted that the group wants nothing of what lies before ``following``.  Raises ValueError
        for what does not lie behind the cursor.
        """
        at = session.cursor
        for behind, _ in messages:
            if behind <= at:
                raise ValueError(f"the message before offset {behind} was pushed already: the cursor is {at}")
            at = behind
        if following < at:
            raise ValueError(f"the cursor cannot go from {at} to {following}")
        session.cursor = following
        if not messages:
            if session.frames:
                session.frames[-1].following = following
            else:
                session.acknowledged = following
            return
        size = sum(one for _, one in messages)
        frame = _Frame(
            array("q", (one for one, _ in messages)), array("q", (one for _, one in messages)), following, now
        )
        session.frames.append(frame)
        session.tail = following
        self._owe(session, len(messages), size)
        self._owed[session] = None
        self._scan_at = min(self._scan_at, now + _SCAN_S)
        if session.messages >= self._limits.push_messages or session.bytes >= self._limits.push_bytes:
            self._pause(session, now)

    def skip(self, session: Session, offset: int) -> None:
        """Go on at an offset further on: what lies before it is not in the store any more."""
        self.pushed(session, (), max(offset, session.cursor), 0.0)

    def acknowledge(self, connection: int, place: Place, offset: int, now: float) -> int | None:
        """Take an acknowledgement of all before an offset, and return the offset that is to be kept for the group.

        None: nothing is to be kept, as it was acknowledged before, or as members of a broadcasting group keep their own
        offsets.  Without a session the offset counts as any commit does.  Raises RefusedError: the queue is pushed to
        another connection, or the offset lies behind what was pushed.
        """
        session = self._sessions.get((connection, place))
        if session is None:
            holder = self.holder(place)
            if holder is None:
                return offset
            self.refused += 1
            raise RefusedError(
                Answer.SYSTEM_ERROR,
                f"the queue {place.queue} of {shown(place.topic)} is pushed to {shown(holder.wish.client_id)} in the"
                f" group {shown(place.group)}, which alone acknowledges it; offset {offset} does not count",
            )
        if offset > session.cursor:
            self.refused += 1
            raise RefusedError(
                Answer.SYSTEM_ERROR,
                f"offset {offset} of the queue {place.queue} of {shown(place.topic)} was not pushed yet; up to"
                f" {session.cursor} can be acknowledged",
            )
        if offset <= session.acknowledged:
            return None
        self._take(session, offset)
        session.moved_at = now
        self._resume(session, now)
        return None if session.wish.is_broadcasting else session.acknowledged

    def rewind(self, place: Place, offset: int) -> None:
        """Let the session of a queue that a group shares begin anew at an offset, as another session."""
        session = self.holder(place)
        if session is None or session.acknowledged == offset:
            return
        wish = session.wish
        self._end(session)
        self._vacate(wish)

    # --- time

    def tick(self, now: float) -> None:
        """Let time pass: pause what is old, tell of pauses that last, evict who does not move."""
        if now < self._scan_at:
            return
        limits = self._limits
        late: dict[int, Session] = {}
        for session in self._owed:
            if session.paused_at is None:
                if session.age(now) >= limits.push_age:
                    self._pause(session, now)
                continue
            if session.told_at is None:
                if now - session.paused_at >= limits.push_tell:
                    session.told_at = now
                    self._tell(PAUSED, session, now)
            elif now - max(session.told_at, session.moved_at) >= limits.push_grace:
                late.setdefault(session.wish.connection, session)
        for connection, session in late.items():
            self.evictions += 1
            self._tell(EVICTED, session, now)
            self.part(connection)
        self._scan_at = now + _SCAN_S if self._owed else _NEVER

    @property
    def next_tick(self) -> float:
        """Return when `tick` has to be called next; infinity if nothing is owed."""
        return self._scan_at if self._owed else _NEVER

    def events(self) -> list[Event]:
        """Return what is to be told since the last call."""
        found, self._events = self._events, []
        return found

    # --- inside

    def _total(self) -> int:
        return len(self._sessions) + len(self._vacant)

    def _add(self, wish: Wish) -> None:
        connection, place = wish.connection, wish.place
        if not wish.is_broadcasting:
            # The newest connection of a client is the one that counts: its older one may never tell that it has ended.
            for one in [one for one in self._claims.get(place, {}).values() if one.client_id == wish.client_id]:
                self._drop(one)
            claims = self._claims.setdefault(place, {})
            claims[connection] = wish
            if len(claims) == 1:
                self._vacate(wish)
        else:
            self._vacate(wish)
        self._wishes.setdefault((connection, place.group), {})[place] = wish
        self._groups.setdefault(connection, {})[place.group] = None
        self._counts[connection] = self._counts.get(connection, 0) + 1

    def _drop(self, wish: Wish) -> None:
        """Forget a wish; who waits for its queue is next."""
        connection, place = wish.connection, wish.place
        own = self._wishes[connection, place.group]
        del own[place]
        if not own:
            del self._wishes[connection, place.group]
            del self._groups[connection][place.group]
            if not self._groups[connection]:
                del self._groups[connection]
        self._counts[connection] -= 1
        if not self._counts[connection]:
            del self._counts[connection]
        session = self._sessions.get((connection, place))
        if session is not None:
            self._end(session)
        self._vacant.pop((connection, place), None)
        claims = self._claims.get(place)
        if wish.is_broadcasting or claims is None:
            return
        was_first = next(iter(claims)) == connection
        del claims[connection]
        if not claims:
            del self._claims[place]
        elif was_first:
            self._vacate(next(iter(claims.values())))

    def _vacate(self, wish: Wish) -> None:
        key = wish.connection, wish.place
        self._vacant[key] = self._fresh[key] = wish

    def _end(self, session: Session) -> None:
        """End a session; what it has not acknowledged is pushed again by the next one."""
        del self._sessions[session.wish.connection, session.wish.place]
        self._owe(session, -session.messages, -session.bytes)
        session.frames.clear()
        self._owed.pop(session, None)
        self.ended.append(session)

    def _owe(self, session: Session, messages: int, size: int) -> None:
        session.messages += messages
        session.bytes += size
        connection = session.wish.connection
        used = self._lines.get(connection, 0) + size
        if used:
            self._lines[connection] = used
        else:
            self._lines.pop(connection, None)

    def _take(self, session: Session, offset: int) -> None:
        """Take what lies before an offset off the account."""
        messages = size = 0
        session.acknowledged = offset
        while session.frames and session.frames[0].behinds[session.frames[0].first] <= offset:
            frame = session.frames[0]
            while frame.first < len(frame.behinds) and frame.behinds[frame.first] <= offset:
                messages += 1
                size += frame.sizes[frame.first]
                frame.first += 1
            if frame.first < len(frame.behinds):
                break
            session.frames.popleft()
            session.acknowledged = max(session.acknowledged, frame.following)
        self._owe(session, -messages, -size)
        if not session.frames:
            self._owed.pop(session, None)

    def _pause(self, session: Session, now: float) -> None:
        session.paused_at, session.told_at = now, None
        self.pauses += 1

    def _resume(self, session: Session, now: float) -> None:
        """Go on with a session that has acknowledged half of what it may have, and all that is too old."""
        limits = self._limits
        if (
            session.paused_at is None
            or 2 * session.messages > limits.push_messages
            or 2 * session.bytes > limits.push_bytes
            or session.age(now) >= limits.push_age
        ):
            return
        session.paused_at = None
        if session.told_at is not None:
            session.told_at = None
            self._tell(RESUMED, session, now)

    def _tell(self, what: str, session: Session, now: float) -> None:
        self._events.append(
            Event(what, session.wish, session.messages, session.bytes, session.age(now), session.acknowledged)
        )
