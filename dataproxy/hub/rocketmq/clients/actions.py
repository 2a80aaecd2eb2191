"""What the owner of a registry is to do: requests to clients, answers, connections to close."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dataproxy.wire.rocketmq.bodies import Subscription
from dataproxy.wire.rocketmq.headers import Header

__all__ = [
    "Action",
    "Ask",
    "Check",
    "Close",
    "Discard",
    "Half",
    "Holder",
    "Outbox",
    "Peer",
    "RefusedError",
    "Reply",
    "Send",
    "Subscribed",
]


class Peer(NamedTuple):
    """Who has sent a request; language and version are those of the command's header."""

    connection: int  #: a number that is never used again
    address: str  #: "ip:port"
    language: str
    version: int


class Holder(NamedTuple):
    """Who asks for a lock: a client, and the connection by which it has been a member of the group since then."""

    client_id: str
    connection: int
    since: float


class Half(NamedTuple):
    """A message of a transaction that has not ended."""

    handle: int  #: its physical offset, ``commitLogOffset``
    half_offset: int  #: in the queue of such messages, ``tranStateTableOffset``
    group: str  #: of producers
    stored_s: float  #: when it came, by the monotonic clock
    connection: int = 0  #: it came from; 0 if that is not known any more
    client_id: str = ""
    immunity_s: float = 0.0  #: in the place of the limit, if the message says so itself
    checks: int = 0  #: that were made


class Send(NamedTuple):
    """Send a one-way request; each is a command of its own, with a number of its own."""

    connection: int
    code: int
    header: Header | None
    body: bytes = b""


class Ask(NamedTuple):
    """Send a request with this number, with which its answer comes back."""

    number: int
    connection: int
    code: int
    header: Header | Mapping[str, str]
    body: bytes = b""


class Reply(NamedTuple):
    """Answer a request of the past; ``call`` is what came with it."""

    call: Any
    code: int
    remark: str = ""
    body: bytes = b""
    fields: Mapping[str, str] | None = None


class Close(NamedTuple):
    """Close a connection."""

    connection: int
    why: str


class Check(NamedTuple):
    """Ask a producer how a transaction ends (39), with the half message as it will be: of its real topic and queue."""

    connection: int
    half: Half


class Discard(NamedTuple):
    """Put a half message aside: nobody has said how it ends, and nobody is asked any more."""

    half: Half


class Subscribed(NamedTuple):
    """From now on these are the subscriptions of a connection in a group, by topic; all are gone if there is none."""

    connection: int
    group: str
    subscriptions: Mapping[str, Subscription]


Action = Send | Ask | Reply | Close | Check | Discard | Subscribed
Outbox = list[Action]


class RefusedError(Exception):
    """A request that is answered with a code that is no success."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(remark)
        self.code, self.remark = code, remark
