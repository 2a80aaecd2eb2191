"""Reading of configuration files: TOML or JSON, chosen by the suffix."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from dataproxy.config.option import OptionTable

__all__ = ["read_file"]

#: Table that the official C++ and Python SDKs put all their options into.
_OFFICIAL_SECTION: Final = "init-param"
_SECTIONS: Final = frozenset({"producer", "hub", _OFFICIAL_SECTION})


def read_file(table: OptionTable, path: str | Path) -> dict[str, Any]:
    """Return the raw values of a configuration file.

    Options stand at the top or in a table named after the part (``[producer]``, ``[hub]``); tables of other
    parts are left alone.  Raises ConfigError that names the file and the place.
    """
    where = Path(path)
    suffix = where.suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ConfigError(f"file {str(where)!r}: the suffix {suffix!r} is unknown; use .toml or .json")
    try:
        text = where.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"file {str(where)!r} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"file {str(where)!r} is not UTF-8: {error.reason} at byte {error.start}") from None
    document = _decode_toml(where, text) if suffix == ".toml" else _decode_json(where, text)
    return _section(table, where, document)


def _decode_toml(where: Path, text: str) -> Mapping[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"file {str(where)!r} is no valid TOML: {error}") from None


def _decode_json(where: Path, text: str) -> Mapping[str, Any]:
    import json

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ConfigError(f"file {str(where)!r}: {key!r} is given twice; keep one")
            found[key] = value
        return found

    try:
        document = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"file {str(where)!r} is no valid JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    if not isinstance(document, dict):
        raise ConfigError(f"file {str(where)!r} holds a JSON {type(document).__name__}; an object is wanted")
    return document


def _section(table: OptionTable, where: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    flat = {key: value for key, value in document.items() if key not in _SECTIONS}
    wanted = [table.section] if table.section != "producer" else [table.section, _OFFICIAL_SECTION]
    for name in wanted:
        part = document.get(name, {})
        if not isinstance(part, Mapping):
            raise ConfigError(f"file {str(where)!r}: {name!r} is not a table; write [{name}] and options below")
        twice = sorted(flat.keys() & part.keys())
        if twice:
            raise ConfigError(f"file {str(where)!r}: {twice[0]!r} stands at the top and in [{name}]; keep one")
        flat.update(part)
    return flat
