"""TubeMQ's RPC in plain Python: frames cut and joined, payloads taken apart, checksums; protobuf reads the messages.

It shares nothing with the package but the schema: it is what the compiled code is compared with.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

from google.protobuf.message import DecodeError

from dataproxy.wire.tubemq import messages

__all__ = [
    "WireError",
    "answered",
    "as_bytes",
    "called",
    "checksum_of",
    "cut",
    "failed",
    "filled",
    "has_group",
    "hash_of",
    "join",
    "payload_has_group",
    "read_message",
    "split_answer",
    "split_call",
    "take_frame",
]

TOKEN: Final = 0xFF7FF4FE


class WireError(ValueError):
    """The bytes are not what they should be."""


def cut(serial: int, payload: bytes, size: int = 8192) -> bytes:
    """Return a frame with slices of ``size`` bytes."""
    slices = [payload[at : at + size] for at in range(0, len(payload), size)]
    return struct.pack(">III", TOKEN, serial, len(slices)) + b"".join(struct.pack(">I", len(s)) + s for s in slices)


def take_frame(data: bytes | bytearray, at: int = 0) -> tuple[int, bytes, int] | None:
    """Return (serial, payload, end) of the frame at ``at``, None if more of it has to come; raise WireError if none."""
    if data[at : at + 4] != struct.pack(">I", TOKEN)[: len(data) - at]:
        raise WireError("no frame")
    if len(data) - at < 12:
        return None
    _, serial, n = struct.unpack_from(">III", data, at)
    if not 0 < n <= 3584:
        raise WireError("no frame")
    here, parts = at + 12, []
    for _ in range(n):
        if len(data) < here + 4:
            return None
        (size,) = struct.unpack_from(">I", data, here)
        if not 0 < size <= 65536:
            raise WireError("a slice of no size")
        if len(data) < here + 4 + size:
            return None
        parts.append(bytes(data[here + 4 : here + 4 + size]))
        here += 4 + size
    return serial, b"".join(parts), here


def join(data: bytes) -> list[tuple[int, bytes]]:
    """Return (serial, payload) of each whole frame in ``data``; raise WireError at the first that is none."""
    found, at = [], 0
    while (frame := take_frame(data, at)) is not None:
        serial, payload, at = frame
        found.append((serial, payload))
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("no length")
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value & (1 << 64) - 1, at


def _delimited(data: bytes, kinds: list[str]) -> list[Any]:
    found, at = [], 0
    for kind in kinds:
        size, at = _varint(data, at)
        if size > len(data) - at:
            raise WireError("a message that is not whole")
        found.append(read_message(kind, data[at : at + size]))
        at += size
    return found


def read_message(name: str, data: bytes) -> Any:
    """Return a message by the name of its kind; raise WireError if it is broken or lacks a required field."""
    kind: Any = getattr(messages, name)
    try:
        message = kind.FromString(data)
    except DecodeError as error:
        raise WireError(str(error)) from None
    if not message.IsInitialized():  # this protobuf looks for required fields only when it writes
        raise WireError(f"{message.FindInitializationErrors()} are missing")
    return message


_NESTED: Final = {("GetMessageResponseB2C", 4): "TransferedMessage", ("SendMessageRequestP2B", 10): "AuthorizedInfo"}


def has_group(name: str, data: bytes) -> bool:
    """Tell whether a message, or one inside of it, has a field of a form that protobuf gave up."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind in (3, 4):
            return True
        if kind == 0:
            _, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            inner = _NESTED.get((name, tag >> 3))
            if inner is not None and has_group(inner, data[at : at + size]):
                return True
            at += size
        else:
            at += 8 if kind == 1 else 4
    return False


def payload_has_group(payload: bytes) -> bool:
    """Tell the same of the three messages of a payload."""
    at = 0
    for _ in range(3):
        size, at = _varint(payload, at)
        if has_group("", payload[at : at + size]):
            return True
        at += size
    return False


def filled(name: str, fields: dict[str, Any]) -> Any:
    """Return a message with these fields; ``{"hex": ...}`` are bytes, dictionaries are messages of their own."""
    kind: Any = getattr(messages, name)
    message = kind()
    for field, value in fields.items():
        _set(message, field, value)
    return message


def _set(message: Any, field: str, value: Any) -> None:
    if isinstance(value, dict) and set(value) == {"hex"}:
        setattr(message, field, bytes.fromhex(value["hex"]))
    elif isinstance(value, dict):
        getattr(message, field).SetInParent()
        for name, inner in value.items():
            _set(getattr(message, field), name, inner)
    elif isinstance(value, list):
        for one in value:
            if isinstance(one, dict):
                added = getattr(message, field).add()
                for name, inner in one.items():
                    _set(added, name, inner)
            else:
                getattr(message, field).append(one)
    else:
        setattr(message, field, value)


def _joined(*parts: Any) -> bytes:
    out = b""
    for part in parts:
        data, size = part.SerializeToString(), part.ByteSize()
        while size >= 0x80:
            out += bytes([size & 0x7F | 0x80])
            size >>= 7
        out += bytes([size]) + data
    return out


def called(service: int, version: int, method: int, timeout: int, request: bytes, flag: int = 0) -> bytes:
    """Return the payload of a request."""
    return _joined(
        messages.RpcConnHeader(flag=flag),
        messages.RequestHeader(serviceType=service, protocolVer=version),
        messages.RequestBody(method=method, timeout=timeout, request=request),
    )


def answered(method: int, data: bytes) -> bytes:
    """Return the payload of a success."""
    return _joined(
        messages.RpcConnHeader(flag=1),
        messages.ResponseHeader(status="SUCCESS", protocolVer=3),
        messages.RspResponseBody(method=method, data=data),
    )


def failed(status: int, name: str, text: str) -> bytes:
    """Return the payload of an exception; one of a request that could not be read (2) tells no version."""
    return _joined(
        messages.RpcConnHeader(flag=1),
        messages.ResponseHeader(status="FATAL" if status == 2 else "ERROR", protocolVer=None if status == 2 else 3),
        messages.RspExceptionBody(exceptionName=name, stackTrace=text),
    )


def split_call(payload: bytes) -> dict[str, Any]:
    """Return a request's parts; raise WireError if it is none."""
    conn, head, body = _delimited(payload, ["RpcConnHeader", "RequestHeader", "RequestBody"])
    return {
        "flag": conn.flag, "serviceType": head.serviceType, "protocolVer": head.protocolVer, "method": body.method,
        "timeout": body.timeout, "request": body.request,
    }  # fmt: skip


def as_bytes(text: str | bytes) -> bytes:
    """Return a text as it travels; protobuf gives one that is not UTF-8 as bytes."""
    return text if isinstance(text, bytes) else text.encode()


def split_answer(payload: bytes) -> dict[str, Any]:
    """Return an answer's parts; raise WireError if it is none."""
    _, head = _delimited(payload, ["RpcConnHeader", "ResponseHeader"])
    last = "RspExceptionBody" if head.status else "RspResponseBody"
    body = _delimited(payload, ["RpcConnHeader", "ResponseHeader", last])[2]
    if head.status == 0:
        return {"status": 0, "method": body.method, "data": body.data}
    return {
        "status": head.status, "exceptionName": as_bytes(body.exceptionName), "stackTrace": as_bytes(body.stackTrace),
    }  # fmt: skip


def checksum_of(payload: bytes) -> int:
    """Return the checksum of a payload."""
    return zlib.crc32(payload) & 0x7FFFFFFF


def hash_of(item: str) -> int:
    """Return Java's hash of a text."""
    code = 0
    for (unit,) in struct.iter_unpack(">H", item.encode("utf-16-be")):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code - (1 << 32) if code >= 1 << 31 else code
