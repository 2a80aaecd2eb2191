"""What an examination returns: findings for people and programs, and the figures behind them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Any, Final

__all__ = [
    "FORMAT",
    "Finding",
    "Findings",
    "Level",
    "ManagerReport",
    "MessageReport",
    "NameReport",
    "ProxyReport",
    "TlsReport",
]

#: Version of the JSON form.  Fields may be added to it; a change of a field's meaning raises the number.
FORMAT: Final = 1


class Level(StrEnum):
    """Say how bad a finding is."""

    OK = "ok"
    NOTE = "note"  #: nothing is wrong; worth knowing
    WARNING = "warning"  #: works, and may fail or be slow later
    ERROR = "error"  #: does not work


@dataclass(frozen=True, slots=True)
class Finding:
    """Hold the result of one check in words.

    ``check``: its kind, such as ``proxy``.  ``subject``: what was looked at, such as an address.  ``text``: what was
    found.  ``means`` and ``advice``: what that means and what to do next, empty where all is well.  ``code``: the word
    or the number that `dataproxy explain` knows, else None.
    """

    check: str
    subject: str
    level: Level
    text: str
    means: str = ""
    advice: str = ""
    code: str | int | None = None


@dataclass(slots=True)
class NameReport:
    """Hold the addresses of one host; ``seconds`` is the time of the name service, ``error`` its words."""

    host: str
    ipv4: list[str] = field(default_factory=list)
    ipv6: list[str] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""


@dataclass(slots=True)
class ManagerReport:
    """Hold what one Manager answered; ``status`` is HTTP's, None without an answer.

    ``clock_offset``: its clock minus this machine's in seconds, known to a second.  ``max_packet_length``: bytes, 0 for
    no limit.  ``code``: empty if it gave a list, else the code of the DiscoveryError.
    """

    url: str
    code: str = ""
    text: str = ""
    hint: str = ""
    status: int | None = None
    content_type: str = ""
    seconds: float = 0.0
    clock_offset: float | None = None
    cluster_id: int | None = None
    nodes: list[str] = field(default_factory=list)
    load: int = 0
    max_packet_length: int = 0


@dataclass(slots=True)
class TlsReport:
    """Hold what a TLS handshake agreed on; ``days_left`` is the remaining life of the proxy's certificate."""

    version: str
    cipher: str
    subject: str = ""
    days_left: float | None = None


@dataclass(slots=True)
class MessageReport:
    """Hold what became of the marked message.

    ``state``: ``acknowledged``, ``refused`` (with the proxy's ``code`` and ``text``), ``unanswered``, ``closed``,
    ``misaddressed`` (the answer names another request) or ``malformed``.  ``id`` marks the message.
    """

    id: str
    state: str
    code: int | None = None
    text: str = ""
    node: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class ProxyReport:
    """Hold what one address of a proxy did.

    ``name`` is as in statistics and logs.  ``used``: the producer uses this address (an IPv6 address of a host with
    IPv4 only takes its place when that fails).  ``state``: ``ok``, or how it failed (docs/doctor.md lists the states);
    ``text``, ``means`` and ``advice`` say it in words.  Times are in seconds, None for steps that did not succeed.
    ``heartbeat``: the kind that was answered, ``binary`` or ``message``.  ``load``: None for unknown.  ``frame_taken``
    and ``frame_refused``: the largest frame that was answered and the smallest on which the connection was closed, in
    bytes, where that was asked; ``frame_unanswered``: one on which nothing came in time.
    """

    name: str
    host: str
    address: str
    port: int
    used: bool = True
    state: str = "unfinished"
    text: str = "the examination ended before it answered"
    means: str = ""
    advice: str = ""
    connect_seconds: float | None = None
    tls: TlsReport | None = None
    heartbeat: str = ""
    heartbeat_seconds: float | None = None
    load: int | None = None
    clock_offset: float | None = None
    frame_taken: int | None = None
    frame_refused: int | None = None
    frame_unanswered: int | None = None
    message: MessageReport | None = None

    @property
    def reached(self) -> bool:
        """Tell whether it has answered a heartbeat."""
        return self.heartbeat_seconds is not None


@dataclass(slots=True)
class Findings:
    """Hold everything that an examination found; ``finished`` is False if it was interrupted.

    ``limits`` and ``versions`` are facts about this machine and installation, by name.  ``started`` is a time in UTC,
    as ISO 8601 writes it.
    """

    target: str = ""
    group_id: str = ""
    stream_id: str = ""
    started: str = ""
    seconds: float = 0.0
    finished: bool = True
    findings: list[Finding] = field(default_factory=list)
    names: list[NameReport] = field(default_factory=list)
    managers: list[ManagerReport] = field(default_factory=list)
    proxies: list[ProxyReport] = field(default_factory=list)
    limits: dict[str, int | float | None] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def count(self, level: Level) -> int:
        """Return the number of findings of a level."""
        return sum(one.level is level for one in self.findings)

    @property
    def ok(self) -> bool:
        """Tell whether there is no error; warnings and notes do not count."""
        return self.count(Level.ERROR) == 0

    @property
    def reachable(self) -> bool:
        """Tell whether some proxy answered a heartbeat; True without a target."""
        return not self.target or any(one.reached for one in self.proxies)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values; docs/doctor.md describes the fields."""
        counts = {str(level): self.count(level) for level in Level}
        return {"format": FORMAT, "ok": self.ok, "reachable": self.reachable, "counts": counts, **_plain(self)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return round(value, 6)
    return str(value) if isinstance(value, StrEnum) else value
