"""Reading of configuration files: TOML or JSON, chosen by the suffix."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dataproxy.errors import ConfigError
from dataproxy.problems import shown

if TYPE_CHECKING:
    from dataproxy.config.option import OptionTable

__all__ = ["path_text", "read_file"]

#: Table that the official C++ and Python SDKs put all their options into.
_OFFICIAL_SECTION: Final = "init-param"
_SECTIONS: Final = frozenset({"producer", "consumer", "hub", _OFFICIAL_SECTION})


def path_text(what: str, path: Any) -> str:
    """Return a path as text; ``what`` names it in the error.  Raises ConfigError for a value that is not a path."""
    try:
        return os.fsdecode(path)
    except TypeError:
        raise ConfigError(f"{what} is named by text or a path, not by {shown(path)}") from None


def read_file(table: OptionTable, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the raw values of a configuration file.

    Options stand at the top or in a table named after the part (``[producer]``, ``[consumer]``, ``[hub]``); tables of
    other parts are left alone.  Raises ConfigError that names the file and the place.
    """
    where = path_text("a file", path)
    suffix = os.path.splitext(where)[1].lower()  # noqa: PTH122 - pathlib would cost every program that starts 4 ms
    if suffix not in (".toml", ".json"):
        raise ConfigError(f"file {where!r}: the suffix {suffix!r} is unknown; use .toml or .json")
    try:
        with open(where, "rb") as stream:  # noqa: PTH123
            text = stream.read().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"file {where!r} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"file {where!r} is not UTF-8: {error.reason} at byte {error.start}") from None
    document = _decode_toml(where, text) if suffix == ".toml" else _decode_json(where, text)
    return _section(table, where, document)


def _decode_toml(where: str, text: str) -> Mapping[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"file {where!r} is not valid TOML: {error}") from None
    except (RecursionError, ValueError) as error:  # too many nested tables, a number of thousands of digits
        raise ConfigError(f"file {where!r} cannot be read: {error}") from None


def _decode_json(where: str, text: str) -> Mapping[str, Any]:
    import json

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ConfigError(f"file {where!r}: {key!r} is given twice; keep one")
            found[key] = value
        return found

    try:
        document = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"file {where!r} is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except ConfigError:
        raise
    except (RecursionError, ValueError) as error:
        raise ConfigError(f"file {where!r} cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise ConfigError(f"file {where!r} has a JSON {type(document).__name__} at its top; write an object")
    return document


def _section(table: OptionTable, where: str, document: Mapping[str, Any]) -> dict[str, Any]:
    flat = {key: value for key, value in document.items() if key not in _SECTIONS}
    wanted = [table.section] if table.section != "producer" else [table.section, _OFFICIAL_SECTION]
    for name in wanted:
        part = document.get(name, {})
        if not isinstance(part, Mapping):
            raise ConfigError(f"file {where!r}: {name!r} is not a table; write [{name}] and options below")
        twice = sorted(flat.keys() & part.keys())
        if twice:
            raise ConfigError(f"file {where!r}: {twice[0]!r} stands at the top and in [{name}]; keep one")
        flat.update(part)
    return flat
