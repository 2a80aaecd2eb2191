"""The option ``numeric_ids``: names for the numbers that old senders put into binary requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dataproxy.errors import ConfigError

__all__ = ["parse_numbers"]

_NAME_BYTES: Final = 255


def parse_numbers(lines: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return (group number, stream number, name) sorted by numbers; with stream number 0 the name is the group's.

    Lines have the form ``10=b_app`` or ``10/20=s_click``.  Raises ConfigError.
    """
    found: dict[tuple[int, int], str] = {}
    for line in lines:
        number, equals, name = line.partition("=")
        group, slash, stream = number.partition("/")
        key = _number(group, line), _number(stream, line) if slash else 0
        if not equals or not name or name != name.strip() or {"=", "&"} & {*name}:
            raise _error(line, "has no name that attributes can carry")
        if len(name.encode()) > _NAME_BYTES:
            raise _error(line, f"has a name of more than {_NAME_BYTES} bytes")
        if key in found:
            raise _error(line, f"names {number} a second time, first {found[key]!r}")
        found[key] = name
    for group_number, stream_number in found:
        if (group_number, 0) not in found:
            raise _error(f"{group_number}/{stream_number}", f"is a stream of group {group_number}, which has no name")
    return [(*key, name) for key, name in sorted(found.items())]


def _number(text: str, line: str) -> int:
    if text.isascii() and text.isdecimal() and 1 <= int(text) <= 65535:
        return int(text)
    raise _error(line, f"has {text!r} where a number from 1 to 65535 is expected")


def _error(line: str, what: str) -> ConfigError:
    return ConfigError(
        f"option numeric_ids: {line!r} {what}",
        hint="write 10=b_app for a group and 10/20=s_click for a stream of it",
        details={"option": "numeric_ids", "value": line},
    )
