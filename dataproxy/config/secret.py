"""Secrets, and where they are: given as a value, in the environment, in a file, or by a function."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from hmac import compare_digest
from typing import Final

from dataproxy.errors import ConfigError

__all__ = ["Secret"]

_PREFIXES = ("env:", "file:", "value:")
_LONGEST: Final = 64 << 10


class Secret:
    """Hold a secret, or the place where it is.  Neither its text nor that of its place is ever shown.

    ``source``: ``env:NAME`` for an environment variable, ``file:PATH`` for the first line of a file, or the secret
    itself (``value:...`` if it begins with one of these words); or a function that returns it.  Places are looked at
    by each ``reveal``, so that a changed file or variable counts from then on.  An empty secret is False.
    """

    __slots__ = ("_source",)

    def __init__(self, source: str | Callable[[], str | bytes] = "") -> None:
        self._source = source

    @property
    def portable(self) -> bool:
        """Tell whether only a place is held that another machine can look at: a variable or a file."""
        return isinstance(self._source, str) and self._source.startswith(("env:", "file:"))

    @property
    def asks(self) -> bool:
        """Tell whether a function of the user gives the secret, which may take its time."""
        return not isinstance(self._source, str)

    @property
    def has_nul(self) -> bool:
        """Tell whether the text contains a NUL character, which no secret has."""
        return isinstance(self._source, str) and "\0" in self._source

    def reveal(self) -> str:
        """Return the secret.

        Raises ConfigError (code SECRET) that names the place and shows nothing of the secret; a place that holds an
        empty text has no secret.
        """
        source = self._source
        if not isinstance(source, str):
            return _called(source)
        if source.startswith("env:"):
            return _from_environment(source[4:])
        if source.startswith("file:"):
            return _from_file(source[5:])
        if source == "value:":
            raise _problem("a secret is given as 'value:', which is empty", "write the secret behind it")
        return source.removeprefix("value:")

    def __bool__(self) -> bool:
        return self._source != ""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Secret):
            return self._source == other._source
        if isinstance(other, str) and isinstance(self._source, str):
            return compare_digest(self._source.encode(), other.encode())
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._source)

    def __repr__(self) -> str:
        return "Secret('***')" if self else "Secret('')"

    def __str__(self) -> str:
        return "***" if self else ""

    def __reduce__(self) -> tuple[type[Secret], tuple[str | Callable[[], str | bytes]]]:
        return Secret, (self._source,)


def _problem(what: str, hint: str) -> ConfigError:
    return ConfigError(what, code="SECRET", hint=hint)


def _from_environment(name: str) -> str:
    if not os.environ.get(name):
        raise _problem(f"a secret is read from the environment variable {name!r}, which is not set", "set it")
    return os.environ[name]


def _from_file(path: str) -> str:
    try:
        return _first_line(path)
    except OSError as error:
        why = error.strerror or type(error).__name__
    except UnicodeError:  # its text has the bytes
        why = "it is not UTF-8 text"
    except ValueError as error:
        why = str(error)
    raise _problem(f"a secret is read from the file {path!r}, which fails: {why}", "check path and permissions")


def _first_line(path: str) -> str:
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - as below.  A pipe would wait for its writer
        raise ValueError("it is not a regular file")
    with open(path, encoding="utf-8-sig") as file:  # noqa: PTH123 - pathlib costs every program that starts some ms
        found = file.readline(_LONGEST).rstrip("\r\n")
    if not 0 < len(found) < _LONGEST:
        raise ValueError(f"its first line has {len(found)} characters" + (" or more" if found else ""))
    return found


def _called(function: Callable[[], str | bytes]) -> str:
    """Return what a function of the user gives; the text of its error may quote the secret, so it is not shown."""
    try:
        if found := _text(function()):
            return found
        why = "returned an empty text"
    except Exception as error:  # noqa: BLE001 - whatever it is, its text is not shown
        why = f"failed with {type(error).__name__}"
    raise _problem(f"the function that gives a secret {why}", "call it by itself to see its error")


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return value
    raise TypeError
