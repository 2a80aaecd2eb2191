"""Frames of RocketMQ's remoting, read for people; docs/wire/rocketmq.md has the layout.

Nothing is believed: a length is compared with the bytes that are there before it is used.  So memory grows with the
input and never with what a length says.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from zlib import crc32

from dataproxy.errors import RemoteProtocolError
from dataproxy.wire.inlong import Problem
from dataproxy.wire.rocketmq.codes import LANGUAGES, Code
from dataproxy.wire.rocketmq.headers import REQUESTS, read_header

__all__ = ["Command", "Message", "begins_command", "read_commands"]

_HEAD: Final = 8
_MOST: Final = 16 << 20
_BINARY_LEAST: Final = 21
_BLANKS: Final = b" \t\r\n"
_MAGIC: Final = bytes.fromhex("daa320a7")
_ITEM: Final = 22
_FIXED: Final = 91
_BORN_V6, _STORE_V6 = 16, 32


class Message(NamedTuple):
    """A stored message, or an item of a batch, of which only some fields are there."""

    at: int  #: its first byte in the body
    size: int
    fields: dict[str, int | str]
    properties: dict[str, str]
    body: bytes


@dataclass
class Command:
    """One frame; ``kind`` is empty if its header cannot be read."""

    number: int
    offset: int  #: of its first byte in the input
    data: bytes  #: what is there of it
    form: int | None = None  #: 0: a header of JSON, 1: of bytes
    kind: str = ""  #: request, one-way or answer
    code: int = 0
    language: str = ""
    version: int = 0
    opaque: int | None = None
    flag: int = 0
    remark: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    body_at: int = 0
    body: bytes = b""
    messages: list[Message] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class _Wrong(Exception):  # noqa: N818 - it carries a problem
    def __init__(self, at: int, name: str, text: str) -> None:
        super().__init__(text)
        self.problem = Problem(at, name, text)


def begins_command(data: bytes) -> bool:
    """Tell whether bytes begin as a frame does: to InLong's protocol it would be of a type that there is not."""
    size = int.from_bytes(data[5:8])
    if len(data) <= _HEAD or size > int.from_bytes(data[:4]) - 4 or data[0] > 1:
        return False
    if data[4] == 0:
        return data[_HEAD : _HEAD + size].lstrip(_BLANKS)[:1] == b"{"
    return data[4] == 1 and size >= _BINARY_LEAST


def read_commands(data: bytes) -> Iterator[Command]:
    """Yield the frames of a stream.

    Behind a frame that is cut short, or whose length cannot be, nothing can be read: it is the last one, and has all
    bytes that are left.
    """
    at = number = 0
    while at < len(data):
        number += 1
        command = Command(number, at, b"")
        try:
            end = _find(command, data, at)
        except _Wrong as wrong:
            command.data = data[at:]
            command.problems.append(wrong.problem)
            yield command
            return
        command.data = data[at:end]
        try:
            _read(command)
        except _Wrong as wrong:
            command.problems.append(wrong.problem)
        yield command
        at = end


def _find(command: Command, data: bytes, start: int) -> int:
    """Return where the frame at ``start`` ends."""
    left = len(data) - start
    if left < _HEAD:
        raise _Wrong(0, "frame", f"only {left} of the {_HEAD} bytes of its head are there")
    length = int.from_bytes(data[start : start + 4], signed=True)
    if not 4 <= length <= _MOST:
        raise _Wrong(0, "length", f"it is {length}; expected 4 to {_MOST}")
    command.form = data[start + 4]
    size = int.from_bytes(data[start + 5 : start + 8])
    if command.form > 1:
        raise _Wrong(4, "form", f"it is {command.form}; expected 0 (JSON) or 1 (binary)")
    if size > length - 4:
        raise _Wrong(5, "header length", f"it is {size}; {length - 4} bytes are in the frame")
    if left < 4 + length:
        raise _Wrong(0, "length", f"it is {length}; {left - 4} bytes are there")
    command.body_at = _HEAD + size
    return start + 4 + length


def _read(command: Command) -> None:
    header = command.data[_HEAD : command.body_at]
    command.body = command.data[command.body_at :]
    if command.form == 0:
        _read_json(command, header)
    else:
        _read_binary(command, header)
    command.kind = "answer" if command.flag & 1 else "one-way request" if command.flag & 2 else "request"
    if command.opaque is None:
        raise _Wrong(_HEAD, "opaque", "it is missing: no answer finds its request")
    if not command.flag & 1 and command.code in REQUESTS:
        try:
            read_header(REQUESTS[command.code], dict(command.fields))
        except RemoteProtocolError as error:
            raise _Wrong(_HEAD, str(error.details["field"]), error.message) from None
    _read_body(command)


def _read_json(command: Command, header: bytes) -> None:
    try:
        found = json.loads(header.decode())
    except (ValueError, RecursionError) as error:
        raise _Wrong(_HEAD, "header", f"it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise _Wrong(_HEAD, "header", "it is no JSON object")
    command.code, command.flag = _integer(found, "code"), _integer(found, "flag")
    command.version = _integer(found, "version")
    command.opaque = _integer(found, "opaque") if found.get("opaque") is not None else None
    command.language = _text(found.get("language", "JAVA"))
    command.remark = _text(found.get("remark") or "")
    fields = found.get("extFields") or {}
    if not isinstance(fields, dict):
        raise _Wrong(_HEAD, "extFields", "it is no object")
    command.fields = [(name, _text(value)) for name, value in fields.items() if value is not None]


def _integer(found: dict[str, Any], name: str) -> int:
    value = found.get(name)
    text = "0" if value is None else str(value)
    digits = text.removeprefix("-")
    if isinstance(value, bool) or not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise _Wrong(_HEAD, name, f"it is {text[:60]!r}; expected a number")
    return int(text)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


def _read_binary(command: Command, header: bytes) -> None:
    if len(header) < _BINARY_LEAST:
        raise _Wrong(_HEAD, "header", f"it has {len(header)} bytes; expected {_BINARY_LEAST} or more")
    code, language, version, opaque, flag = struct.unpack_from(">hBhii", header)
    command.code, command.version, command.opaque, command.flag = code, version, opaque, flag
    command.language = LANGUAGES[language] if language < len(LANGUAGES) else str(language)
    remark, at = _sized(header, 13, 4, "remark")
    command.remark = remark.decode("utf-8", "backslashreplace")
    fields, end = _sized(header, at, 4, "extFields")
    start, here = end - len(fields), 0
    while here < len(fields):
        name, here = _sized(fields, here, 2, "name of a field", _HEAD + start)
        value, here = _sized(fields, here, 4, "value of a field", _HEAD + start)
        pair = (name.decode("utf-8", "backslashreplace"), value.decode("utf-8", "backslashreplace"))
        command.fields.append(pair)


def _sized(data: bytes, at: int, width: int, name: str, base: int = _HEAD) -> tuple[bytes, int]:
    """Return what stands behind its length, and where that ends."""
    start = at + width
    size = int.from_bytes(data[at:start], signed=True)
    if start > len(data) or not 0 <= size <= len(data) - start:
        raise _Wrong(base + at, name, f"its length is {size}; {max(len(data) - start, 0)} bytes are left")
    return data[start : start + size], start + size


def _read_body(command: Command) -> None:
    if command.code == Code.SEND_BATCH_MESSAGE and not command.flag & 1:
        _read_parts(command, _item)
    elif command.body[4:8] == _MAGIC:
        _read_parts(command, _stored)


def _read_parts(command: Command, read: Any) -> None:
    at = 0
    while at < len(command.body):
        here = command.body_at + at
        size = int.from_bytes(command.body[at : at + 4])
        if not 4 <= size <= len(command.body) - at:
            name = f"message {len(command.messages)}"
            raise _Wrong(here, name, f"its size is {size}; {len(command.body) - at} bytes are left")
        message = read(command, at, command.body[at : at + size])
        command.messages.append(message)
        at += size


def _item(command: Command, at: int, data: bytes) -> Message:
    name = f"message {len(command.messages)}"
    here = command.body_at + at
    if len(data) < _ITEM:
        raise _Wrong(here, name, f"it has {len(data)} bytes; expected {_ITEM} or more")
    body, end = _sized(data, 16, 4, name, here)
    properties, end = _sized(data, end, 2, name, here)
    if end != len(data):
        raise _Wrong(here, name, f"its size is {len(data)}; its parts have {end} bytes")
    return Message(at, len(data), {"flag": int.from_bytes(data[12:16], signed=True)}, _properties(properties), body)


def _stored(command: Command, at: int, data: bytes) -> Message:
    name = f"message {len(command.messages)}"
    here = command.body_at + at
    if len(data) < _FIXED or data[4:8] != _MAGIC:
        raise _Wrong(here, name, f"it is none; expected {_FIXED} bytes or more, with {_MAGIC.hex()} behind the size")
    checksum, queue, flag, offset, physical, sys_flag, born = struct.unpack_from(">IiiqqiQ", data, 8)
    host = 48
    stored_at = host + (20 if sys_flag & _BORN_V6 else 8)
    end = stored_at + 8 + (20 if sys_flag & _STORE_V6 else 8)
    if len(data) < end + 12:
        raise _Wrong(here, name, f"it has {len(data)} bytes, which are too few for its hosts")
    (stored,) = struct.unpack_from(">q", data, stored_at)
    retries, prepared = struct.unpack_from(">iq", data, end)
    body, end = _sized(data, end + 12, 4, name, here)
    topic, end = _sized(data, end, 1, name, here)
    properties, end = _sized(data, end, 2, name, here)
    if end != len(data):
        raise _Wrong(here, name, f"its size is {len(data)}; its parts have {end} bytes")
    computed = crc32(body) & 0x7FFFFFFF
    if checksum != computed:
        command.problems.append(Problem(here + 8, name, f"its checksum is {checksum}; expected {computed}"))
    fields: dict[str, int | str] = {
        "topic": topic.decode("utf-8", "backslashreplace"), "queueId": queue, "queueOffset": offset,
        "physicalOffset": physical, "flag": flag, "sysFlag": sys_flag, "bornTimestamp": born, "storeTimestamp": stored,
        "reconsumeTimes": retries, "preparedTransactionOffset": prepared,
    }  # fmt: skip
    return Message(at, len(data), fields, _properties(properties), body)


def _properties(text: bytes) -> dict[str, str]:
    pairs = [piece.partition("\x01") for piece in text.decode("utf-8", "backslashreplace").split("\x02")]
    return {name: value for name, _, value in pairs if name and value}
