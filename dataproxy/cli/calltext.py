"""A frame of TubeMQ's RPC as lines for people, and as JSON."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from dataproxy.shown import json_text, printable
from dataproxy.wire.tubemq.calls import METHODS, split_payload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataproxy.wire.inlong import Problem
    from dataproxy.wire.tubemq.calls import Call

__all__ = ["call_json", "call_lines", "told_of_call"]

_SHORT: Final = 80  # bytes of a body or a value
_FEW: Final = 20  # messages and entries of lists
_INDENT: Final = " " * 10
_STATUS: Final = {0: "success", 1: "error", 2: "fatal: the server could not read the request"}
_SERVICES: Final = {1: "master", 2: "broker, reading", 3: "broker, writing", 4: "broker, admin", 5: "master, admin"}
_OPERATIONS: Final = {31: "register", 32: "unregister"}
_EVENTS: Final = {1: "connect", 2: "disconnect", 10: "connect only", 20: "disconnect only"}
_PAYLOADS: Final = {"SendMessageRequestP2B": ("data",), "TransferedMessage": ("payLoadData",)}
_INNER: Final = frozenset(("request", "data"))  # of RequestBody and RspResponseBody: shown as a part of its own


def told_of_call(call: Call, problem: Problem) -> str:
    """Return where something is wrong, and what."""
    if problem.unpacked:
        return f"{problem.field}, at byte {problem.at} of the payload: {problem.text}"
    return f"{problem.field}, at byte {call.offset + problem.at}: {problem.text}"


def call_lines(call: Call, *, full: bool) -> Iterator[str]:
    """Yield a frame as lines."""
    yield f"frame {call.number} at byte {call.offset}: {_count(len(call.data))}, TubeMQ{_title(call)}\n"
    if call.serial is not None:
        yield f"       4  serialNo    {call.serial}\n"
    if call.list_size is not None:
        yield f"       8  listSize    {call.list_size}{_sizes(call.slices)}\n"
    for index, part in enumerate(call.parts):
        yield f"{_INDENT}{part.name}, {_count(part.size)}\n"
        yield from _fields(part.message, f"{_INDENT}  ", full, _shown_later(call, index))
    if call.behind:
        yield f"{_INDENT}{_count(call.behind)} behind the last message, which nobody reads\n"
    for problem in call.problems:
        yield f"   wrong: {printable(told_of_call(call, problem))}\n"


def call_json(call: Call, *, full: bool) -> str:
    """Return a frame as one line of JSON."""
    method = METHODS.get(call.method or 0)
    out: dict[str, Any] = {
        "frame": call.number,
        "at": call.offset,
        "bytes": len(call.data),
        "protocol": "tubemq",
        "kind": call.kind or None,
        "serial": call.serial,
        "list_size": call.list_size,
        "slices": call.slices,
        "method": call.method,
        "name": method.text if method else None,
        "parts": [
            {"name": part.name, "bytes": part.size, "fields": _as_json(part.message, full)} for part in call.parts
        ],
        "bytes_behind": call.behind,
        "problems": [
            {"at": one.at, "in_payload": one.unpacked, "field": one.field, "text": one.text} for one in call.problems
        ],
    }
    return json_text(out) + "\n"


def _part_json(call: Call, index: int, full: bool) -> dict[str, Any]:
    part = call.parts[index]
    fields = _as_json(part.message, full, _shown_later(call, index))
    return {"name": part.name, "bytes": part.size, "fields": fields}


def _shown_later(call: Call, index: int) -> frozenset[str]:
    """Return the fields of a part that follow as a part of their own."""
    follows = call.parts[index].name in ("RequestBody", "RspResponseBody") and index + 1 < len(call.parts)
    return _INNER if follows else frozenset()


def _title(call: Call) -> str:
    if not call.kind:
        return ""
    method = METHODS.get(call.method or 0)
    words = f": {method.text} (method {method.number})" if method else ""
    return f", {call.kind}{words}"


def _count(size: int) -> str:
    return f"{size} byte{'s' if size != 1 else ''}"


def _sizes(slices: list[int]) -> str:
    if len(slices) == 1:
        return f"           slice of {_count(slices[0])}"
    return f"           slices, {_count(sum(slices))} together" if slices else ""


def _fields(message: Any, indent: str, full: bool, left_out: frozenset[str] = frozenset()) -> Iterator[str]:
    for field, value in message.ListFields():
        if field.name in left_out:
            continue
        many = hasattr(value, "append")
        values = list(value) if many else [value]
        for index, one in enumerate(values[: None if full else _FEW]):
            name = f"{field.name}[{index}]" if many else field.name
            if hasattr(one, "ListFields"):
                yield f"{indent}{name}\n"
                yield from _fields(one, f"{indent}  ", full)
            elif field.name in _PAYLOADS.get(message.DESCRIPTOR.name, ()):
                yield from _payload(message.flag, one, indent, full)
            else:
                yield f"{indent}{name} = {_value(one, full)}{_meaning(message, field.name, one)}\n"
        if len(values) > _FEW and not full:
            yield f"{indent}... {len(values) - _FEW} more of {field.name}; --full prints them\n"


def _payload(flag: int, data: bytes, indent: str, full: bool) -> Iterator[str]:
    attribute, body = split_payload(flag, data) or (b"", data)
    if attribute:
        yield f"{indent}attribute = {_value(attribute, full)}\n"
    yield f"{indent}body = {_value(body, full)}   ({_count(len(body))})\n"


def _value(value: Any, full: bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (bytes, str)):
        return str(value)
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    shown = text if full else text[:_SHORT]
    return printable(shown) + ("" if len(shown) == len(text) else "...")


def _meaning(message: Any, name: str, value: Any) -> str:
    kind = message.DESCRIPTOR.name
    words: str | None = None
    if name == "status" and kind == "ResponseHeader":
        words = _STATUS.get(value)
    elif name == "serviceType":
        words = _SERVICES.get(value)
    elif name == "method" and value in METHODS:
        words = METHODS[value].text
    elif name == "opType":
        words = (_EVENTS if kind == "EventProto" else _OPERATIONS).get(value)
    elif name == "checkSum" and value == -1 and kind == "SendMessageRequestP2B":
        words = "the broker computes it"
    return f"   ({words})" if words else ""


def _as_json(message: Any, full: bool, left_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.name in left_out:
            out[f"{field.name}_bytes"] = len(value)
        elif hasattr(value, "append"):
            out[field.name] = [_json_value(one, full) for one in list(value)[: None if full else _FEW]]
            if len(value) > _FEW and not full:
                out[f"{field.name}_count"] = len(value)
        else:
            out[field.name] = _json_value(value, full)
    return out


def _json_value(value: Any, full: bool) -> Any:
    if hasattr(value, "ListFields"):
        return _as_json(value, full)
    if not isinstance(value, bytes):
        return value
    cut = value if full else value[:_SHORT]
    short = {"shortened": True} if len(cut) < len(value) else {}
    return {"base64": base64.b64encode(cut).decode("ascii"), "bytes": len(value), **short}
