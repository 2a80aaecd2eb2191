"""A frame of RocketMQ's remoting as lines for people, and as JSON."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from dataproxy.shown import json_text, printable
from dataproxy.wire.rocketmq.codes import answer_name, code_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataproxy.wire.inlong import Problem
    from dataproxy.wire.rocketmq.commands import Command, Message

__all__ = ["command_json", "command_lines", "told_of_command"]

_SHORT: Final = 80  # characters of a value or a body
_FEW: Final = 20  # fields, messages and properties
_INDENT: Final = " " * 10
_FORMS: Final = {0: "JSON", 1: "binary"}
#: What the letters in requests with code 310 and 320 mean.
_LETTERS: Final = dict(
    zip(
        "abcdefghijklmn",
        (
            "producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp",
            "flag", "properties", "reconsumeTimes", "unitMode", "maxReconsumeTimes", "batch", "bname",
        ),
        strict=True,
    )
)  # fmt: skip


def told_of_command(command: Command, problem: Problem) -> str:
    """Return where something is wrong, and what."""
    return f"{problem.field}, at byte {command.offset + problem.at}: {problem.text}"


def command_lines(command: Command, *, full: bool) -> Iterator[str]:
    """Yield a frame as lines."""
    yield f"frame {command.number} at byte {command.offset}: {_count(len(command.data))}, RocketMQ{_title(command)}\n"
    if command.form is not None:
        form = _FORMS.get(command.form, "unknown")
        yield f"       4  form        {command.form}   ({form}), header of {_count(max(command.body_at - 8, 0))}\n"
    if command.kind:
        yield f"{_INDENT}code = {command.code}{_named(command)}\n"
        yield f"{_INDENT}opaque = {command.opaque}\n" if command.opaque is not None else ""
        yield f"{_INDENT}flag = {command.flag}\n"
        yield f"{_INDENT}language = {printable(command.language)}, version = {command.version}\n"
        if command.remark:
            yield f"{_INDENT}remark = {_value(command.remark, full)}\n"
        yield from _fields(command, full)
        yield from _body(command, full)
    for problem in command.problems:
        yield f"   wrong: {printable(told_of_command(command, problem))}\n"


def command_json(command: Command, *, full: bool) -> str:
    """Return a frame as one line of JSON."""
    shown = command.messages if full else command.messages[:_FEW]
    out: dict[str, Any] = {
        "frame": command.number,
        "at": command.offset,
        "bytes": len(command.data),
        "protocol": "rocketmq",
        "kind": command.kind or None,
        "form": command.form,
        "code": command.code if command.kind else None,
        "name": _name(command) or None,
        "opaque": command.opaque,
        "flag": command.flag,
        "language": command.language or None,
        "version": command.version,
        "remark": command.remark or None,
        "fields": dict(command.fields if full else command.fields[:_FEW]),
        "body": None if command.messages else _bytes_json(command.body, full),
        "messages": [_message_json(one, full) for one in shown],
        "messages_count": len(command.messages),
        "problems": [{"at": one.at, "field": one.field, "text": one.text} for one in command.problems],
    }
    return json_text(out) + "\n"


def _name(command: Command) -> str:
    if not command.kind:
        return ""
    return answer_name(command.code) if command.kind == "answer" else code_name(command.code)


def _named(command: Command) -> str:
    name = _name(command)
    return f"   ({name})" if name else ""


def _title(command: Command) -> str:
    name = _name(command)
    return f", {command.kind}{f': {name}' if name else ''}" if command.kind else ""


def _count(size: int) -> str:
    return f"{size} byte{'s' if size != 1 else ''}"


def _value(text: str, full: bool) -> str:
    shown = text if full else text[:_SHORT]
    return printable(shown) + ("" if len(shown) == len(text) else "...")


def _fields(command: Command, full: bool) -> Iterator[str]:
    lettered = command.code in (310, 320) and command.kind != "answer"
    for name, value in command.fields[: None if full else _FEW]:
        word = f" ({_LETTERS[name]})" if lettered and name in _LETTERS else ""
        yield f"{_INDENT}  {printable(name)}{word} = {_value(value, full)}\n"
    if len(command.fields) > _FEW and not full:
        yield f"{_INDENT}  ... {len(command.fields) - _FEW} more fields; --full prints them\n"


def _body(command: Command, full: bool) -> Iterator[str]:
    if not command.messages:
        if command.body:
            text = command.body.decode("utf-8", "backslashreplace")
            yield f"{_INDENT}body = {_value(text, full)}   ({_count(len(command.body))})\n"
        return
    for index, message in enumerate(command.messages[: None if full else _FEW]):
        yield f"{_INDENT}message {index}, {_count(message.size)}\n"
        for name, value in message.fields.items():
            yield f"{_INDENT}  {name} = {_value(str(value), full)}\n"
        for name, value in list(message.properties.items())[: None if full else _FEW]:
            yield f"{_INDENT}  property {printable(name)} = {_value(value, full)}\n"
        text = message.body.decode("utf-8", "backslashreplace")
        yield f"{_INDENT}  body = {_value(text, full)}   ({_count(len(message.body))})\n"
    if len(command.messages) > _FEW and not full:
        yield f"{_INDENT}... {len(command.messages) - _FEW} more messages; --full prints them\n"


def _message_json(message: Message, full: bool) -> dict[str, Any]:
    properties = dict(list(message.properties.items())[: None if full else _FEW])
    return {**message.fields, "properties": properties, "body": _bytes_json(message.body, full)}


def _bytes_json(data: bytes, full: bool) -> dict[str, Any]:
    cut = data if full else data[:_SHORT]
    short = {"shortened": True} if len(cut) < len(data) else {}
    return {"base64": base64.b64encode(cut).decode("ascii"), "bytes": len(data), **short}
