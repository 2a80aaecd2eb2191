"""Plans of arrivals: the times at which messages are due, as a text from the user and as pieces for the generator."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from dataproxy.config.units import parse_duration
from dataproxy.errors import ConfigError

__all__ = ["Piece", "Plan", "parse_plan"]

_MOST_PIECES: Final = 100_000
_FORM: Final = re.compile(
    r"(?P<begin>[\d.]+[kM]?)(?:-(?P<end>[\d.]+[kM]?))?(?:\+(?P<burst>[\d.]+[kM]?)/(?P<period>[^:]+))?:(?P<time>.+)"
)
_HINT: Final = "e.g. 5000:10s, steps 1000:10s,2000:10s, a ramp 1000-50000:60s or bursts 1000+5000/1s:30s"
_SUFFIX: Final = {"k": 1e3, "M": 1e6}


@dataclass(frozen=True, slots=True)
class Piece:
    """Describe a piece of time: its seconds, messages/s at its start and end, and messages due at its first moment."""

    seconds: float
    begin: float
    end: float
    jump: float = 0.0

    @property
    def messages(self) -> float:
        """Return how many messages are due in it."""
        return self.jump + (self.begin + self.end) / 2 * self.seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """Hold consecutive pieces of time, and the distribution of arrivals in them: ``constant`` gaps, or ``poisson``."""

    text: str
    pieces: tuple[Piece, ...]
    arrivals: str = "constant"
    seed: int = 1

    @property
    def seconds(self) -> float:
        """Return the length of the plan in seconds."""
        return math.fsum(piece.seconds for piece in self.pieces)

    @property
    def messages(self) -> float:
        """Return how many messages are due in total, by the rates; with random gaps the number is approximate."""
        return math.fsum(piece.messages for piece in self.pieces)

    def share(self, of: int) -> list[tuple[float, float, float, float]]:
        """Return the pieces for one of ``of`` threads, as the generator takes them."""
        return [(piece.seconds, piece.begin / of, piece.end / of, piece.jump / of) for piece in self.pieces]


def parse_plan(text: str, *, arrivals: str = "constant", seed: int = 1) -> Plan:
    """Return the plan of a text: pieces ``RATE[-RATE][+COUNT/PERIOD]:TIME`` with commas between them.

    Rates are messages a second; ``k`` and ``M`` stand for thousands and millions.  Raises ConfigError.
    """
    if arrivals not in ("constant", "poisson"):
        raise ConfigError(f"arrivals {arrivals!r} are unknown", hint="choose constant or poisson")
    pieces: list[Piece] = []
    for part in text.split(","):
        found = _FORM.fullmatch(part.strip())
        if found is None:
            raise ConfigError(f"{part.strip()!r} is not part of a plan", hint=_HINT)
        pieces += _pieces(part, found)
        if len(pieces) > _MOST_PIECES:
            raise ConfigError(f"the plan has more than {_MOST_PIECES:,} bursts", hint="use longer periods")
    plan = Plan(text, tuple(pieces), arrivals, seed)
    if plan.messages < 1:
        raise ConfigError(f"the plan {text!r} has no message", hint=_HINT)
    return plan


def _pieces(part: str, found: re.Match[str]) -> list[Piece]:
    seconds = _seconds(part, found["time"])
    begin = _number(part, found["begin"])
    end = begin if found["end"] is None else _number(part, found["end"])
    if found["burst"] is None:
        return [Piece(seconds, begin, end)]
    burst, period = _number(part, found["burst"]), _seconds(part, found["period"])
    if seconds / period > _MOST_PIECES:
        raise ConfigError(f"{part!r} has more than {_MOST_PIECES:,} bursts", hint="use a longer period")
    out: list[Piece] = []
    count = max(math.ceil(seconds / period - 1e-9), 1)
    for number in range(count):
        at = number * period
        length = min(period, seconds - at)
        rates = [begin + (end - begin) * moment / seconds for moment in (at, at + length)]
        out.append(Piece(length, rates[0], rates[1], burst))
    return out


def _number(part: str, text: str) -> float:
    try:
        value = float(text.rstrip("kM")) * _SUFFIX.get(text[-1], 1)
    except ValueError:
        raise ConfigError(f"{text!r} in {part!r} is not a number", hint=_HINT) from None
    if value >= 1e9:
        raise ConfigError(f"{text!r} in {part!r} is too large: rates are below a billion a second", hint=_HINT)
    return value


def _seconds(part: str, text: str) -> float:
    try:
        value = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"{text!r} in {part!r} is not a time: {error}", hint=_HINT) from None
    if not 0 < value < 1e7:
        raise ConfigError(f"{text!r} in {part!r} is not a duration to send for", hint=_HINT)
    return value
