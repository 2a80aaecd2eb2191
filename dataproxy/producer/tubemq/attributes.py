"""Names of TubeMQ's topics, and attributes as the text ``key=value,key=value`` that travels before a body."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from dataproxy.errors import InvalidMessageError
from dataproxy.numbers import NO_TIME
from dataproxy.problems import plain_text, shown
from dataproxy.producer.ingest.names import ATTRS_MAX_BYTES, plain_attrs
from dataproxy.producer.ingest.times import time_ms

__all__ = ["FILTER_ITEM", "MESSAGE_TIME", "attribute_text", "check_topic", "item_text"]

#: The attribute that brokers and consumers filter by.
FILTER_ITEM: Final = "$msgType$"
#: The attribute with the time of a message, ``yyyyMMddHHmm`` in local time.
MESSAGE_TIME: Final = "$msgTime$"

_FIRST: Final = (FILTER_ITEM, MESSAGE_TIME)  # as TubeMQ's own clients write them
_TOPIC: Final = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
_TIME: Final = r"[0-9]{12}"
_ITEM_MOST: Final = 255
_ROOM: Final = ATTRS_MAX_BYTES - 1000  # beside the names in a request; one size for all topics


def check_topic(name: object) -> str:
    """Return the name of a topic.  Raises InvalidMessageError (code BAD_NAME)."""
    if not issubclass(type(name), str):
        raise InvalidMessageError(
            f"topic {shown(name)} is of type {type(name).__name__}", code="BAD_NAME", hint="give text (str)"
        )
    text = plain_text(str.__str__(name))
    if not re.fullmatch(_TOPIC, text):
        raise InvalidMessageError(
            f"topic {shown(text)} is not a name of a topic",
            code="BAD_NAME",
            hint="it begins with a letter, and has letters, digits, '-' and '_', at most 64",
            details={"kind": "topic", "value": text},
        )
    return text


def attribute_text(attrs: Mapping[str, str], others: Collection[str] = ()) -> str:
    """Return attributes as the text that travels, the filter item and the time first, then sorted by key.

    ``others`` are names of attributes that all messages of the stream have; none may come twice.  Raises
    InvalidMessageError (code BAD_ATTRIBUTE) that names key, value and rule.
    """
    found = plain_attrs(attrs)
    for key, value in found.items():
        _check(key, value)
        if key in others:
            raise _problem(key, value, "its stream has an attribute of the same name", "rename one of them")
    first = [key for key in _FIRST if key in found]
    text = ",".join(f"{key}={found[key]}" for key in (*first, *sorted(found.keys() - set(_FIRST))))
    size = len(text.encode())
    if size > _ROOM:
        raise InvalidMessageError(
            f"the attributes take {size} bytes, allowed are {_ROOM}",
            code="BAD_ATTRIBUTE",
            hint="put large values into the body",
            details={"size": size, "limit": _ROOM},
        )
    return text


def item_text(attrs: Mapping[str, str] | None, dt: object, frame_keys: Collection[str]) -> tuple[int, bytes]:
    """Return data time (ms, NO_TIME without one) and attribute text of one message; a time becomes an attribute, too.

    Raises InvalidMessageError.
    """
    when = time_ms(dt)
    given = dict(plain_attrs(attrs)) if attrs is not None else {}
    if when != NO_TIME and MESSAGE_TIME not in given and MESSAGE_TIME not in frame_keys:
        given[MESSAGE_TIME] = datetime.fromtimestamp(when / 1000).strftime("%Y%m%d%H%M")  # noqa: DTZ006 - the protocol's
    return when, attribute_text(given, frame_keys).encode() if given else b""


def _check(key: str, value: str) -> None:
    for what, part in (("key", key), ("value", value)):
        try:
            part.encode()
        except UnicodeEncodeError:
            raise _problem(key, value, f"its {what} holds half of a surrogate pair", "give valid text") from None
        mark = next((mark for mark in ",=" if mark in part), "")
        if mark:
            raise _problem(key, value, f"its {what} holds {mark!r}", "it cannot be sent; encode it")
    if not key:
        raise _problem(key, value, "its key is empty", "name the attribute")
    if key == FILTER_ITEM and (not value or len(value) > _ITEM_MOST or any(map(str.isspace, value))):
        raise _problem(key, value, "it is no filter item", f"give 1 to {_ITEM_MOST} characters without blanks")
    if key == MESSAGE_TIME and not re.fullmatch(_TIME, value):
        raise _problem(key, value, "it is no time of a message", "give dt=, or twelve digits: yyyyMMddHHmm, local time")


def _problem(key: object, value: object, problem: str, hint: str) -> InvalidMessageError:
    return InvalidMessageError(
        f"attribute {shown(key)}={shown(value)}: {problem}", code="BAD_ATTRIBUTE", hint=hint, details={"key": key}
    )
