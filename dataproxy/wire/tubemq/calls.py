"""Frames of TubeMQ's RPC, read for people; docs/wire/tubemq.md has the layout.

Nothing is believed: a length is compared with the bytes that are there before it is used.  So memory grows with the
input and never with what a length says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple
from zlib import crc32

from dataproxy.wire.inlong import Problem, Sender

__all__ = ["METHODS", "TOKEN", "Call", "Method", "Part", "read_calls", "split_payload"]

TOKEN: Final = bytes.fromhex("ff7ff4fe")
_HEAD: Final = 12
_MOST_SLICES, _LARGEST_SLICE = 3584, 65536
_HAS_ATTRIBUTE: Final = 1
_NOT_GIVEN: Final = -1  # of a request's checksum
_RESERVED: Final = (11, 12, 14, 19)  # methods without messages
_FEW: Final = 20  # problems of one frame that are told one by one
_NAMED: Final = 5  # missing fields


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
    list_size: int | None = None  #: how many slices it says to have
    slices: list[int] = field(default_factory=list)  #: bytes of each
    kind: str = ""  #: request, answer or exception
    method: int | None = None
    parts: list[Part] = field(default_factory=list)
    behind: int = 0  #: bytes of the payload behind the last part
    problems: list[Problem] = field(default_factory=list)


class _Wrong(Exception):  # noqa: N818 - it carries a problem
    """End the reading of a frame, or of its payload (``joined``)."""

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
        call = Call(number, at, b"")
        found: list[bytes] = []
        try:
            end = _find(call, data, at, found)
        except _Wrong as wrong:
            call.data = data[at:]
            _read_payload(call, b"".join(found), sender)
            call.problems[:] = [wrong.problem]  # what is missing behind is no other fault
            yield call
            return
        call.data = data[at:end]
        _read_payload(call, b"".join(found), sender)
        yield call
        at = end


def _find(call: Call, data: bytes, start: int, found: list[bytes]) -> int:
    """Return where the frame at ``start`` ends; its slices are added to ``found``."""
    left = len(data) - start
    token = data[start : start + 4]
    if token != TOKEN[: len(token)]:
        raise _Wrong(0, "token", f"it is {token.hex()}; expected {TOKEN.hex()}")
    if left < _HEAD:
        raise _Wrong(0, "frame", f"only {left} of the {_HEAD} bytes of its head are there")
    call.serial = int.from_bytes(data[start + 4 : start + 8])
    call.list_size = int.from_bytes(data[start + 8 : start + 12])
    if not 1 <= call.list_size <= _MOST_SLICES:
        raise _Wrong(8, "listSize", f"it is {call.list_size}; expected 1 to {_MOST_SLICES}")
    at = _HEAD
    for index in range(call.list_size):
        if left < at + 4:
            raise _Wrong(at, f"slice {index}", f"{left - at} of the 4 bytes of its length are there")
        size = int.from_bytes(data[start + at : start + at + 4])
        if not 1 <= size <= _LARGEST_SLICE:
            raise _Wrong(at, f"slice {index}", f"its length is {size}; expected 1 to {_LARGEST_SLICE}")
        at += 4
        found.append(data[start + at : start + at + size])
        call.slices.append(len(found[-1]))
        if left < at + size:
            raise _Wrong(at - 4, f"slice {index}", f"its length is {size}; {left - at} bytes are there")
        at += size
    return start + at


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
            raise _Wrong(at, name, _missing(message), joined=True)
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


def _missing(message: Any) -> str:
    """Return the first few fields that an incomplete message lacks; protobuf's own list has all, at any length."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    if message.DESCRIPTOR.name == "ResponseHeader":  # to protobuf a value that an enum does not have is no value
        unknown: Any = UnknownFieldSet(message)
        for one in unknown:
            if one.field_number == 1:
                return f"status is {one.data}; expected 0, 1 or 2"
    names = list(islice(_lacking(message, ""), _NAMED + 1))
    more = ", and more" if len(names) > _NAMED else ""
    return f"required fields are missing: {', '.join(names[:_NAMED])}{more}"


def _lacking(message: Any, path: str) -> Iterator[str]:
    for one_field in message.DESCRIPTOR.fields:
        name = one_field.name
        value = getattr(message, name)
        if hasattr(value, "append"):
            for index, one in enumerate(value):
                if hasattr(one, "ListFields"):
                    yield from _lacking(one, f"{path}{name}[{index}].")
        elif not message.HasField(name):
            if name in _required(message.DESCRIPTOR):
                yield path + name
        elif hasattr(value, "ListFields"):
            yield from _lacking(value, f"{path}{name}.")


@cache
def _required(descriptor: Any) -> frozenset[str]:
    from google.protobuf import descriptor_pb2

    described = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(described)
    return frozenset(field.name for field in described.field if field.label == field.LABEL_REQUIRED)


def _read_payload(call: Call, data: bytes, sender: Sender) -> None:
    """Read the parts of a payload; a fault ends it, and is added to the problems."""
    if not data:
        return
    if sender != "either":
        _try(call, data, answer=sender == "server")
        return
    # Servers answer with flag 1.  Requests have 0, but for one client's 10: so both are tried.
    answer = data[:3] == b"\x02\x08\x01"
    if not _try(call, data, answer=answer):
        other = Call(call.number, call.offset, call.data)
        if _try(other, data, answer=not answer):
            call.kind, call.method, call.parts, call.behind = other.kind, other.method, other.parts, other.behind
            call.problems = other.problems


def _try(call: Call, data: bytes, *, answer: bool) -> bool:
    """Return whether the whole payload could be read as an answer, or as a request."""
    payload = _Payload(call, data)
    try:
        payload.take("RpcConnHeader")
        (_read_answer if answer else _read_request)(call, payload)
    except _Wrong as wrong:
        call.problems.append(wrong.problem)
        return False
    return True


def _read_request(call: Call, payload: _Payload) -> None:
    call.kind = "request"
    payload.take("RequestHeader")
    body = payload.take("RequestBody")
    call.behind = len(payload.data) - payload.at
    call.method = body.method
    _read_inner(call, payload, body.request)


def _read_answer(call: Call, payload: _Payload) -> None:
    call.kind = "answer"
    if payload.take("ResponseHeader").status:
        call.kind = "exception"
        payload.take("RspExceptionBody")
        call.behind = len(payload.data) - payload.at
        return
    body = payload.take("RspResponseBody")
    call.behind = len(payload.data) - payload.at
    call.method = body.method
    _read_inner(call, payload, body.data)


def _read_inner(call: Call, payload: _Payload, data: bytes) -> None:
    # The message is a field of the part before it, and the last one that a writer puts there.
    at = payload.at - len(data)
    method = METHODS.get(call.method or 0)
    if method is None:
        what = "reserved: it has no messages" if call.method in _RESERVED else "no method of this protocol"
        text = f"{call.method} is {what}; known: {', '.join(map(str, METHODS))}"
        raise _Wrong(call.parts[-1].at, "method", text, joined=True)
    message = payload.read(method.request if call.kind == "request" else method.answer, at, data)
    if method.request == "SendMessageRequestP2B" and call.kind == "request":
        given = message.checkSum != _NOT_GIVEN  # a broker computes it
        call.problems += _wrong_payload(at, "data", message.data, message.flag, message.checkSum if given else None)
    faults = 0
    for index, one in enumerate(getattr(message, "messages", ())):
        found = _wrong_payload(at, f"messages[{index}]", one.payLoadData, one.flag, one.checkSum)
        faults += len(found)
        if faults <= _FEW:
            call.problems += found
    if faults > _FEW:
        call.problems.append(Problem(at, "messages", f"{faults} faults in all; the first are told", unpacked=True))


def _wrong_payload(at: int, name: str, data: bytes, flag: int, checksum: int | None) -> list[Problem]:
    """Return what is wrong with a message's payload."""
    found = []
    computed = crc32(data) & 0x7FFFFFFF
    if checksum not in (computed, None):
        found.append(Problem(at, name, f"its checksum is {checksum}; expected {computed}", unpacked=True))
    if split_payload(flag, data) is None:
        text = f"it has {len(data)} bytes, and its attribute does not fit into them"
        found.append(Problem(at, name, text, unpacked=True))
    return found


def split_payload(flag: int, data: bytes) -> tuple[bytes, bytes] | None:
    """Return (attribute text, body) of a message's payload; None if the attribute does not fit."""
    if not flag & _HAS_ATTRIBUTE:
        return b"", data
    size = int.from_bytes(data[:4])
    if len(data) < 4 or size > len(data) - 4:
        return None
    return data[4 : 4 + size], data[4 + size :]
