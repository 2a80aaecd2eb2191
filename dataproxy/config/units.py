"""Durations and sizes as people write them."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from dataproxy.problems import is_timedelta, plain_text

__all__ = ["format_duration", "format_size", "parse_duration", "parse_size"]

_SECONDS: Final = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_BYTES: Final = {
    "b": 1,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
_SHOWN_SECONDS: Final = (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1000))
_SHOWN_BYTES: Final = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_PART: Final = r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zA-Z\u00b5]*)"
_DURATION_FORM: Final = "write e.g. '5s', '100ms', '2m', or a plain number of seconds"
_SIZE_FORM: Final = "write e.g. '64MiB', '64MB', '1GiB', or a plain number of bytes"


def parse_duration(value: object) -> float:
    """Return a duration in seconds from a number of seconds, a timedelta, or a text such as ``"1m30s"``.

    Raises ValueError whose text says how to write it.
    """
    if isinstance(value, str):
        seconds = _sum_of_parts(plain_text(value), _SECONDS, "time", _DURATION_FORM)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = _as_float(value)
    elif is_timedelta(value):
        seconds = value.total_seconds()
    else:
        raise ValueError(f"is not a duration; {_DURATION_FORM}")
    if not math.isfinite(seconds):
        raise ValueError(f"is not finite; {_DURATION_FORM}")
    return round(seconds, 9)


def parse_size(value: object) -> int:
    """Return a size in bytes from a number of bytes or a text such as ``"64MiB"``.

    Raises ValueError whose text says how to write it.
    """
    size: Any
    if isinstance(value, str):
        size = _sum_of_parts(plain_text(value), _BYTES, "size", _SIZE_FORM)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        size = value if isinstance(value, int) else float(value)
    else:
        raise ValueError(f"is not a size; {_SIZE_FORM}")
    if isinstance(size, float) and not size.is_integer():
        raise ValueError(f"is not a whole number of bytes; {_SIZE_FORM}")
    return int(size)


def format_duration(seconds: float) -> str:
    """Return the shortest text that ``parse_duration`` reads back as the same duration."""
    micros = round(seconds * 1e6)
    if micros == 0:
        return "0s"
    for unit, size in _SHOWN_SECONDS:
        if micros % size == 0:
            return f"{micros // size}{unit}"
    return f"{micros}us"


def format_size(size: int) -> str:
    """Return the shortest text that ``parse_size`` reads back as the same size."""
    if size == 0:
        return "0"
    for unit, scale in _SHOWN_BYTES:
        if size % scale == 0:
            return f"{size // scale}{unit}"
    return str(size)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _sum_of_parts(text: str, units: dict[str, float] | dict[str, int], what: str, form: str) -> float:
    stripped = text.strip()
    if re.fullmatch(_NUMBER, stripped):
        return float(stripped)
    position = 0
    total = 0.0
    while position < len(stripped):
        match = re.compile(_PART).match(stripped, position)
        if match is None:
            raise ValueError(f"is not a {'duration' if what == 'time' else 'size'}; {form}")
        number, unit = match.groups()
        scale = units.get(unit.lower())
        if scale is None:
            raise ValueError(
                f"has {unit!r}, which is not a unit of {what}; {form}" if unit else f"lacks a unit; {form}"
            )
        total += float(number) * scale
        position = match.end()
    if not stripped:
        raise ValueError(f"is empty; {form}")
    return total
