"""Attribute values of any text: what the wire cannot hold stands in percent-encoding, and an attribute names the keys.

See docs/decisions/0014-attribute-escapes.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ESCAPED_KEYS", "NEEDS_ESCAPE", "escape_attrs", "escape_entries", "needs_escape", "unescape_attrs"]

#: The attribute that names the keys whose values are escaped, with commas between them.
ESCAPED_KEYS: Final = "_escaped"
_MARK: Final = ESCAPED_KEYS.encode()
#: Pattern of what a value holds that is escaped: & and =, control characters, all beyond ASCII, a blank at the end.
NEEDS_ESCAPE: Final = r"[^ -~]|[&=]| \z"
_NEEDS: Final = re.compile(rb"[^ -~]|[&=]| \Z")
_READ_AS_ESCAPE: Final = re.compile(b"%(?=[0-9A-Fa-f]{2})")
_ESCAPE: Final = re.compile(b"%([0-9A-Fa-f]{2})")
_IN_NAMES: Final = re.compile(b"[%,]")


def needs_escape(value: str) -> bool:
    """Tell whether a value is one that `escape_attrs` escapes.  Any thread."""
    return _NEEDS.search(value.encode("utf-8", "surrogatepass")) is not None


def escape_attrs(attrs: Mapping[str, str]) -> dict[str, str]:
    """Return attributes that can travel whatever their values hold; `unescape_attrs` gives back what they were.

    They stay as they are with half of a surrogate pair in them, which no escape helps, and with the key ``_escaped``,
    which is reserved for this: who sends them is told.  Any thread.
    """
    try:
        entries: list[tuple[bytes, bytes | None]] = [(key.encode(), value.encode()) for key, value in attrs.items()]
    except UnicodeEncodeError:
        return dict(attrs)
    return {key.decode(): (value or b"").decode() for key, value in escape_entries(entries)}


def escape_entries(entries: list[tuple[bytes, bytes | None]]) -> list[tuple[bytes, bytes | None]]:
    """Return the attributes of one message as `escape_attrs` does; a value of None stays.  Any thread."""
    keys = [key for key, value in entries if value is not None and _NEEDS.search(value)]
    if not keys or any(key == _MARK for key, _ in entries):
        return entries
    out = [(key, value if value is None or key not in keys else _escaped(value)) for key, value in entries]
    return [*out, (_MARK, b",".join(_IN_NAMES.sub(_percent, key) for key in keys))]


def unescape_attrs(attrs: dict[str, str]) -> dict[str, str]:
    """Return attributes as they were before `escape_attrs`; the same object where nothing says that they are escaped.

    What names a key that is not there, or a value that is no UTF-8 once it is unescaped, was not made by it and
    stays as it is.  Any thread.
    """
    named = attrs.get(ESCAPED_KEYS)
    if named is None:
        return attrs
    out = dict(attrs)
    del out[ESCAPED_KEYS]
    try:
        for key in map(_unescaped, named.split(",")):
            out[key] = _unescaped(out[key])
    except (KeyError, UnicodeError):
        return attrs
    return out


def _escaped(value: bytes) -> bytes:
    return _NEEDS.sub(_percent, _READ_AS_ESCAPE.sub(b"%25", value))


def _percent(found: re.Match[bytes]) -> bytes:
    return b"%%%02X" % ord(found[0])


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), text.encode()).decode()
