"""A frame as lines for people, and as JSON."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from dataproxy.codes import SERVER_CODES
from dataproxy.shown import json_text, printable
from dataproxy.wire.attributes import ATTRIBUTES, Attribute, split
from dataproxy.wire.items import Item, read_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dataproxy.wire.inlong import Field, Frame, Problem

__all__ = ["frame_json", "frame_lines", "told"]

_SHORT: Final = 80  # bytes of a body or a value
_FEW: Final = 20  # items and attributes
_TIMES: Final = frozenset(("dt", "rt", "rtms", "rtime1", "rtime2"))
_HIGHEST_MS: Final = 253_402_300_799_999  # the end of the year 9999
_INDENT: Final = " " * 10


def told(frame: Frame, problem: Problem) -> str:
    """Return where something is wrong, and what."""
    if problem.unpacked:
        return f"{problem.field}, at byte {problem.at} of the unpacked body: {problem.text}"
    return f"{problem.field}, at byte {frame.offset + problem.at}: {problem.text}"


def frame_lines(frame: Frame, *, full: bool) -> Iterator[str]:
    """Yield a frame as lines; after the last one its ``problems`` are complete."""
    yield f"frame {frame.number} at byte {frame.offset}: {_count(frame.data)}, {_title(frame)}\n"
    rows = [(one.at, [_row(one.at, one.name, _value(one), one.meaning)]) for one in frame.fields]
    if frame.body and all(one.at != frame.body_at for one in frame.fields):
        rows.append((frame.body_at, [_row(frame.body_at, "body", _count(frame.body), _body_meaning(frame))]))
    if frame.attributes and frame.attributes_at is not None:
        rows.append((frame.attributes_at, list(_attribute_lines(frame.attributes, frame.attributes_at, full))))
    for _, lines in sorted(rows, key=lambda row: row[0]):
        yield from lines
    yield from _answer_lines(frame)
    yield from _item_lines(frame, full)
    for problem in frame.problems:
        yield f"   wrong: {printable(told(frame, problem))}\n"


def frame_json(frame: Frame, *, full: bool) -> str:
    """Return a frame as one line of JSON."""
    items: list[dict[str, Any]] = []
    count = 0
    for item in read_items(frame):
        count += 1
        if full or len(items) < _FEW:
            items.append(_item_json(item, full))
    out: dict[str, Any] = {
        "frame": frame.number,
        "at": frame.offset,
        "bytes": len(frame.data),
        "type": frame.kind,
        "name": frame.name,
        "sender": frame.sender,
        "fields": [
            {"at": one.at, "name": one.name, "value": one.value, "meaning": one.meaning} for one in frame.fields
        ],
        "attributes": [_attribute_json(one, full) for one in _some(frame.attributes, full)],
        "attribute_count": len(frame.attributes),
        "body_bytes": len(frame.body),
        "unpacked_bytes": len(frame.content),
        "items": items,
        "item_count": count,
    }
    if frame.answer is not None:
        code, seq, node, message = frame.answer
        out["answer"] = {"code": code, "sequence": seq, "node": _text(node), "message": _text(message)}
    out["problems"] = [
        {"at": one.at, "unpacked": one.unpacked, "field": one.field, "text": one.text} for one in frame.problems
    ]
    return json_text(out) + "\n"


def _title(frame: Frame) -> str:
    if not frame.kind:
        return "type 0, unknown" if any(one.name == "type" for one in frame.fields) else "type unknown"
    by = {"client": ", sent by the client", "server": ", sent by the server", "either": ""}[frame.sender]
    name = f"answer to {frame.name}" if frame.answer is not None else frame.name
    return f"type {frame.kind}, {name}{by}"


def _value(one: Field) -> str:
    if not one.hexadecimal:
        return str(one.value)
    return f"{one.value:#0{2 + 2 * one.size}x}"


def _count(data: bytes) -> str:
    return f"{len(data)} byte{'s' if len(data) != 1 else ''}"


def _row(at: int, name: str, value: str, meaning: str) -> str:
    return f"{at:>8}  {name:<10}  {value:<12}  {meaning}".rstrip() + "\n"


def _body_meaning(frame: Frame) -> str:
    if frame.form == "encrypted":
        return "encrypted"
    if frame.packed and frame.form != "none":
        return f"snappy block, {len(frame.content)} bytes unpacked"
    return "" if frame.sender == "client" else printable(_text(frame.body[:_SHORT]))


def _attribute_lines(attributes: list[Attribute], at: int, full: bool) -> Iterator[str]:
    yield _row(at, "attributes", str(len(attributes)), "")
    for one in _some(attributes, full):
        key, value = _shown(one.key, full), _shown(one.value or b"", full)
        meaning = _meaning(one)
        equals = " = " if one.value is not None else ""
        yield f"{_INDENT}{key}{equals}{value}{f'   ({meaning})' if meaning else ''}\n"
    yield from _rest(len(attributes), "attributes", full)


def _answer_lines(frame: Frame) -> Iterator[str]:
    if frame.answer is None:
        return
    code, seq, _, message = frame.answer
    number = "without a sequence number" if seq is None else f"to {seq}"
    words = f": {printable(_text(message))}" if message else ""
    yield f"{_INDENT}answer {number}: {code} {_code_words(code)}{words}\n"


def _item_lines(frame: Frame, full: bool) -> Iterator[str]:
    count = 0
    for item in read_items(frame):
        count += 1
        if not full and count > _FEW:
            continue
        yield f"{_INDENT}item {item.number}: {_count(item.body)}: {_shown(item.body, full)}\n"
        if item.attributes is not None:
            for one in _some(split(item.attributes), full):
                equals = " = " if one.value is not None else ""
                yield f"{_INDENT}  {_shown(one.key, full)}{equals}{_shown(one.value or b'', full)}\n"
    yield from _rest(count, "items", full)


def _rest(count: int, what: str, full: bool) -> Iterator[str]:
    if count > _FEW and not full:
        yield f"{_INDENT}... {count - _FEW} more {what}; --full prints them\n"


def _some(attributes: Iterable[Attribute], full: bool) -> Iterator[Attribute]:
    return iter(attributes) if full else islice(attributes, _FEW)


def _item_json(item: Item, full: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"index": item.number, "at": item.at, "bytes": len(item.body)}
    body = item.body if full else item.body[: _cut(item.body)]
    try:
        out["body"] = body.decode()
    except UnicodeDecodeError:
        out["body_base64"] = base64.b64encode(body).decode("ascii")
    if len(body) < len(item.body):
        out["shortened"] = True
    if item.attributes is not None:
        out["attributes"] = [_attribute_json(one, full) for one in _some(split(item.attributes), full)]
    return out


def _attribute_json(one: Attribute, full: bool) -> dict[str, Any]:
    """Return key and value as text; beside a text with escapes for what is no UTF-8, its bytes."""
    out: dict[str, Any] = {"key": None, "value": None}
    for name, data in (("key", one.key), ("value", one.value)):
        if data is None:
            continue
        data = data if full else data[: _cut(data)]
        out[name] = _text(data)
        try:
            data.decode()
        except UnicodeDecodeError:
            out[f"{name}_base64"] = base64.b64encode(data).decode("ascii")
    return out


def _meaning(one: Attribute) -> str:
    key = one.key.decode("utf-8", "replace")
    value = (one.value or b"").decode("utf-8", "replace")
    if key in _TIMES and value.isascii() and value.isdecimal() and len(value) < 16 and int(value) <= _HIGHEST_MS:
        moment = datetime.fromtimestamp(int(value) // 1000, UTC)
        return f"{ATTRIBUTES[key]}: {moment:%Y-%m-%d %H:%M:%S}.{int(value) % 1000:03d} UTC"
    return ATTRIBUTES.get(key, "")


def _code_words(code: int) -> str:
    known = SERVER_CODES.get(code)
    return f"{known.name} ({known.text})" if known is not None else "(the protocol defines no such code)"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _shown(data: bytes, full: bool) -> str:
    cut = len(data) if full else _cut(data)
    return printable(_text(data[:cut])) + ("" if cut == len(data) else "...")


def _cut(data: bytes) -> int:
    """Return how many bytes are shown: no character of UTF-8 is divided."""
    cut = min(len(data), _SHORT)
    while 0 < cut < len(data) and cut > _SHORT - 4 and data[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut
