"""How values of the official SDKs' options become values of options here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dataproxy.config.option import NoCounterpart
from dataproxy.config.units import parse_duration, parse_size

__all__ = [
    "as_is",
    "cleared",
    "first_group",
    "go_duration",
    "java_type",
    "one_of",
    "only",
    "proxies",
    "size",
    "switch",
    "times",
]

_Convert = Callable[[Any], Mapping[str, Any]]
_JAVA_TYPES = {"MSG_ACK_SERVICE": 3, "MSG_MULTI_BODY": 5, "MSG_BIN_MULTI_BODY": 7}


def as_is(native: str) -> _Convert:
    """Return the conversion that gives the value another name and nothing else."""
    return lambda value: {native: value}


def times(native: str, scale: float) -> _Convert:
    """Return the conversion of a number in another unit."""
    return lambda value: {native: _number(value) * scale}


def size(native: str, scale: int = 1, *, unlimited: str = "") -> _Convert:
    """Return the conversion of a number of ``scale`` bytes; -1 and 0 mean no limit, for which there may be a reason."""

    def convert(value: Any) -> Mapping[str, Any]:
        number = _number(value)
        if number <= 0:
            raise NoCounterpart(unlimited or f"means no limit, which does not exist here; give {native} a size")
        return {native: parse_size(number * scale)}

    return convert


def switch(native: str, on: Any, off: Any) -> _Convert:
    """Return the conversion of true or false into one of two values."""
    return lambda value: {native: on if _flag(value) else off}


def only(expected: bool, reason: str) -> _Convert:
    """Return the conversion that takes only the value which describes the fixed behaviour of this package."""

    def convert(value: Any) -> Mapping[str, Any]:
        if _flag(value) is not expected:
            raise NoCounterpart(f"has no counterpart: {reason}")
        return {}

    return convert


def cleared(*native: str) -> _Convert:
    """Return the conversion of a switch: false empties these options, true changes nothing."""
    return lambda value: {} if _flag(value) else dict.fromkeys(native, "")


def one_of(values: tuple[int, ...], reason: str) -> _Convert:
    """Return the conversion that takes only numbers which describe the fixed behaviour of this package."""

    def convert(value: Any) -> Mapping[str, Any]:
        if _number(value) not in values:
            raise NoCounterpart(f"has no counterpart: {reason}")
        return {}

    return convert


def first_group(value: Any) -> Mapping[str, Any]:
    """Return the first of several groups, as the default of the producer, and the others."""
    parts = value if isinstance(value, (list, tuple)) else str(value).split(",")
    groups = list(dict.fromkeys(str(part).strip() for part in parts if str(part).strip()))
    return {"group_id": groups[0] if groups else "", **({"group_ids": groups[1:]} if groups[1:] else {})}


def proxies(value: Any) -> Mapping[str, Any]:
    """Return proxies as a target."""
    if isinstance(value, (list, tuple)):
        return {"target": value}
    text = str(value).strip()
    return {"target": text if "://" in text else f"tcp://{text}"}


def java_type(value: Any) -> Mapping[str, Any]:
    """Return a message type that is given by its number, or by its name in Java."""
    return {"message_type": _JAVA_TYPES.get(str(value).strip().upper(), value)}


def go_duration(native: str) -> _Convert:
    """Return the conversion of a Go duration, which has to name its unit."""

    def convert(value: Any) -> Mapping[str, Any]:
        if not isinstance(value, str):
            raise ValueError("is a bare number, in Go nanoseconds; write a unit, e.g. '20ms'")
        return {native: parse_duration(value)}

    return convert


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError("is not a number")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError("is not a number") from None
    except OverflowError:
        raise ValueError("is too large") from None


def _flag(value: Any) -> bool:
    word = str(value).strip().lower()
    if word in ("true", "1"):
        return True
    if word in ("false", "0"):
        return False
    raise ValueError("is neither true nor false")
