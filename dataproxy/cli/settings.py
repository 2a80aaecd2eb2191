"""Producer and hub options given as ``-o name=value``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["named_options", "named_values"]

#: Parameters of the loading functions that are not options.
_PARAMETERS: Final = frozenset({"file", "env", "require_target", "complete"})


def named_options(pairs: Iterable[str]) -> dict[str, Any]:
    """Return ``name=value`` texts of ``-o`` as keyword arguments for the loading functions.  Raises ConfigError."""
    found = named_values(pairs, "-o")
    for name in _PARAMETERS & found.keys():
        raise ConfigError(f"there is no option {name!r}", code="UNKNOWN_OPTION", hint="CONFIGURATION.md lists them")
    return found


def named_values(pairs: Iterable[str], what: str) -> dict[str, Any]:
    """Return ``name=value`` texts as a mapping.

    Raises ConfigError for a text without ``=`` and for a repeated name; the error shows only the name, since the
    value may be a secret.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ConfigError(f"{what} {name!r} has no value", hint=f"write {what} name=value")
        if name in found:
            raise ConfigError(f"{what} gives {name!r} twice", hint="keep one")
        found[name] = value
    return found
