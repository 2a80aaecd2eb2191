"""Texts of others as they are shown: no terminal or log obeys what is in them, and no secret of a URL is told."""

from __future__ import annotations

from typing import Any

__all__ = ["json_text", "printable", "without_secrets"]


def printable(text: str) -> str:
    r"""Return a text with every character that is not printable as an escape, such as ``\x1b``, ``\n``, ``\u202e``."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON in which every character that is not printable is an escape."""
    import json

    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.isprintable():
        return text
    return "\n".join(line if line.isprintable() else "".join(map(_json_escaped, line)) for line in text.split("\n"))


def without_secrets(url: str) -> str:
    """Return a URL, or what was meant to be one, without user, password, query and fragment."""
    head, separator, rest = url.rpartition("://") if url.count("://") == 1 else ("", "", url)
    _, at, behind = rest.rpartition("@")
    shown = f"***@{behind}" if at else rest
    for mark in "?#":
        before, found, _ = shown.partition(mark)
        shown = f"{before}{found}***" if found else shown
    return f"{head}{separator}{shown}"


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def _json_escaped(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
