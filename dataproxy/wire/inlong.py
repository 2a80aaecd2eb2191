"""Frames of the InLong DataProxy protocol, read field by field; docs/wire/inlong.md has the layouts.

Nothing is believed: a length is compared with the bytes that are there before it is used.  So memory grows with the
input and never with what a length says.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

from dataproxy.wire.attributes import BLANKS, Answer, Attribute, read_answer, read_request, split
from dataproxy.wire.snappy import SnappyError, unpack

__all__ = ["LIMIT", "NAMES", "TEXT_ATTRS", "Field", "Frame", "FrameError", "Problem", "Sender", "read_frames"]

Sender = Literal["client", "server", "either"]
Form = Literal["items", "pairs", "lines", "record", "none", "encrypted"]

LIMIT: Final = 20 << 20  #: of an unpacked body, in bytes: what servers take
NAMES: Final = {
    1: "heartbeat",
    2: "lines",
    3: "lines",
    4: "record, comes back in the answer",
    5: "items",
    6: "items with attributes",
    7: "binary",
    8: "binary heartbeat",
}
_EXT: Final = {
    0x01: "items have attributes",
    0x02: "trace",
    0x04: "the attributes name group and stream",
    0x08: "file check (servers refuse it, 112)",
    0x10: "minute check (servers refuse it, 112)",
    0x20: "items hold lines",
}
_MAGIC: Final = 0xEE01
_LOAD_UNKNOWN: Final = 65535
_BINARY_ATTRS = 32767
TEXT_ATTRS: Final = 65535  #: of attributes that servers take, in bytes
_ENCRYPTED, _SNAPPY = 0x40, 0x20
_ANSWER_KEYS: Final = frozenset((b"dpIp", b"dpIP", b"errCode"))
_STREAM_KEYS: Final = frozenset((b"groupId", b"streamId"))


class Field(NamedTuple):
    """One field of a frame; ``at`` is its first byte, counted from the frame's."""

    at: int
    name: str
    value: int
    meaning: str
    size: int = 4  #: bytes
    hexadecimal: bool = False


class Problem(NamedTuple):
    """What is wrong: the byte, counted from the frame's first, the field, and what was found and expected.

    For a byte of the unpacked body, ``at`` is the byte in there and ``unpacked`` is set.
    """

    at: int
    field: str
    text: str
    unpacked: bool = False


@dataclass
class Frame:
    """One frame.  ``answer`` is set for an answer to data; ``content`` is the body, unpacked."""

    number: int
    offset: int  #: of its first byte in the input
    data: bytes  #: what is there of it
    kind: int = 0
    sender: Sender = "either"
    fields: list[Field] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)
    attributes_at: int | None = None
    answer: Answer | None = None
    body_at: int = 0
    body: bytes = b""
    content: bytes = b""
    packed: bool = False
    form: Form = "none"
    problems: list[Problem] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name of the frame's type."""
        return NAMES.get(self.kind, "unknown")


class FrameError(Exception):
    """End the reading of a frame: the bytes behind have no meaning."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def read_frames(data: bytes, sender: Sender = "either", limit: int = LIMIT) -> Iterator[Frame]:
    """Yield the frames of a stream; ``sender`` says who sent it, ``either``: each frame shows it.

    Behind a frame that is cut short, or that has the length 0, nothing can be read: it is the last one, and has
    all bytes that are left.
    """
    at = number = 0
    while at < len(data):
        number += 1
        length = int.from_bytes(data[at : at + 4])
        size = 4 + length
        frame = Frame(number, at, data[at : at + size], sender=sender)
        if len(data) - at < 4:
            frame.problems.append(Problem(0, "length", f"only {len(data) - at} of its 4 bytes are there"))
            yield frame
            return
        frame.fields.append(Field(0, "length", length, "bytes that follow"))
        if length == 0:
            frame.data = data[at:]
            told = "it is 0; expected 1 or more, for the type at least"
            rest = len(frame.data) - 4
            behind = f"; the next frame cannot be found, {rest} bytes behind the length are not read" if rest else ""
            frame.problems.append(Problem(0, "length", told + behind))
            yield frame
            return
        missing = size - len(frame.data)
        if missing:
            told = f"{length} bytes should follow, {len(frame.data) - 4} are there"
            frame.problems.append(Problem(0, "length", told))
        if len(frame.data) > 4:
            _read(frame, missing > 0, limit)
        yield frame
        at += size


def _read(frame: Frame, cut: bool, limit: int) -> None:
    byte = frame.data[4]
    frame.kind = byte & 0x1F
    bits = [text for bit, text in ((_SNAPPY, "snappy block"), (_ENCRYPTED, "encrypted")) if byte & bit]
    read: Callable[[Frame], None] | None = _READERS.get(frame.kind)
    meaning = frame.name if frame.kind != 7 else ", ".join([frame.name, *bits])
    if frame.kind == 8 and byte & 0x80:
        meaning += ", signed"
    frame.fields.append(Field(4, "type", byte, meaning, 1, hexadecimal=True))
    try:
        if read is None:
            raise FrameError(Problem(4, "type", f"{frame.kind} is no type of this protocol; expected 1 to 8"))
        read(frame)
        _open_body(frame, limit)
    except FrameError as wrong:
        if not cut:
            frame.problems.append(wrong.problem)


def _number(frame: Frame, at: int, form: str, name: str, meaning: str = "", *, hexadecimal: bool = False) -> int:
    size = struct.calcsize(form)
    if at + size > len(frame.data):
        left = max(len(frame.data) - at, 0)
        raise FrameError(Problem(at, name, f"{size} bytes expected, {left} are left in the frame"))
    value: int = struct.unpack_from(form, frame.data, at)[0]
    frame.fields.append(Field(at, name, value, meaning, size, hexadecimal))
    return value


def _explain(frame: Frame, meaning: str) -> None:
    """Give the field that was read last its meaning."""
    frame.fields[-1] = frame.fields[-1]._replace(meaning=meaning)


def _bytes(frame: Frame, at: int, size: int, name: str, behind: int) -> bytes:
    """Return ``size`` bytes from ``at``; ``behind`` is what the layout needs after them at least."""
    room = len(frame.data) - at - behind
    if size > room:
        told = f"it says {size} bytes; at most {max(room, 0)} fit into the frame"
        raise FrameError(Problem(frame.fields[-1].at, name, told))
    return frame.data[at : at + size]


# --- layouts


def _read_heartbeat(frame: Frame) -> None:
    """Bytes behind the type mean nothing: one SDK sends some."""


def _read_text(frame: Frame) -> None:
    size = _number(frame, 5, ">i", "bodyLen", "bytes of the body")
    if size < 0:
        raise FrameError(Problem(5, "bodyLen", f"it is {size}; expected a positive number"))
    frame.body_at = 9
    frame.body = _bytes(frame, 9, size, "bodyLen", 4)
    at = 9 + size
    attrs = _number(frame, at, ">i", "attrLen", "bytes of the attributes")
    left = len(frame.data) - at - 4
    if attrs != left:
        raise FrameError(Problem(at, "attrLen", f"it is {attrs}; expected {left}, the rest of the frame"))
    text = frame.data[at + 4 :]
    if frame.sender == "either":
        frame.sender = "server" if not size or _is_text_answer(text) else "client"
    if frame.sender == "client" and not size:
        raise FrameError(Problem(5, "bodyLen", "it is 0; expected a positive number in a request"))
    if frame.sender == "client" and attrs > TEXT_ATTRS:
        raise FrameError(Problem(at, "attrLen", f"it is {attrs}; servers take at most {TEXT_ATTRS}"))
    _read_attributes(frame, at + 4, text)
    if frame.sender == "client":
        frame.packed = any(one.key == b"cp" and (one.value or b"").strip(BLANKS) for one in frame.attributes)
        frame.form = {5: "items", 6: "pairs", 4: "record"}.get(frame.kind, "lines")  # type: ignore[assignment]


def _is_text_answer(text: bytes) -> bool:
    """Tell by the attributes: a key that only answers have, or a frame's number without the names of a stream."""
    keys = {one.key for one in split(text)}
    return not keys.isdisjoint(_ANSWER_KEYS) or (b"mid" in keys and keys.isdisjoint(_STREAM_KEYS))


def _read_binary(frame: Frame) -> None:
    if frame.sender == "either":
        frame.sender = "server" if _is_binary_answer(frame.data) else "client"
    if frame.sender == "server":
        _read_binary_answer(frame)
        return
    _number(frame, 5, ">H", "groupNum", "number of the group")
    _number(frame, 7, ">H", "streamNum", "number of the stream")
    ext = _number(frame, 9, ">H", "extField", hexadecimal=True)
    words = [text for bit, text in _EXT.items() if ext & bit]
    if not ext & 4:
        words.append("the numbers name group and stream")
    _explain(frame, "; ".join(words))
    seconds = _number(frame, 11, ">I", "dataTime")
    _explain(frame, _time(seconds))
    _number(frame, 15, ">H", "count", "number of messages")
    _number(frame, 17, ">I", "uniq", "sequence number; the answer repeats it")
    size = _number(frame, 21, ">i", "bodyLen", "bytes of the body")
    if size <= 0:
        raise FrameError(Problem(21, "bodyLen", f"it is {size}; expected a positive number"))
    frame.body_at = 25
    frame.body = _bytes(frame, 25, size, "bodyLen", 4)
    _read_binary_tail(frame, 25 + size)
    frame.form = "pairs" if ext & 1 else "items"
    frame.packed = bool(frame.data[4] & _SNAPPY)
    if frame.data[4] & _ENCRYPTED:
        frame.form, frame.packed = "encrypted", False


def _is_binary_answer(data: bytes) -> bool:
    """Tell an answer from a request by the attributes' length: where an answer has it, a request has its extField."""
    total = 4 + int.from_bytes(data[:4])
    if total < 29:
        return True
    if len(data) >= 25 and data[4] & (_SNAPPY | _ENCRYPTED):
        return False  # no answer has these bits
    if len(data) < 11 or (total - 13) % 65536 != int.from_bytes(data[9:11]):
        return False
    body = int.from_bytes(data[21:25])
    attrs = int.from_bytes(data[25 + body : 27 + body])
    return total != 29 + body + attrs


def _read_binary_answer(frame: Frame) -> None:
    uniq = _number(frame, 5, ">I", "uniq", "sequence number of the request")
    attrs = _number(frame, 9, ">H", "attrLen", "bytes of the attributes")
    left = len(frame.data) - 13
    if left < 0 or attrs != left % 65536:
        told = f"it is {attrs}; expected {left % 65536 if left >= 0 else 'two bytes more in the frame'}"
        raise FrameError(Problem(9, "attrLen", told))
    _read_attributes(frame, 11, frame.data[11:-2])
    if frame.answer is not None:
        frame.answer = frame.answer._replace(seq=uniq)
    _read_magic(frame, len(frame.data) - 2)


def _read_binary_heartbeat(frame: Frame) -> None:
    seconds = _number(frame, 5, ">I", "dataTime")
    _explain(frame, _time(seconds))
    _number(frame, 9, ">B", "version")
    size = _number(frame, 10, ">I", "bodyLen", "bytes of the body")
    frame.body_at = 14
    frame.body = _bytes(frame, 14, size, "bodyLen", 4)
    if frame.sender == "either":
        frame.sender = "server" if size == 2 else "client"
    if frame.sender == "server" and size == 2:
        load = _number(frame, 14, ">H", "load")
        _explain(frame, "unknown" if load == _LOAD_UNKNOWN else "load of the node")
    _read_binary_tail(frame, 14 + size)


def _read_binary_tail(frame: Frame, at: int) -> None:
    attrs = _number(frame, at, ">H", "attrLen", "bytes of the attributes")
    left = len(frame.data) - at - 4
    if attrs != left:
        raise FrameError(
            Problem(at, "attrLen", f"it is {attrs}; expected {left}, the rest of the frame up to the magic")
        )
    if frame.sender == "client" and frame.kind == 7 and attrs > _BINARY_ATTRS:
        raise FrameError(Problem(at, "attrLen", f"it is {attrs}; servers take at most {_BINARY_ATTRS}"))
    _read_attributes(frame, at + 2, frame.data[at + 2 : at + 2 + attrs])
    _read_magic(frame, at + 2 + attrs)


def _read_magic(frame: Frame, at: int) -> None:
    magic = _number(frame, at, ">H", "magic", "end of the frame", hexadecimal=True)
    if magic != _MAGIC:
        raise FrameError(Problem(at, "magic", f"it is {magic:#06x}; expected {_MAGIC:#06x}"))


_READERS: Final[dict[int, Callable[[Frame], None]]] = {
    1: _read_heartbeat,
    **dict.fromkeys(range(2, 7), _read_text),
    7: _read_binary,
    8: _read_binary_heartbeat,
}


# --- what the fields hold


def _read_attributes(frame: Frame, at: int, text: bytes) -> None:
    frame.attributes_at = at
    if frame.sender == "client" and frame.kind != 8:
        frame.attributes, wrong = read_request(text)
        if wrong is not None:
            frame.problems.append(Problem(at + wrong[0], "attributes", wrong[1]))
        return
    frame.attributes = list(split(text))
    if frame.kind != 8:
        frame.answer = read_answer(text)


def _open_body(frame: Frame, limit: int) -> None:
    frame.content = frame.body
    if not frame.packed:
        return
    frame.content = b""
    try:
        frame.content = unpack(frame.body, limit)
    except SnappyError as error:
        frame.form = "none"
        told = f"marked as a snappy block, but {error}"
        raise FrameError(Problem(frame.body_at + error.at, "body", told)) from None


def _time(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
