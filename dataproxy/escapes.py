"""Attribute values of any text: values that cannot be sent are percent-encoded, and an attribute names their keys.

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
#: A value that matches is escaped: it has & or =, control characters, characters beyond ASCII, or a blank at its end.
NEEDS_ESCAPE: Final = r"[^ -~]|[&=]| \z"
_NEEDS: Final = re.compile(rb"[^ -~]|[&=]| \Z")
_READ_AS_ESCAPE: Final = re.compile(b"%(?=[0-9A-Fa-f]{2})")
_ESCAPE: Final = re.compile(b"%([0-9A-Fa-f]{2})")
_IN_NAMES: Final = re.compile(b"[%,]")


def needs_escape(value: str) -> bool:
    """Tell whether `escape_attrs` escapes a value.  Any thread."""
    return _NEEDS.search(value.encode("utf-8", "surrogatepass")) is not None


def escape_attrs(attrs: Mapping[str, str]) -> dict[str, str]:
    """Return attributes that can be sent, with any text as values; `unescape_attrs` returns the original ones.

    Attributes with half of a surrogate pair, which has no encoding, and attributes with the reserved key ``_escaped``
    stay unchanged: the sending call then raises the error.  Any thread.
    """
    try:
        entries: list[tuple[bytes, bytes | None]] = [(key.encode(), value.encode()) for key, value in attrs.items()]
    except UnicodeEncodeError:
        return dict(attrs)
    return {key.decode(): (value or b"").decode() for key, value in escape_entries(entries)}


def escape_entries(entries: list[tuple[bytes, bytes | None]]) -> list[tuple[bytes, bytes | None]]:
    """Return the attributes of one message, escaped as by `escape_attrs`; a value of None stays.  Any thread."""
    keys = [key for key, value in entries if value is not None and _NEEDS.search(value)]
    if not keys or any(key == _MARK for key, _ in entries):
        return entries
    out = [(key, value if value is None or key not in keys else _escaped(value)) for key, value in entries]
    return [*out, (_MARK, b",".join(_IN_NAMES.sub(_percent, key) for key in keys))]


def unescape_attrs(attrs: dict[str, str]) -> dict[str, str]:
    """Return attributes as they were before `escape_attrs`; the same object if none is marked as escaped.

    Attributes that `escape_attrs` cannot have made stay unchanged: ``_escaped`` names a missing key, or a value is not
    UTF-8 after decoding.  Any thread.
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
