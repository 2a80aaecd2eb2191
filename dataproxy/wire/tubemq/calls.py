"""Frames of TubeMQ's RPC, read for people; docs/wire/tubemq.md has the layout.

Nothing is believed: a length is compared with the bytes that are there before it is used.  So memory grows with the
input and never with what a length says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from zlib import crc32

from dataproxy.wire.inlong import Problem, Sender

__all__ = ["METHODS", "TOKEN", "Call", "Method", "Part", "read_calls", "split_payload"]

TOKEN: Final = bytes.fromhex("ff7ff4fe")
_HEAD: Final = 12
_MOST_SLICES, _LARGEST_SLICE = 3584, 65536
_HAS_ATTRIBUTE: Final = 1
_NOT_GIVEN: Final = -1  # of a checksum


class Method(NamedTuple):
    """A method of the protocol; request and answer are names of messages."""

    number: int
    text: str
    request: str
    answer: str


METHODS: Final = {
    one.number: one
    for one in (
        Method(1, "a producer registers at a master", "RegisterRequestP2M", "RegisterResponseM2P"),
        Method(2, "heartbeat of a producer to a master", "HeartRequestP2M", "HeartResponseM2P"),
        Method(3, "a producer leaves a master", "CloseRequestP2M", "CloseResponseM2P"),
        Method(4, "a consumer registers at a master", "RegisterRequestC2M", "RegisterResponseM2C"),
        Method(5, "heartbeat of a consumer to a master", "HeartRequestC2M", "HeartResponseM2C"),
        Method(6, "a consumer leaves a master", "CloseRequestC2M", "CloseResponseM2C"),
        Method(7, "a broker registers at a master", "RegisterRequestB2M", "RegisterResponseM2B"),
        Method(8, "heartbeat of a broker to a master", "HeartRequestB2M", "HeartResponseM2B"),
        Method(9, "a broker leaves a master", "CloseRequestB2M", "CloseResponseM2B"),
        Method(13, "send a message", "SendMessageRequestP2B", "SendMessageResponseB2P"),
        Method(15, "register or unregister a partition at a broker", "RegisterRequestC2B", "RegisterResponseB2C"),
        Method(16, "heartbeat of a consumer to a broker", "HeartBeatRequestC2B", "HeartBeatResponseB2C"),
        Method(17, "get a pack of messages", "GetMessageRequestC2B", "GetMessageResponseB2C"),
        Method(18, "confirm a pack", "CommitOffsetRequestC2B", "CommitOffsetResponseB2C"),
        Method(20, "a consumer that chooses its partitions registers", "RegisterRequestC2MV2", "RegisterResponseM2CV2"),
        Method(21, "heartbeat of a consumer that chooses", "HeartRequestC2MV2", "HeartResponseM2CV2"),
        Method(22, "which partitions there are", "GetPartMetaRequestC2M", "GetPartMetaResponseM2C"),
    )
}


class Part(NamedTuple):
    """One protobuf message of a frame."""

    at: int  #: its first byte in the payload
    name: str
    size: int
    message: Any


@dataclass
class Call:
    """One frame: a request or its answer, in the order of its parts; ``kind`` is empty if that cannot be told."""

    number: int
    offset: int  #: of its first byte in the input
    data: bytes  #: what is there of it
    serial: int | None = None
    slices: list[int] = field(default_factory=list)  #: bytes of each
    kind: str = ""  #: request, answer or exception
    method: int | None = None
    parts: list[Part] = field(default_factory=list)
    behind: int = 0  #: bytes of the payload behind the last part
    problems: list[Problem] = field(default_factory=list)


class _Wrong(Exception):  # noqa: N818 - it carries a problem
    """End the reading of a frame."""

    def __init__(self, at: int, name: str, text: str, *, joined: bool = False) -> None:
        super().__init__(text)
        self.problem = Problem(at, name, text, unpacked=joined)


def read_calls(data: bytes, sender: Sender = "either") -> Iterator[Call]:
    """Yield the frames of a stream; ``sender`` says who sent it, ``either``: each frame shows it.

    A problem with ``unpacked`` is in the joined payload.  Behind a frame that is cut short, or whose slices cannot be
    found, nothing can be read: it is the last one, and has all bytes that are left.  Raises ImportError without the
    package protobuf.
    """
    at = number = 0
    while at < len(data):
        number += 1
        call = Call(number, at, data[at:])
        try:
            payload = _join(call)
        except _Wrong as wrong:
            call.problems.append(wrong.problem)
            yield call
            return
        call.data = call.data[: _HEAD + sum(4 + size for size in call.slices)]
        try:
            _read_payload(call, payload, sender)
        except _Wrong as wrong:
            call.problems.append(wrong.problem)
        yield call
        at += len(call.data)


def _join(call: Call) -> bytes:
    """Return the payload; the slices' sizes are kept."""
    data = call.data
    if data[:4] != TOKEN[: len(data)]:
        raise _Wrong(0, "token", f"it is {data[:4].hex()}; expected {TOKEN.hex()}")
    if len(data) < _HEAD:
        raise _Wrong(0, "frame", f"only {len(data)} of the {_HEAD} bytes of its head are there")
    call.serial = int.from_bytes(data[4:8])
    count = int.from_bytes(data[8:12])
    if not 1 <= count <= _MOST_SLICES:
        raise _Wrong(8, "listSize", f"it is {count}; expected 1 to {_MOST_SLICES}")
    at, found = _HEAD, []
    for index in range(count):
        if len(data) < at + 4:
            raise _Wrong(at, f"slice {index}", f"{len(data) - at} of the 4 bytes of its length are there")
        size = int.from_bytes(data[at : at + 4])
        if not 1 <= size <= _LARGEST_SLICE:
            raise _Wrong(at, f"slice {index}", f"its length is {size}; expected 1 to {_LARGEST_SLICE}")
        if len(data) < at + 4 + size:
            raise _Wrong(at, f"slice {index}", f"it has {size} bytes, {len(data) - at - 4} are there")
        found.append(data[at + 4 : at + 4 + size])
        call.slices.append(size)
        at += 4 + size
    return b"".join(found)


class _Payload:
    """Parts are taken from its start."""

    def __init__(self, call: Call, data: bytes) -> None:
        self._call, self.data, self.at = call, data, 0

    def take(self, name: str) -> Any:
        """Return the next message, and add it to the parts of the frame."""
        size = self._length(name)
        if size > len(self.data) - self.at:
            text = f"it has {size} bytes, {len(self.data) - self.at} are left in the payload"
            raise _Wrong(self.at, name, text, joined=True)
        start = self.at
        self.at += size
        return self.read(name, start, self.data[start : self.at])

    def read(self, name: str, at: int, data: bytes) -> Any:
        """Return a message of these bytes, and add it to the parts of the frame."""
        from google.protobuf.message import DecodeError

        from dataproxy.wire.tubemq import messages

        kind = getattr(messages, name)
        try:
            message = kind.FromString(data)
        except DecodeError:
            raise _Wrong(at, name, "protobuf cannot read it", joined=True) from None
        if not message.IsInitialized():
            missing = ", ".join(message.FindInitializationErrors())
            raise _Wrong(at, name, f"required fields are missing: {missing}", joined=True)
        self._call.parts.append(Part(at, name, len(data), message))
        return message

    def _length(self, name: str) -> int:
        value = shift = 0
        while self.at < len(self.data) and shift < 64:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
        raise _Wrong(self.at, name, "its length is not whole", joined=True)


def _read_payload(call: Call, data: bytes, sender: Sender) -> None:
    payload = _Payload(call, data)
    flag = payload.take("RpcConnHeader").flag
    # Servers answer with flag 1.  Requests have 0, but for one client's 10.
    if sender == "server" or (sender == "either" and flag == 1):
        _read_answer(call, payload)
    else:
        _read_request(call, payload)
    call.behind = len(data) - payload.at


def _read_request(call: Call, payload: _Payload) -> None:
    call.kind = "request"
    payload.take("RequestHeader")
    body = payload.take("RequestBody")
    call.method = body.method
    _read_inner(call, payload, body.request, 0)


def _read_answer(call: Call, payload: _Payload) -> None:
    call.kind = "answer"
    if payload.take("ResponseHeader").status:
        call.kind = "exception"
        payload.take("RspExceptionBody")
        return
    body = payload.take("RspResponseBody")
    call.method = body.method
    _read_inner(call, payload, body.data, 1)


def _read_inner(call: Call, payload: _Payload, data: bytes, answer: int) -> None:
    method = METHODS.get(call.method or 0)
    if method is None:
        text = f"{call.method} is no method of this protocol; known: {', '.join(map(str, METHODS))}"
        raise _Wrong(payload.at, "method", text, joined=True)
    # The message is a field of the part before it, and the last one that a writer puts there.
    message = payload.read((method.request, method.answer)[answer], payload.at - len(data), data)
    for one in getattr(message, "messages", ()):
        _check(call, payload.at, "message", one.payLoadData, one.flag, one.checkSum)
    if method.request == "SendMessageRequestP2B" and not answer:
        _check(call, payload.at, "data", message.data, message.flag, message.checkSum)


def _check(call: Call, at: int, name: str, data: bytes, flag: int, checksum: int) -> None:
    """Add what is wrong with a message's payload to the problems of its frame."""
    computed = crc32(data) & 0x7FFFFFFF
    if checksum not in (computed, _NOT_GIVEN):
        call.problems.append(Problem(at, name, f"its checksum is {checksum}; expected {computed}", unpacked=True))
    if split_payload(flag, data) is None:
        text = f"it has {len(data)} bytes, and its attribute does not fit into them"
        call.problems.append(Problem(at, name, text, unpacked=True))


def split_payload(flag: int, data: bytes) -> tuple[bytes, bytes] | None:
    """Return (attribute text, body) of a message's payload; None if the attribute does not fit."""
    if not flag & _HAS_ATTRIBUTE:
        return b"", data
    size = int.from_bytes(data[:4])
    if len(data) < 4 or size > len(data) - 4:
        return None
    return data[4 : 4 + size], data[4 + size :]
