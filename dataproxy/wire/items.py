"""Messages in the body of a frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dataproxy.wire.attributes import read_request
from dataproxy.wire.inlong import TEXT_ATTRS, Frame, FrameError, Problem

__all__ = ["Item", "read_items"]


class Item(NamedTuple):
    """One message in a body; ``attributes`` is None where the layout has none."""

    number: int  #: from 0
    at: int  #: first byte in the unpacked body
    body: bytes
    attributes: bytes | None


def read_items(frame: Frame) -> Iterator[Item]:
    """Yield the messages of a frame's body; what is wrong with them is added to its ``problems`` at the end."""
    body = frame.content
    if frame.form in ("record", "encrypted"):
        yield Item(0, 0, body, None)
    elif frame.form == "lines":
        yield from _lines(body)
    elif frame.form in ("items", "pairs"):
        yield from _lengths(frame, body)


def _lines(body: bytes) -> Iterator[Item]:
    at = index = 0
    while at < len(body) or index == 0:
        stop = body.find(b"\n", at)
        stop = len(body) if stop < 0 else stop
        yield Item(index, at, body[at:stop], None)
        at = stop + 1
        index += 1


def _lengths(frame: Frame, body: bytes) -> Iterator[Item]:
    at = index = 0
    told = False
    while at < len(body):
        start = at
        try:
            data = _part(frame, body, at, f"length of item {index}")
            at += 4 + len(data)
            text = None
            if frame.form == "pairs":
                text = _part(frame, body, at, f"attribute length of item {index}")
                if not told:
                    told = _check_attributes(frame, at, index, text)
                at += 4 + len(text)
        except FrameError as wrong_item:
            frame.problems.append(wrong_item.problem)
            return
        yield Item(index, start, data, text)
        index += 1
    if index == 0:
        frame.problems.append(_in_body(frame, 0, "body", "it holds no item; expected one at least"))


def _check_attributes(frame: Frame, at: int, index: int, text: bytes) -> bool:
    """Add what is wrong with an item's own attributes to the problems, and tell whether something is."""
    wrong = read_request(text)[1]
    if len(text) > TEXT_ATTRS:
        wrong = (-4, f"{len(text)} bytes; servers take at most {TEXT_ATTRS}")
    if wrong is not None:
        frame.problems.append(_in_body(frame, at + 4 + wrong[0], f"attributes of item {index}", wrong[1]))
    return wrong is not None


def _part(frame: Frame, body: bytes, at: int, name: str) -> bytes:
    left = len(body) - at - 4
    if left < 0:
        raise FrameError(_in_body(frame, at, name, f"4 bytes expected, {len(body) - at} are left in the body"))
    size = int.from_bytes(body[at : at + 4])
    if not 0 < size <= left:
        raise FrameError(_in_body(frame, at, name, f"it is {size}; expected 1 to {left}, the rest of the body"))
    return body[at + 4 : at + 4 + size]


def _in_body(frame: Frame, at: int, name: str, text: str) -> Problem:
    return Problem(at if frame.packed else frame.body_at + at, name, text, unpacked=frame.packed)
