"""RocketMQ's remoting in plain Python: what the compiled code is compared with, and shares nothing with.

Texts are bytes, as the compiled code gives them.  The JSON of headers is read by the standard library.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from typing import Any, Final

__all__ = [
    "LANGUAGES",
    "WireError",
    "checksum",
    "frame_of",
    "items",
    "join",
    "messages",
    "properties",
    "read_frame",
    "read_pull",
    "read_pulled",
    "read_send",
    "read_sent",
    "take_frame",
]

LANGUAGES: Final = (
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST",
)  # fmt: skip
_MOST: Final = 16 << 20
_DEPTH: Final = 32


class WireError(ValueError):
    """The bytes are not what they should be; ``args[1]``, if there is one, names a field."""


class _Number(str):
    """A number of JSON, as it was written."""

    __slots__ = ()


def take_frame(data: bytes, at: int = 0, most: int = _MOST) -> bytes | None:
    """Return the frame at ``at``, None if more of it has to come; raise WireError if these bytes are none."""
    left = data[at:]
    if left and left[0] > 1:
        raise WireError("a length of more than 16 MiB, or a negative one")
    if len(left) < 4:
        return None
    (length,) = struct.unpack_from(">i", left)
    if not 4 <= length <= most:
        raise WireError("a length that no frame has")
    if len(left) > 4 and left[4] > 1:
        raise WireError("a header of no known form")
    if len(left) < 8:
        return None
    if int.from_bytes(left[5:8]) > length - 4:
        raise WireError("a header that is longer than its frame")
    return bytes(left[: 4 + length]) if len(left) >= 4 + length else None


def join(data: bytes) -> list[bytes]:
    """Return the whole frames at the start of ``data``; raise WireError at the first that is none."""
    found, at = [], 0
    while (frame := take_frame(data, at)) is not None:
        found.append(frame)
        at += len(frame)
    return found


def frame_of(form: int, header: bytes, body: bytes = b"") -> bytes:
    """Return a frame."""
    return struct.pack(">iI", 4 + len(header) + len(body), form << 24 | len(header)) + header + body


def read_frame(frame: bytes) -> dict[str, Any]:
    """Return the command of a whole frame; raise WireError."""
    size = int.from_bytes(frame[5:8])
    header, body = frame[8 : 8 + size], frame[8 + size :]
    found = _read_json(header) if frame[4] == 0 else _read_binary(header)
    return {"form": frame[4], **found, "body": body}


def _deep(value: Any) -> int:
    inner = value.values() if isinstance(value, _Pairs) else value if isinstance(value, list) else ()
    own = 1 if isinstance(value, (_Pairs, list)) else 0
    return own + max(map(_deep, inner), default=0)


class _Pairs(list):  # type: ignore[type-arg]
    """The members of an object, in their order."""

    def values(self) -> list[Any]:
        return [value for _, value in self]


def _constant(text: str) -> Any:
    raise WireError(f"{text} is no JSON")


_READER: Final = json.JSONDecoder(
    object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_constant, strict=False
)


def _bytes(value: str) -> bytes:
    return re.sub("[\ud800-\udfff]", "\ufffd", value).encode()


def _as_text(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, str):
        return _bytes(value)
    raise WireError("an object where a text should be")


def _decimal(text: bytes, bits: int) -> int:
    if not re.fullmatch(rb"[+-]?[0-9]{1,19}", text) or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        raise WireError(f"{text!r} is no number of {bits} bits")
    if bits == 64 and int(text) == -(2**63):
        raise WireError("the one number that has no positive")
    return int(text)


def _read_json(header: bytes) -> dict[str, Any]:
    try:
        text = header.decode()
        start = len(text) - len(text.lstrip(" \t\r\n"))
        value, end = _READER.raw_decode(text, start)
    except RecursionError:
        raise WireError("too deep") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise WireError(str(error)) from None
    if not isinstance(value, _Pairs) or text[end:].strip(" \t\r\n") or _deep(value) > _DEPTH:
        raise WireError("no object, one of many levels, or something behind it")
    found: dict[str, Any] = {
        "code": 0, "language": 0, "version": 0, "opaque": None, "flag": 0, "remark": b"", "fields": None,
    }  # fmt: skip
    for key, one in value:
        if key in ("code", "version", "flag", "opaque"):
            if isinstance(one, bool) or not isinstance(one, (str, type(None))):
                raise WireError(f"{key} is no number")
            if one is not None:
                found[key] = _decimal(one.encode("utf-8", "replace"), 32)
            elif key == "opaque":
                found[key] = None
        elif key == "language":
            found[key] = _language(one, found[key])
        elif key == "remark":
            found[key] = b"" if one is None else _as_text(one)
        elif key == "extFields":
            if not isinstance(one, (_Pairs, type(None))):
                raise WireError("extFields is no object")
            found["fields"] = None if one is None else _fields(one)
    return found


def _fields(members: _Pairs) -> list[tuple[bytes, bytes]]:
    return [(_bytes(name), _as_text(value)) for name, value in members if value is not None]


def _language(value: Any, before: int) -> int:
    if isinstance(value, _Number):
        return int(value) if re.fullmatch("-?[0-9]{1,19}", value) and 0 <= int(value) < len(LANGUAGES) else -1
    if value is None:
        return before
    return LANGUAGES.index(value) if isinstance(value, str) and value in LANGUAGES else -1


def _read_binary(header: bytes) -> dict[str, Any]:
    try:
        code, language, version, opaque, flag, size = struct.unpack_from(">hBhiii", header)
        at = 17
        if size < 0 or at + size + 4 > len(header):
            raise WireError("a remark that is longer than its header")
        remark = header[at : at + size]
        at += size
        (size,) = struct.unpack_from(">i", header, at)
        at += 4
        if size < 0 or at + size > len(header):
            raise WireError("fields that are longer than their header")
        fields, pairs, here = header[at : at + size], [], 0
        while here < size:
            (n,) = struct.unpack_from(">h", fields, here)
            (m,) = struct.unpack_from(">i", fields, here + 2 + n) if n >= 0 else (-1,)
            here += 2
            if n < 0 or m < 0 or here + n + 4 + m > size:
                raise WireError("a field that is longer than all of them")
            pairs.append((fields[here : here + n], fields[here + n + 4 : here + n + 4 + m]))
            here += n + 4 + m
    except struct.error as error:
        raise WireError(str(error)) from None
    return {
        "code": code, "language": language if language < len(LANGUAGES) else -1, "version": version, "opaque": opaque,
        "flag": flag, "remark": remark, "fields": pairs or None,
    }  # fmt: skip


_SEND: Final = (
    ("producerGroup", "text"), ("topic", "text"), ("defaultTopic", "text"), ("defaultTopicQueueNums", 32),
    ("queueId", 32), ("sysFlag", 32), ("bornTimestamp", 64), ("flag", 32), ("properties", b""), ("reconsumeTimes", 0),
    ("unitMode", False), ("maxReconsumeTimes", -1), ("batch", False), ("bname", b""),
)  # fmt: skip
_PULL: Final = (
    ("consumerGroup", "text"), ("topic", "text"), ("queueId", 32), ("queueOffset", 64), ("maxMsgNums", 32),
    ("sysFlag", 32), ("commitOffset", 64), ("suspendTimeoutMillis", 64), ("subVersion", 64), ("subscription", b""),
    ("expressionType", b""), ("bname", b""),
)  # fmt: skip
_OFFSETS: Final = ("suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset")


def _typed(fields: dict[bytes, bytes], shape: tuple[tuple[str, Any], ...], names: list[str]) -> dict[str, Any]:
    """Return the fields by their types: "text" and numbers of bits have to be there, all else is a default."""
    found: dict[str, Any] = {}
    for (word, kind), name in zip(shape, names, strict=True):
        value = fields.get(name.encode())
        needed = kind == "text" or (kind in (32, 64) and not isinstance(kind, bool))
        if needed and not value:
            raise WireError("it is missing", word)
        if value is None:
            found[word] = kind
        elif kind == "text" or isinstance(kind, bytes):
            found[word] = value
        elif isinstance(kind, bool):
            found[word] = value.lower() == b"true"
        elif not needed and not value:
            found[word] = kind
        else:
            try:
                found[word] = _decimal(value, 64 if kind == 64 else 32)
            except WireError:
                raise WireError("it is no number", word) from None
    return found


def read_send(command: dict[str, Any]) -> dict[str, Any]:
    """Return what a request with code 10, 310 or 320 asks for; raise WireError with the field's name."""
    words = [word for word, _ in _SEND]
    names = words if command["code"] == 10 else list("abcdefghijklmn")
    return {**_typed(dict(command["fields"] or ()), _SEND, names), "body": command["body"]}


def read_pull(command: dict[str, Any]) -> dict[str, Any]:
    """Return what a request with code 11 asks for; raise WireError with the field's name."""
    return _typed(dict(command["fields"] or ()), _PULL, [word for word, _ in _PULL])


def read_sent(command: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a SEND."""
    fields = dict(command["fields"] or ())
    shape = (("msgId", "text"), ("queueId", 32), ("queueOffset", 64), ("transactionId", b""))
    found: dict[str, Any] = {"code": command["code"], "stored": command["code"] in (0, 10, 11, 12)}
    found["remark"] = command["remark"]
    return {**found, **_typed(fields, shape, [name for name, _ in shape])} if found["stored"] else found


def read_pulled(command: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a PULL."""
    code = command["code"]
    found = {"code": code, "offsets": code in (0, 19, 20, 21), "remark": command["remark"]}
    found["messages"] = command["body"] if code == 0 else b""
    shape = tuple((name, 64) for name in _OFFSETS)
    return {**found, **_typed(dict(command["fields"] or ()), shape, list(_OFFSETS))} if found["offsets"] else found


def _sized(data: bytes, at: int, form: str) -> tuple[bytes, int]:
    (size,) = struct.unpack_from(form, data, at)
    at += struct.calcsize(form)
    if size < 0 or at + size > len(data):
        raise WireError("a part that is longer than its message")
    return data[at : at + size], at + size


def messages(data: bytes) -> list[dict[str, Any]]:
    """Return stored messages; raise WireError at the first that is broken."""
    found, at = [], 0
    while at < len(data):
        if len(data) - at < 8:
            raise WireError("no whole message")
        size, magic = struct.unpack_from(">iI", data, at)
        if not 91 <= size <= len(data) - at or magic != 0xDAA320A7:
            raise WireError("no message")
        try:
            found.append(_message(data[at : at + size]))
        except struct.error:
            raise WireError("a message that is too short") from None
        at += size
    return found


def _message(data: bytes) -> dict[str, Any]:
    names = ("bodyCRC", "queueId", "flag", "queueOffset", "physicalOffset", "sysFlag", "bornTimestamp")
    one: dict[str, Any] = dict(zip(names, struct.unpack_from(">Iiiqqiq", data, 8), strict=True))
    at = 48
    one["bornHost"], at = _host(data, at, one["sysFlag"] & 16)
    (one["storeTimestamp"],) = struct.unpack_from(">q", data, at)
    one["storeHost"], at = _host(data, at + 8, one["sysFlag"] & 32)
    one["reconsumeTimes"], one["preparedTransactionOffset"] = struct.unpack_from(">iq", data, at)
    one["body"], at = _sized(data, at + 12, ">i")
    one["topic"], at = _sized(data, at, ">b")
    one["properties"], at = _sized(data, at, ">h")
    if at != len(data):
        raise WireError("a message that says it is longer than its parts")
    return one


def _host(data: bytes, at: int, v6: int) -> tuple[tuple[bytes, int], int]:
    n = 16 if v6 else 4
    (port,) = struct.unpack_from(">i", data, at + n)
    return (data[at : at + n], port), at + n + 4


def items(data: bytes) -> list[dict[str, Any]]:
    """Return the items of a batch; raise WireError at the first that is broken."""
    found, at = [], 0
    while at < len(data):
        try:
            size, _, _, flag = struct.unpack_from(">iIIi", data, at)
            if not 22 <= size <= len(data) - at:
                raise WireError("an item that is longer than its batch")
            item = data[at : at + size]
            body, here = _sized(item, 16, ">i")
            texts, here = _sized(item, here, ">h")
        except struct.error:
            raise WireError("no whole item") from None
        if here != size:
            raise WireError("an item that says it is longer than its parts")
        found.append({"flag": flag, "body": body, "properties": texts})
        at += size
    return found


def properties(text: bytes) -> list[tuple[bytes, bytes]]:
    """Return all properties of a text that have a name and a value."""
    pairs = [piece.partition(b"\x01") for piece in text.split(b"\x02")]
    return [(name, value) for name, _, value in pairs if name and value]


def checksum(body: bytes) -> int:
    """Return the checksum of a stored body."""
    return zlib.crc32(body) & 0x7FFFFFFF
