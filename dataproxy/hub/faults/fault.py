"""The description of one fault: its kind, where it applies, and at which events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from dataproxy._core.server.faults.core import LIMITS, NUMBERS
from dataproxy.config.suggestion import nearest_name
from dataproxy.errors import ConfigError
from dataproxy.hub.faults.kinds import KINDS, ON, FaultKind

__all__ = ["Fault"]

_STAGES: Final = ("before_store", "after_store", "after_reply")
_SIDES: Final = ("read", "write", "both")
_NUMBERS: Final = tuple(NUMBERS)
_TRIGGERS: Final = ("nth", "every", "first", "after", "times", "share", "at_byte", "per_connection", "connection")
#: Lowest and highest value of each number.
_RANGES: Final[dict[str, tuple[float, float]]] = {
    "listener": (0, 63),
    "connection": (1, 2**62),
    "nth": (1, 2**62),
    "every": (1, 2**62),
    "first": (1, 2**62),
    "after": (0, 2**62),
    "times": (1, 2**62),
    "at_byte": (1, 2**62),
    "share": (0.0, 1.0),
    "seed": (0, 2**64 - 1),
    "code": (1, 2**31 - 1),
    "seconds": (0.0, 86400.0),
    "copies": (2, 100),
    "batch": (2, 1000),
    "at": (-(2**31), 2**31),
    "mask": (1, 255),
    "bytes_per_second": (1, 2**40),
    "load": (0, 65534),
    "status": (100, 599),
}
_TEXTS: Final = {"group": LIMITS["name"], "stream": LIMITS["name"], "message": LIMITS["text"]}


@dataclass(frozen=True, slots=True)
class Fault:
    """Describe one fault of a hub; ``dataproxy.hub.KINDS`` lists the kinds with their parameters.

    Where: ``listener`` (index), ``group``, ``stream``, ``connection`` (number at its listener, from 1); None is any.
    When: ``on`` is the event ("data" request, "heartbeat", "connect" or "bytes"); of the events that match, ``nth`` is
    the only one that fires, or ``after`` so many are let pass, then ``every`` k-th fires, only among the ``first`` so
    many, with a probability ``share`` drawn from ``seed``, ``times`` in all.  ``at_byte`` fires at that received byte
    of a connection.  ``per_connection`` counts every connection for itself.  The other fields are parameters.

    Raises ConfigError for a value that is not allowed, or a field that the kind does not have.
    """

    kind: str
    on: str | None = None
    listener: int | None = None
    group: str | None = None
    stream: str | None = None
    connection: int | None = None
    nth: int | None = None
    every: int | None = None
    first: int | None = None
    after: int | None = None
    times: int | None = None
    share: float | None = None
    seed: int | None = None
    at_byte: int | None = None
    per_connection: bool | None = None
    code: int | None = None
    message: str | None = None
    seconds: float | None = None
    copies: int | None = None
    batch: int | None = None
    data: bytes | None = None
    at: int | None = None
    mask: int | None = None
    stage: str | None = None
    reset: bool | None = None
    side: str | None = None
    number: str | None = None
    bytes_per_second: int | None = None
    load: int | None = None
    status: int | None = None

    def __post_init__(self) -> None:
        kind = self._kind()
        self._check_types()
        self._check_event(kind)
        self._check_parameters(kind)

    @classmethod
    def _of(cls, kind: object, options: Mapping[str, object]) -> Self:
        """Make a fault from a kind and fields by name.  Raises ConfigError with the nearest name."""
        for name in options:
            if name not in _FIELDS:
                raise _unknown("field", name, _FIELDS)
        return cls(kind, **options)  # type: ignore[arg-type]  # every field checks its type

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Make a fault from a value of ``to_json``.  Raises ConfigError."""
        if not isinstance(value, dict):
            raise ConfigError(f"a fault is an object with a kind, not {value!r}", hint='give {"kind": "drop_reply"}')
        options = {str(name): item for name, item in value.items()}
        kind = options.pop("kind", None)
        data = options.get("data")
        if isinstance(data, str):
            try:
                options["data"] = bytes.fromhex(data)
            except ValueError:
                raise ConfigError(f"data {data!r} is not hexadecimal text", hint="give pairs like 00ff") from None
        return cls._of(kind, options)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are set, bytes as hexadecimal text."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: v.hex() if isinstance(v, bytes) else v for name, v in found.items() if v is not None}

    @property
    def event(self) -> str:
        """Return the event that can trigger the fault, "" for a fault that is active as long as it is armed."""
        kind = KINDS[self.kind]
        if self.on is not None or not kind.on:
            return self.on or ""
        return "bytes" if self.at_byte is not None and "bytes" in kind.on else kind.on[0]

    def _parameter(self, name: str) -> Any:
        """Return a parameter: the given value, else the kind's default."""
        kind = KINDS[self.kind]
        value = getattr(self, name)
        return value if value is not None else kind.fixed.get(name, kind.parameters.get(name))

    def _kind(self) -> FaultKind:
        kind: object = self.kind  # it may come from JSON
        if not isinstance(kind, str) or kind not in KINDS:
            raise _unknown("kind", kind, KINDS)
        return KINDS[kind]

    def _check_types(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is None:
                continue
            real = isinstance(low, float)
            if isinstance(value, bool) or not isinstance(value, (int, float) if real else int):
                raise _wrong(name, value, "a number" if real else "a whole number")
            if not low <= value <= high:  # also false for NaN
                raise _wrong(name, value, f"from {low} to {high}")
        for name, limit in _TEXTS.items():
            value = getattr(self, name)
            if value is not None and not _fits(value, limit):
                raise _wrong(name, value, f"a text of at most {limit} bytes without NUL")
        for name in ("reset", "per_connection"):
            if not isinstance(getattr(self, name), bool | None):
                raise _wrong(name, getattr(self, name), "true or false")
        for name, choices in {"on": ON, "stage": _STAGES, "side": _SIDES, "number": _NUMBERS}.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or value not in choices):
                raise _wrong(name, value, f"one of {', '.join(choices)}")
        data: object = self.data
        if data is not None and not (isinstance(data, bytes) and 0 < len(data) <= LIMITS["garbage"]):
            raise _wrong("data", data, f"1 to {LIMITS['garbage']} bytes")

    def _check_event(self, kind: FaultKind) -> None:
        if self.on is not None and self.on not in kind.on:
            allowed = f"one of {', '.join(kind.on)}" if kind.on else "left out: it holds as long as it is armed"
            raise _wrong("on", self.on, f"{allowed} (kind {kind.name})")
        event = self.event
        given = [name for name in _TRIGGERS if getattr(self, name) is not None]
        if not kind.on and not kind.manager and given:
            raise _unfit(given[0], kind, "it holds as long as it is armed")
        if kind.manager:
            given += [name for name in ("listener", "stream") if getattr(self, name) is not None]
            bad = [name for name in given if name in ("at_byte", "per_connection", "connection", "listener", "stream")]
            if bad:
                raise _unfit(bad[0], kind, "it is a fault of the Manager port")
        elif event != "data":
            for name in ("group", "stream"):
                if getattr(self, name) is not None:
                    raise _unfit(name, kind, f"only data requests name one (on={event or None!r})")
        if self.at_byte is not None and event != "bytes":
            raise _unfit("at_byte", kind, f"it needs on='bytes', not {event!r}")
        if event == "bytes" and self.at_byte is None and kind.name != "slow":
            raise ConfigError(f"fault {kind.name!r} on bytes has no byte", hint="give at_byte")
        self._check_counts()

    def _check_counts(self) -> None:
        if self.nth is not None:
            for name in ("every", "first", "after"):
                if getattr(self, name) is not None:
                    raise ConfigError(f"nth={self.nth!r} was given together with {name}", hint="give one of them")
        if self.seed is not None and self.share is None:
            raise ConfigError(f"seed={self.seed!r} has no effect without share", hint="give share, too")

    def _check_parameters(self, kind: FaultKind) -> None:
        for name in _PARAMETERS:
            if getattr(self, name) is not None and name not in kind.parameters:
                raise _unfit(name, kind, f"its parameters are {', '.join(kind.parameters) or 'none'}")
        for name, default in kind.parameters.items():
            if default is None and getattr(self, name) is None:
                raise ConfigError(f"fault {kind.name!r} needs {name}", hint=f"give {name}=")
        if self.stage not in (None, "before_store") and self.event in ("connect", "bytes"):
            raise _wrong("stage", self.stage, f"before_store on {self.event}")


_FIELDS: Final = tuple(field.name for field in fields(Fault) if field.name != "kind")
_PARAMETERS: Final = _FIELDS[_FIELDS.index("code") :]


def _fits(value: object, limit: int) -> bool:
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        return len(value.encode()) <= limit
    except UnicodeEncodeError:
        return False


def _unknown(what: str, name: object, known: Mapping[str, object] | tuple[str, ...]) -> ConfigError:
    near = nearest_name(name, known) if isinstance(name, str) else None
    hint = f"did you mean {near!r}?" if near else f"choose one of {', '.join(known)}"
    return ConfigError(f"a fault has no {what} {name!r}", hint=hint)


def _wrong(name: str, value: object, allowed: str) -> ConfigError:
    return ConfigError(f"{name}={value!r} of a fault is not allowed", hint=f"it must be {allowed}")


def _unfit(name: str, kind: FaultKind, why: str) -> ConfigError:
    return ConfigError(f"fault {kind.name!r} takes no {name}", hint=why)
