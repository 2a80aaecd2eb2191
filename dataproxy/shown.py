"""Foreign texts made safe for terminals and logs: without control characters, and URLs without secrets."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["foreign", "json_text", "printable", "without_secrets"]

_LONG = 400  # characters of a text of somebody else that are worth keeping


def printable(text: str) -> str:
    r"""Return a text with every character that is not printable as an escape, such as ``\x1b``, ``\n``, ``\u202e``.

    Each different character is examined once, so that a long text with many escapes takes little more time.
    """
    if text.isprintable():
        return text
    return text.translate({ord(character): _escaped(character) for character in set(text)})


def foreign(text: str) -> str:
    """Return what a server has said, for logs and errors: printable, and not longer than people read."""
    return printable(text if len(text) <= _LONG else f"{text[:_LONG]}... ({len(text)} characters)")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON in which every character that is not printable is an escape.

    A line with such a character has escapes for everything that is not ASCII.  The time depends only on the length.
    """
    text = _encoder(indent, False)(value)
    if text.isprintable():
        return text
    plain = _encoder(indent, True)(value).replace("\x7f", "\\u007f")  # DEL, which JSON does not escape
    if indent is None:
        return plain
    both = zip(text.split("\n"), plain.split("\n"), strict=True)  # line feeds in JSON texts are escapes
    return "\n".join(line if line.isprintable() else escaped for line, escaped in both)


def without_secrets(url: str) -> str:
    """Return a URL, also a malformed one, without user, password, query and fragment."""
    head, separator, rest = url.rpartition("://") if url.count("://") == 1 else ("", "", url)
    _, at, behind = rest.rpartition("@")
    shown = f"***@{behind}" if at else rest
    for mark in "?#":
        before, found, _ = shown.partition(mark)
        shown = f"{before}{found}***" if found else shown
    return f"{head}{separator}{shown}"


@functools.cache
def _encoder(indent: int | None, ascii_only: bool) -> Callable[[Any], str]:
    """Return a cached function that makes JSON: to build it takes longer than most of the encodings."""
    import json

    return json.JSONEncoder(indent=indent, ensure_ascii=ascii_only).encode


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
