"""Messages of a pack as the bytes that are printed for them."""

from __future__ import annotations

import base64
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dataproxy.shown import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataproxy._core.consumer.pack import Pack

__all__ = ["Format", "printer"]


class Format(StrEnum):
    """Name the forms of the output."""

    TEXT = "text"
    JSON = "json"
    COUNT = "count"


def printer(form: Format, end: bytes, *, escaped: bool) -> Callable[[Pack, int], bytes]:
    """Return a function that makes bytes of the first so many messages of a pack.

    ``end`` stands behind each body.  ``escaped``: bodies are made safe for a terminal.
    """
    if form is Format.JSON:
        return _json_lines
    if form is Format.COUNT:
        return lambda pack, count: b""
    if escaped:
        return lambda pack, count: b"".join(_safe(body) + end for body in pack.bodies()[:count])
    return lambda pack, count: b"".join(body + end for body in pack.bodies()[:count])


def _safe(body: bytes) -> bytes:
    return printable(body.decode("utf-8", "backslashreplace")).encode()


def _json_lines(pack: Pack, count: int) -> bytes:
    """Return one JSON object a line; a body that is not UTF-8 goes to ``body_base64``."""
    lines = []
    for index, record in enumerate(pack[:count]):
        shown: dict[str, Any] = {
            "topic": pack.topic, "partition": pack.partition, "offset": pack.offset, "index": index, "id": record.id,
            "attributes": {_text(key): _text(value) for key, value in record.attributes.items()},
        }  # fmt: skip
        body = record.body
        try:
            shown["body"] = body.decode()
        except UnicodeDecodeError:
            shown["body_base64"] = base64.b64encode(body).decode("ascii")
        lines.append(json_text(shown))
    return "".join(f"{line}\n" for line in lines).encode()


def _text(attribute: str) -> str:
    """Return a part of an attribute whose bytes that are no UTF-8 are escapes."""
    return attribute.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
