"""What the service thread needs of the compiled listener, and what it answers calls with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from dataproxy.hub.rocketmq.clients.actions import RefusedError
from dataproxy.wire.rocketmq.codes import Answer as Code
from dataproxy.wire.rocketmq.headers import Header, header_fields

__all__ = ["ANSWER", "CLOSED", "REQUEST", "STORED", "Answer", "Appends", "Call", "Place", "Remoting", "Request"]

REQUEST, ANSWER, CLOSED, STORED = range(4)  #: kinds of calls


class Place(NamedTuple):
    """What came of a message that was to be stored."""

    status: int  #: 0: it is stored, and durable if the store is
    offset: int  #: in its queue
    handle: int  #: the physical offset by which clients name it


class Call(Protocol):
    """A request of a client, an answer to one of ours, or the end of a connection, or of an append."""

    kind: int
    connection: int
    peer: str
    local: str
    code: int
    flag: int
    opaque: int
    version: int
    language: str
    remark: str
    fields: dict[str, str]
    body: bytes
    token: int

    @property
    def places(self) -> Sequence[tuple[int, int, int]]:
        """Return status, offset and handle of each message of an append."""

    def answer(self, code: int, fields: dict[str, str] | None = None, remark: str = "", body: bytes = b"") -> None:
        """Answer the request, once."""

    def wait(self, topic: str, queue: int, offset: int, until_us: int) -> None:
        """Give the request back to come again when the queue has a message at the offset, or at the time."""


class Remoting(Protocol):
    """The compiled listener as the thread sees it."""

    @property
    def stopped(self) -> bool:
        """Tell whether no further calls are taken."""

    def take(self, until_us: int) -> Call | None:
        """Wait for a call."""

    def wake(self) -> None:
        """Let ``take`` return without a call, once.  Any thread."""

    def stop(self) -> None:
        """Take no further calls; those that wait are still given out.  Any thread."""

    def stats(self) -> dict[str, int]:
        """Return counters.  Any thread."""

    def send(
        self, connection: int, code: int, opaque: int, oneway: bool, fields: dict[str, str] | None, body: bytes
    ) -> None:
        """Send a request to a client.  One that cannot be reached is told as a connection that has ended."""

    def close(self, connection: int, at_once: bool = False) -> None:
        """End a connection once what it is owed is sent; ``at_once``: whether it is or not."""

    def follow(self, topic: str, queue: int) -> int:
        """Let ``take`` return when a queue gets messages; return the bucket by which ``news`` tells of it."""

    def unfollow(self, bucket: int) -> None:
        """Follow one queue of a bucket less."""

    def news(self) -> list[int]:
        """Return the buckets that are followed and have got messages since the last call."""

    def append(self, token: int, messages: Sequence[tuple[str, int, bytes]]) -> None:
        """Store messages; a call of the kind STORED tells what came of them."""

    def read(
        self, topic: str, queue: int, offset: int, most: int, most_bytes: int = ..., local: str = ""
    ) -> list[tuple[int, bytes]]:
        """Return messages from an offset on; ``local``: host:port at which clients are told that they are stored."""

    def place(self, handle: int) -> tuple[str, int, int] | None:
        """Return topic, queue and offset of a handle; None if nothing can lie there."""

    def extent(self, topic: str, queue: int) -> tuple[int, int]:
        """Return the offset of a queue's oldest message, and the one that its next message gets."""

    def commit(self, group: str, topic: str, queue: int, offset: int) -> bool:
        """Keep where a group goes on; False: there is no room for more groups."""

    def create(self, group: str, topic: str, queue: int, offset: int) -> int:
        """Let a group begin at an offset unless it has one, and return where it is; -1: there is no room for it."""

    def committed(self, group: str, topic: str, queue: int) -> int:
        """Return where a group goes on; -1 if nothing is kept."""

    def offsets(self) -> list[tuple[str, str, int, int]]:
        """Return (group, topic, queue, offset) of all that is kept."""

    def commits(self) -> list[tuple[int, str, str, int, int]]:
        """Return (connection, group, topic, queue, offset) of what pulls have committed since the last call."""

    def subscribe(
        self, connection: int, group: str, topic: str, version: int, tags: tuple[str, ...] | None, sql: bool = False
    ) -> None:
        """Let pulls of a connection go by this subscription."""

    def unsubscribe(self, connection: int, group: str | None = None, topic: str | None = None) -> None:
        """Forget subscriptions of a connection."""

    def silent(self, before_us: int) -> list[tuple[int, str, str, int]]:
        """Return (connection, group, topic, us) of subscriptions by which nothing was pulled since a time; 0: never."""

    def hand_over(self, group: str, on: bool) -> None:
        """Let all pulls of a group come as calls, or none that need not."""

    def set_topic(self, name: str, reads: int, writes: int, perm: int) -> None:
        """Let sends and pulls of a topic in."""

    def drop_topic(self, name: str) -> None:
        """Let no more sends and pulls of a topic in."""


class Answer(NamedTuple):
    """What a request is answered with."""

    code: int = 0
    fields: dict[str, str] | None = None
    remark: str = ""
    body: bytes = b""

    @classmethod
    def of(cls, header: Header) -> Answer:
        """Return a success with these fields."""
        return cls(fields=header_fields(header))


class Request(NamedTuple):
    """A request with the time at which it is answered."""

    call: Call
    now: float  #: seconds of a monotonic clock
    wall_ms: int  #: the time of day


_MOST_OPEN: Final = 65_536
_MOST_BYTES: Final = 64 << 20  # of messages on their way, or one append that is larger
Done = Callable[[list[Place]], None]


class Appends:
    """Messages on their way to the store, and what is to be done when they are there.  One thread."""

    def __init__(self, remoting: Remoting) -> None:
        self._remoting = remoting
        self._open: dict[int, tuple[Done, int]] = {}  # with their bytes
        self._bytes = 0
        self._last = 0

    def put(self, messages: Sequence[tuple[str, int, bytes]], done: Done) -> None:
        """Store messages in their order, and call ``done`` with their places once they are durable.

        Without a message it is called at once.  Raises RefusedError while too many are on their way.
        """
        if not messages:
            done([])
            return
        if len(self._open) >= _MOST_OPEN:
            raise RefusedError(Code.SYSTEM_BUSY, f"{_MOST_OPEN} appends are on their way; send it again later")
        size = sum(len(stored) for *_, stored in messages)
        if self._open and self._bytes + size > _MOST_BYTES:
            text = f"{self._bytes} bytes of messages are on their way to the store; send it again later"
            raise RefusedError(Code.SYSTEM_BUSY, text)
        self._last += 1
        self._open[self._last] = done, size
        self._bytes += size
        try:
            self._remoting.append(self._last, messages)
        except BaseException:
            del self._open[self._last]
            self._bytes -= size
            raise

    def stored(self, token: int, places: Sequence[tuple[int, int, int]]) -> None:
        """Take what came of an append."""
        found = self._open.pop(token, None)
        if found is not None:
            done, size = found
            self._bytes -= size
            done([Place(*one) for one in places])

    @property
    def open(self) -> int:
        """Return how many are on their way."""
        return len(self._open)
