"""Texts in which brokers and masters tell each other what a broker has: its defaults, and its topics.

Fields stand in a fixed order with ``:`` between them; a blank one of a topic means the broker's default.  Fields that
say how a broker of TubeMQ keeps messages on its disk are written for it and are not read here.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self
from zlib import crc32

from dataproxy.wire.tubemq.texts import BROKER_PORT, Broker

__all__ = ["BrokerClient", "Defaults", "TopicText", "checksum"]

_SHOWN: Final = 200
_LEAST_DEFAULTS, _LEAST_TOPIC = 7, 10  # fields that old brokers have, too
_MOST_PARTITIONS: Final = 1 << 16
_VALID: Final = 0  # status of a topic that is not being deleted
_FLUSH: Final = "1000:10000"  # of the file: after so many messages, or ms
_DELETE: Final = "0 0 6,18 0 0 ?:delete,168h"
_MEMORY: Final = "0:2:10:20000"  # of the memory in front of the file: bytes to flush, half MB, messages, ms


def _bad(kind: str, text: str, why: str) -> ValueError:
    return ValueError(f"{text[:_SHOWN]!r} is no {kind}: {why}")


def _number(kind: str, whole: str, text: str, default: int | None) -> int:
    stripped = text.strip()
    if not stripped and default is not None:
        return default
    if not (stripped.isascii() and stripped.isdigit() and len(stripped) < 10):
        raise _bad(kind, whole, f"{text[:_SHOWN]!r} is no number")
    return int(stripped)


def _flag(kind: str, whole: str, text: str, default: bool | None) -> bool:
    stripped = text.strip().lower()
    if not stripped and default is not None:
        return default
    if stripped not in ("true", "false"):
        raise _bad(kind, whole, f"{text[:_SHOWN]!r} is neither true nor false")
    return stripped == "true"


class Defaults(NamedTuple):
    """What a broker does with topics that say nothing else."""

    partitions: int = 1
    publish: bool = True
    subscribe: bool = True
    stores: int = 1

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a broker's defaults; a blank text has the usual ones."""
        if not text.strip():
            return cls()
        kind, parts = "broker's defaults", text.split(":")
        if len(parts) < _LEAST_DEFAULTS:
            raise _bad(kind, text, f"expected at least {_LEAST_DEFAULTS} fields")
        return cls(
            _number(kind, text, parts[0], None), _flag(kind, text, parts[1], None), _flag(kind, text, parts[2], None),
            _number(kind, text, parts[7], 1) if len(parts) > 7 else 1,
        )  # fmt: skip

    def __str__(self) -> str:
        flags = f"{self.publish}:{self.subscribe}".lower()
        return f"{self.partitions}:{flags}:{_FLUSH}:{_DELETE}:{self.stores}:{_MEMORY}"


class TopicText(NamedTuple):
    """A topic at a broker."""

    topic: str
    partitions: int
    stores: int = 1
    publish: bool = True
    subscribe: bool = True
    valid: bool = True  #: not being deleted

    @classmethod
    def read(cls, text: str, defaults: Defaults) -> Self:
        """Read a topic."""
        kind, parts = "topic of a broker", text.split(":")
        if len(parts) < _LEAST_TOPIC or not parts[0].strip():
            raise _bad(kind, text, f"expected a name and at least {_LEAST_TOPIC - 1} fields behind it")
        found = cls(
            parts[0].strip(), _number(kind, text, parts[1], defaults.partitions),
            _number(kind, text, parts[8], defaults.stores), _flag(kind, text, parts[2], defaults.publish),
            _flag(kind, text, parts[3], defaults.subscribe), _number(kind, text, parts[9], _VALID) == _VALID,
        )  # fmt: skip
        if not 1 <= found.partitions * found.stores <= _MOST_PARTITIONS:
            raise _bad(kind, text, f"it has {found.partitions} x {found.stores} partitions, at most {_MOST_PARTITIONS}")
        return found

    def __str__(self) -> str:
        flags = f"{self.publish}:{self.subscribe}".lower()
        status = _VALID if self.valid else 1
        return f"{self.topic}:{self.partitions}:{flags}: : : : :{self.stores}:{status}: : : : "


class BrokerClient(NamedTuple):
    """Who registers as a broker: ``id:host:port:version``."""

    broker: Broker
    version: str

    @classmethod
    def read(cls, text: str) -> Self:
        """Read it; the version may be missing."""
        number, _, rest = text.partition(":")
        parts = rest.rsplit(":", 2)
        if len(parts) == 3 and parts[1].strip().isdigit():
            return cls(Broker.read(f"{number}:{parts[0]}:{parts[1]}", BROKER_PORT), parts[2].strip())
        return cls(Broker.read(text, BROKER_PORT), "")

    def __str__(self) -> str:
        return f"{self.broker}:{self.version}"


def checksum(defaults: str, topics: list[str]) -> int:
    """Return a number that tells one configuration from another."""
    return crc32("\n".join((defaults, *sorted(topics))).encode()) & 0x7FFFFFFF
