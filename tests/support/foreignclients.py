"""TubeMQ's C++ and Go clients as scripts: the bytes that they write, in the order in which they write them.

Plain sockets, and no schema: each message is its numbered fields.  What these clients do in their own way is in
`Habits`; the scripts of consumers and producers are made of single steps, so a test may leave one out.
"""

from __future__ import annotations

import socket
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

__all__ = ["CPP", "GO", "JAVA", "Answer", "Client", "Consumer", "Habits", "frames_in", "payload_of", "took_apart"]

_TOKEN: Final = 0xFF7FF4FE
_SLICE: Final = 8192
_MASTER, _READ, _WRITE = 1, 2, 3
_RPC_MS: Final = 15_000


@dataclass(frozen=True)
class Habits:
    """What one implementation does in its own way."""

    version: int  #: of the protocol
    name: str  #: in client ids
    sends_by: int  #: the service of method 13
    commit_flag: int = 0  #: of RpcConnHeader, in commits
    pads: bool = False  #: frames end in zeros, as if each length had four bytes
    escapes: bool = False  #: escFlowCtrl in every request for messages
    bare_filter: bool = False  #: `topic#` for a topic without filters
    host_has_port: bool = False
    empty_auth: bool = False  #: an authInfo without any field to the master
    timeout_ms: int = _RPC_MS
    discards: bool = True  #: readStatus 1 when a partition is given back


JAVA: Final = Habits(version=3, name="1.13.0", sends_by=_WRITE, timeout_ms=10_000, discards=False)
CPP: Final = Habits(version=2, name="0.1.8-C-0.5.0", sends_by=_WRITE, pads=True, timeout_ms=_RPC_MS - 500)
GO: Final = Habits(
    version=2, name="go-0.1.0", sends_by=_READ, commit_flag=10, escapes=True, bare_filter=True, host_has_port=True,
    empty_auth=True,
)  # fmt: skip


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _written(fields: Mapping[int, Any]) -> bytes:
    """Return a message; None: the field is left out; a list: it is repeated; a dictionary: a message of its own."""
    out = b""
    for number, value in fields.items():
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            if isinstance(one, int):
                out += _varint(number << 3) + _varint(one)
                continue
            data = _written(one) if isinstance(one, dict) else one.encode() if isinstance(one, str) else one
            out += _varint(number << 3 | 2) + _varint(len(data)) + data
    return out


def took_apart(data: bytes) -> dict[int, list[Any]]:
    """Return the fields of a message by their numbers, each with its values: numbers with a sign, or bytes."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        value, at = _read_varint(data, at)
        if tag & 7 == 2:
            assert at + value <= len(data)
            found.setdefault(tag >> 3, []).append(data[at : at + value])
            at += value
        else:
            assert tag & 7 == 0
            found.setdefault(tag >> 3, []).append(value - (1 << 64) if value >> 63 else value)
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def frames_in(data: bytes) -> list[tuple[int, list[bytes], int]]:
    """Return (serial, slices, end) of each whole frame, held to what every client reads: 1 to 1,024 slices."""
    found: list[tuple[int, list[bytes], int]] = []
    at = 0
    while len(data) - at >= 12:
        token, serial, n = struct.unpack_from(">IiI", data, at)
        assert (token, 1 <= n <= 1024) == (_TOKEN, True)
        here, slices = at + 12, []
        for _ in range(n):
            if len(data) < here + 4:
                return found
            (size,) = struct.unpack_from(">I", data, here)
            assert 1 <= size <= _SLICE
            slices.append(data[here + 4 : here + 4 + size])
            here += 4 + size
        if len(data) < here:
            return found
        assert all(len(one) == _SLICE for one in slices[:-1])
        found.append((serial, slices, here))
        at = here
    return found


def payload_of(attribute: bytes, body: bytes) -> tuple[int, bytes]:
    """Return flag and payload of a message."""
    return (1, struct.pack(">I", len(attribute)) + attribute + body) if attribute else (0, body)


class Answer:
    """An answer: of a success the fields of its message, of an exception its name and text."""

    def __init__(self, serial: int, payload: bytes) -> None:
        self.serial, self.exception, self.fields = serial, "", {}
        head: list[dict[int, list[Any]]] = []
        at = 0
        for _ in range(3):
            size, at = _read_varint(payload, at)
            head.append(took_apart(payload[at : at + size]))
            at += size
        assert at == len(payload), "a client that takes a frame apart exactly finds nothing behind it"
        self.status = head[1][1][0]
        self.version = head[1].get(3, [0])[0]
        if self.status:
            self.exception = head[2][1][0].decode()
        else:
            self.method = head[2][1][0]
            self.fields = took_apart(head[2][2][0])

    def __getitem__(self, number: int) -> Any:
        """Return the only value of a field."""
        (value,) = self.fields[number]
        return value

    def texts(self, number: int) -> list[str]:
        """Return the texts of a repeated field."""
        return [one.decode() for one in self.fields.get(number, [])]

    @property
    def code(self) -> int:
        """Return errCode; success says the same, and there is a text."""
        assert self.status == 0, self.exception
        code = int(self[2])
        assert (self[1], bool(self[3])) == (code == 200, True)
        return code


class Client:
    """One connection of a client, to the master and to the broker at once."""

    _next = 1  # C++ and Go count requests for the whole process
    _made = 0  # clients of this process

    def __init__(self, port: int, habits: Habits, group: str = "") -> None:
        self.habits, self.group = habits, group
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._data = b""
        self._found: dict[int, Answer] = {}
        self.arrived: list[int] = []
        Client._made += 1
        self.id = f"{group or 'PRODUCER'}_127.0.0.1-7-1700000000000-{Client._made}-{habits.name}"
        self._host = "127.0.0.1:52000" if habits.host_has_port else "127.0.0.1"

    def post(self, service: int, method: int, fields: Mapping[int, Any], *, flag: int = 0) -> int:
        """Send a request and return its number."""
        serial = Client._next
        Client._next += 1
        request = _written(fields)
        parts = [
            _written({1: flag}), _written({1: service, 2: self.habits.version}),
            _written({1: method, 2: self.habits.timeout_ms, 3: request}),
        ]  # fmt: skip
        sizes = [_varint(len(one)) for one in parts]
        payload = b"".join(size + one for size, one in zip(sizes, parts, strict=True))
        if self.habits.pads:
            payload += bytes(12 - sum(map(len, sizes)))
        slices = [payload[at : at + _SLICE] for at in range(0, len(payload), _SLICE)]
        frame = struct.pack(">IiI", _TOKEN, serial, len(slices))
        self._socket.sendall(frame + b"".join(struct.pack(">I", len(one)) + one for one in slices))
        return serial

    def answer(self, serial: int) -> Answer:
        """Return the answer to a request."""
        while serial not in self._found:
            data = self._socket.recv(1 << 16)
            assert data, "the server has closed the connection"
            self._data += data
            end = 0
            for number, slices, end in frames_in(self._data):  # noqa: B007 - the last end counts
                self._found[number] = Answer(number, b"".join(slices))
                self.arrived.append(number)
            self._data = self._data[end:]
        return self._found.pop(serial)

    def ask(self, service: int, method: int, fields: Mapping[int, Any], *, flag: int = 0) -> Answer:
        """Send a request and return its answer."""
        return self.answer(self.post(service, method, fields, flag=flag))

    def _auth(self) -> dict[int, Any] | None:
        return {} if self.habits.empty_auth else None

    # --- producers

    def register_producer(self, *topics: str) -> Answer:
        """Method 1."""
        return self.ask(_MASTER, 1, {1: self.id, 2: list(topics), 3: -1, 4: self._host, 5: self._auth()})

    def producer_heartbeat(self, checksum: int, *topics: str) -> Answer:
        """Method 2."""
        return self.ask(_MASTER, 2, {1: self.id, 2: checksum, 3: self._host, 4: list(topics), 5: self._auth()})

    def close_producer(self) -> Answer:
        """Method 3."""
        return self.ask(_MASTER, 3, {1: self.id, 2: self._auth()})

    def send(self, topic: str, body: bytes, partition: int = 0, item: str = "", checksum: int | None = -1) -> Answer:
        """Method 13; ``checksum`` None: the right one."""
        flag, payload = payload_of(f"$msgType$={item}".encode() if item else b"", body)
        right = zlib.crc32(payload) & 0x7FFFFFFF
        fields = {
            1: self.id, 2: topic, 3: partition, 4: payload, 5: flag, 6: right if checksum is None else checksum,
            7: 0x7F000001, 8: item or None, 9: "202601011200" if item else None, 10: {1: -2},
        }  # fmt: skip
        return self.ask(self.habits.sends_by, 13, fields)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


class Consumer(Client):
    """A consumer's calls."""

    held: list[str]

    def register(self, *topics: str, filters: Mapping[str, str] | None = None, auth: bool = True) -> Answer:
        """Method 4, with what is held by now."""
        self.held = getattr(self, "held", [])
        conditions = [f"{topic}#{items}" for topic, items in (filters or {}).items()]
        if self.habits.bare_filter and not filters:
            conditions = [f"{topic}#" for topic in topics]
        fields = {
            1: self.id, 2: self.group, 3: self._host, 4: list(topics), 5: list(map(self._subscription, self.held)),
            6: conditions, 7: 0, 8: 1_700_000_000_000, 12: 1, 14: -2, 15: -2, 17: -2,
            18: self._auth() if auth else None, 19: "17" if self.habits is JAVA else None,
        }  # fmt: skip
        return self.ask(_MASTER, 4, fields)

    def heartbeat(self, event: dict[int, list[Any]] | None = None, status: int = 2, *, report: bool = False) -> Answer:
        """Method 5, with the result of an event if there is one."""
        told = None if event is None else {1: event[1][0], 2: event[2][0], 3: status, 4: event.get(4, [])}
        says = report or event is not None
        held = list(map(self._subscription, self.held)) if says else []
        fields = {1: self.id, 2: self.group, 3: held, 4: int(says), 5: told, 6: -2, 7: -2, 9: -2, 10: self._auth()}
        return self.ask(_MASTER, 5, fields)

    def close(self) -> Answer:
        """Method 6."""
        return self.ask(_MASTER, 6, {1: self.id, 2: self.group, 3: self._auth()})

    def _subscription(self, partition: str) -> str:
        return f"{self.id}@{self.group}#{partition}"

    def _place(self, partition: str) -> tuple[str, int]:
        topic, _, number = partition.partition("#")[2].partition(":")
        return topic, int(number)

    def take(self, partition: str, read_status: int = 0, items: list[str] | None = None, **more: Any) -> Answer:
        """Method 15, to register; ``offset``: where a bound consumer begins."""
        topic, number = self._place(partition)
        fields = {
            1: 31, 2: self.id, 3: self.group, 4: topic, 5: number, 6: read_status, 7: items or [],
            8: more.get("offset"), 11: -2, 12: -2, 13: {1: -2},
        }  # fmt: skip
        return self.ask(_READ, 15, fields)

    def give_back(self, partition: str, read_status: int | None = None) -> Answer:
        """Method 15, to unregister."""
        topic, number = self._place(partition)
        status = int(self.habits.discards) if read_status is None else read_status
        return self.ask(_READ, 15, {1: 32, 2: self.id, 3: self.group, 4: topic, 5: number, 6: status, 13: {1: -2}})

    def hold(self, *partitions: str) -> Answer:
        """Method 16."""
        return self.ask(_READ, 16, {1: self.id, 2: self.group, 3: 0, 4: list(partitions), 7: {1: -2}})

    def get(self, partition: str, consumed: int | None = 0) -> Answer:
        """Method 17; ``consumed`` None: the field is left out."""
        topic, number = self._place(partition)
        fields = {1: self.id, 2: number, 3: self.group, 4: topic, 5: consumed, 6: 0, 7: int(self.habits.escapes)}
        return self.ask(_READ, 17, fields)

    def commit(self, partition: str, consumed: int | None = 1) -> Answer:
        """Method 18."""
        topic, number = self._place(partition)
        fields = {1: self.id, 2: topic, 3: number, 4: self.group, 5: consumed}
        return self.ask(_READ, 18, fields, flag=self.habits.commit_flag)

    def bodies(self, answer: Answer) -> list[bytes]:
        """Return the bodies of a pack whose checksums are right."""
        found = []
        for one in map(took_apart, answer.fields.get(4, [])):
            (data,), (checksum,), (flag,) = one[3], one[2], one[4]
            assert checksum == zlib.crc32(data) & 0x7FFFFFFF
            skip = 4 + struct.unpack_from(">I", data)[0] if flag & 1 else 0
            found.append(data[skip:])
        return found
