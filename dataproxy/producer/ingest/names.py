"""Rules for group and stream ids and for attributes.  Attribute text has no escapes, so some texts cannot be sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from dataproxy.errors import InvalidMessageError
from dataproxy.escapes import ESCAPED_KEYS, escape_attrs, needs_escape
from dataproxy.messagetypes import ascii_only
from dataproxy.problems import plain_text, shown
from dataproxy.producer.ingest.reserved import RESERVED_ATTRS, instead_of

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "ATTRS_MAX_BYTES",
    "FRAME_OWN_BYTES",
    "NAME_MAX_BYTES",
    "check_attrs",
    "check_item_attrs",
    "check_name",
    "plain_attrs",
]

#: Longest group or stream id in bytes of UTF-8.
NAME_MAX_BYTES: Final = 256
#: Longest attribute text of a frame in bytes, ids included.  Servers close the connection a little above.
ATTRS_MAX_BYTES: Final = 32000
#: Bytes that a frame may add to the attribute text by itself: sid, dt, mid, cnt, cp.
FRAME_OWN_BYTES: Final = 100

_BESIDE_MARK: Final = RESERVED_ATTRS - {ESCAPED_KEYS}

_FORBIDDEN: Final = ("&", "=", "\0")
_CUT: Final = "".join(map(chr, range(33)))
_IDS_TEXT: Final = len("groupId=&streamId=")
_WORST_IDS: Final = _IDS_TEXT + 2 * NAME_MAX_BYTES


def check_name(kind: Literal["group", "stream"], value: object, *, message_type: int = 7) -> str:
    """Return a group or stream id if it may be sent.

    It is text of 1 to 256 bytes without ``&``, ``=`` and control characters, without blanks at its ends, and
    ASCII only with ``message_type`` 7.  Of a subclass of ``str`` the text that it holds is taken.  Raises
    InvalidMessageError (code BAD_NAME).  Any thread.
    """
    if not issubclass(type(value), str):
        raise _bad_name(kind, value, f"is of type {type(value).__name__}", "give text (str)")
    value = plain_text(value)
    if not value:
        raise _bad_name(kind, value, "is empty", f"name the {kind}")
    for character in value:
        if character in _FORBIDDEN or not character.isprintable():
            raise _bad_name(kind, value, f"holds {character!r}", "'&', '=' and control characters are not allowed")
    if value != value.strip():
        raise _bad_name(
            kind, value, "begins or ends with a blank", "remove the blanks at its ends; servers cut them off"
        )
    if ascii_only(message_type) and not value.isascii():
        raise _bad_name(kind, value, "is not ASCII", "frames of type 7 can hold ASCII only; use message_type=5")
    size = len(value.encode())
    if size > NAME_MAX_BYTES:
        raise _bad_name(kind, value, f"has {size} bytes", f"at most {NAME_MAX_BYTES} are allowed")
    return value


def plain_attrs(attrs: object) -> dict[str, str]:
    """Return a copy of attributes with plain texts: of a subclass of ``str`` the text that it holds is taken.

    So a member of a ``(str, Enum)`` is sent as its value, and no ``__str__`` or ``__format__`` of a caller puts another
    text in its place.  Raises InvalidMessageError (code BAD_ATTRIBUTE) for what is no mapping of text to text.
    """
    if type(attrs) is not dict and not isinstance(attrs, Mapping):
        raise InvalidMessageError(
            f"attributes are a mapping of text to text, not {type(attrs).__name__!r}",
            code="BAD_ATTRIBUTE",
            hint='give a dict, e.g. {"app": "web"}',
        )
    copy: dict[str, str] = dict(attrs)
    if {*map(type, copy), *map(type, copy.values())} <= {str}:
        return copy
    out: dict[str, str] = {}
    for key, value in copy.items():
        for what, part in (("key", key), ("value", value)):
            if not issubclass(type(part), str):
                raise _bad_attr(
                    key, value, f"its {what} is of type {type(part).__name__}", "give text, e.g. str(value)"
                )
        if plain_text(key) in out:
            raise _bad_attr(key, value, "another key has the same text", "give each attribute once")
        out[plain_text(key)] = plain_text(value)
    return out


def check_attrs(attrs: Mapping[str, str], *, ids_bytes: int | None = None, message_type: int = 7) -> str:
    """Return attributes as the text that is sent, ``a=1&b=2``, sorted by key so that equal mappings give equal text.

    ``ids_bytes`` is the length of group id plus stream id, without their keys (None: the longest possible).  Raises
    InvalidMessageError (code BAD_ATTRIBUTE) that names the key, the value and the rule.  Any thread.
    """
    return _text(plain_attrs(attrs), ids_bytes, message_type)


def check_item_attrs(
    attrs: Mapping[str, str], frame_keys: Collection[str], *, message_type: int = 7, escape: bool = False
) -> str:
    """Return the attributes of one message as text; none of them may have a name from ``frame_keys``.

    Consumers let a frame's attributes override those of its messages, so such a value would be lost.  With ``escape``
    values of any text are escaped.  Raises InvalidMessageError (code BAD_ATTRIBUTE).  Any thread.
    """
    attrs = plain_attrs(attrs)
    if escape and ESCAPED_KEYS not in attrs:
        text = _text(escape_attrs(attrs), None, message_type, _BESIDE_MARK)
    else:
        try:
            text = _text(attrs, None, message_type)
        except InvalidMessageError as error:
            if _escape_helps(attrs.get(str(error.details.get("key")), "")):
                error.hint += "; attribute_escape='percent' sends any text"
            raise
    for key in attrs:
        if key in frame_keys:
            raise _bad_attr(
                key,
                attrs[key],
                "its stream has an attribute of the same name, and consumers would see only that one",
                "rename one of them",
            )
    return text


def _escape_helps(value: str) -> bool:
    """Tell whether a value can be sent with escapes only; half of a surrogate pair cannot be sent at all."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return needs_escape(value)


def _text(
    attrs: dict[str, str], ids_bytes: int | None, message_type: int, reserved: frozenset[str] = RESERVED_ATTRS
) -> str:
    if not attrs:
        return ""
    text = "&".join([f"{key}={attrs[key]}" for key in sorted(attrs)])
    count = len(attrs)
    plain = (
        text.count("=") == count
        and text.count("&") == count - 1
        and text.isascii()
        and text.isprintable()
        and " " not in text
        and "" not in attrs
        and reserved.isdisjoint(attrs)
    )
    if not plain:
        _check_each(attrs, message_type, reserved)
    room = ATTRS_MAX_BYTES - (_WORST_IDS if ids_bytes is None else _IDS_TEXT + ids_bytes) - 1 - FRAME_OWN_BYTES
    size = len(text.encode())
    if size > room:
        raise InvalidMessageError(
            f"the attributes take {size} bytes, allowed are {room} beside the ids",
            code="BAD_ATTRIBUTE",
            hint="put large values into the body",
            details={"size": size, "limit": room},
        )
    return text


def _check_each(attrs: Mapping[str, str], message_type: int, reserved: frozenset[str]) -> None:
    for key, value in attrs.items():
        for what, part in (("key", key), ("value", value)):
            try:
                part.encode()
            except UnicodeEncodeError:
                raise _bad_attr(key, value, f"its {what} holds half of a surrogate pair", "give valid text") from None
            for character in _FORBIDDEN:
                if character in part:
                    raise _bad_attr(key, value, f"its {what} holds {character!r}", "it cannot be sent; encode it")
            if ascii_only(message_type) and not part.isascii():
                raise _bad_attr(
                    key, value, f"its {what} is not ASCII", "frames of type 7 can hold ASCII only; use message_type=5"
                )
        if not key:
            raise _bad_attr(key, value, "its key is empty", "name the attribute")
        if key != _cut(key) or value != _cut("=" + value)[1:]:
            raise _bad_attr(
                key,
                value,
                "it begins or ends with a blank or a control character",
                "remove the blanks at its ends; servers cut them off, and then keys that"
                " differ in nothing else become equal",
            )
        if key in reserved:
            raise _bad_attr(key, value, "its key is reserved", instead_of(key))


def _cut(text: str) -> str:
    """Return a text without blanks and control characters at its ends, which servers cut off."""
    before = ""
    while text != before:
        before, text = text, text.strip(_CUT).strip()
    return text


def _bad_name(kind: str, value: object, problem: str, hint: str) -> InvalidMessageError:
    return InvalidMessageError(
        f"{kind} id {shown(value)} {problem}", code="BAD_NAME", hint=hint, details={"kind": kind, "value": value}
    )


def _bad_attr(key: object, value: object, problem: str, hint: str) -> InvalidMessageError:
    return InvalidMessageError(
        f"attribute {shown(key)}={shown(value)}: {problem}", code="BAD_ATTRIBUTE", hint=hint, details={"key": key}
    )
