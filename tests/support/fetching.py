"""A consumer's compiled reader with a broker's side that a test plays, on virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.native.probe_fetch import Reader
from tests.native.probe_tubemq import Stream, answer, checksum, frame, payload, read, read_calls, write

__all__ = ["COMMIT", "GET", "Bench", "Request", "committed", "got", "message", "refused"]

GET, COMMIT = 17, 18
_REQUESTS = {GET: "GetMessageRequestC2B", COMMIT: "CommitOffsetRequestC2B"}


class Request(NamedTuple):
    """A request as the broker reads it."""

    serial: int
    method: int
    fields: dict[str, Any]

    @property
    def partition(self) -> int:
        """The partition that it is for."""
        return int(self.fields["partitionId"])


def message(body: bytes, attribute: bytes = b"", number: int = 1, *, broken: bool = False) -> dict[str, Any]:
    """Return a message of a pack."""
    flag, data = payload(attribute, body)
    return {"messageId": number, "checkSum": checksum(data) ^ broken, "payLoadData": data, "flag": flag}


def got(bodies: Sequence[bytes | dict[str, Any]] = (), code: int = 200, **fields: Any) -> bytes:
    """Return the answer to a GET."""
    messages = [message(one) if isinstance(one, bytes) else one for one in bodies]
    whole = {
        "success": code == 200, "errCode": code, "errMsg": b"", "messages": messages, "currOffset": 0, "maxOffset": -1,
        "currDataDlt": -1, "minLimitTime": 0, "escFlowCtrl": False, "requireSlow": False, **fields,
    }  # fmt: skip
    return bytes(write("GetMessageResponseB2C", whole))


def refused(code: int, **fields: Any) -> bytes:
    """Return a GET's answer without a pack, as brokers make it."""
    return got((), code, **{"currOffset": -1, **fields})


def committed(code: int = 200, offset: int = -1, most: int = -1) -> bytes:
    """Return the answer to a confirm."""
    fields = {"success": code == 200, "errCode": code, "errMsg": b"", "currOffset": offset, "maxOffset": most}
    return bytes(write("CommitOffsetResponseB2C", fields))


class Bench:
    """A reader and the broker's side of its connections."""

    def __init__(self, partitions: int = 1, *, filters: Sequence[bytes] = (), **limits: Any) -> None:
        self.reader = Reader(**limits)
        self._streams: dict[str, Stream] = {}
        self.writes: list[list[int]] = []  #: methods of each write
        for number in range(1, partitions + 1):
            self.reader.hold(number, partition=number, filters=list(filters))
        self.reader.advance()

    def connect(self, server: str = "a") -> None:
        """Make the connection that the reader wants."""
        self.reader.connecting(server, 5.0)
        self.reader.connected(server)
        self._streams[server] = Stream()

    def requests(self, server: str = "a") -> list[Request]:
        """Return what the reader writes now, after it looked at the time; connect if it wants to."""
        self.reader.advance()
        if self.reader.connection(server)[0] == "wanted":
            self.connect(server)
        return self.written(server)

    def written(self, server: str) -> list[Request]:
        """Return what was written to a server that is connected."""
        data = self.reader.written(server)
        if not data:
            return []
        found = []
        for serial, frame_payload in self._streams[server].push(data):
            parts = read_calls(frame_payload)
            fields = read(_REQUESTS[parts["method"]], parts["request"])
            found.append(Request(serial, parts["method"], fields))
        self.writes.append([one.method for one in found])
        return found

    def request(self, method: int = GET) -> Request:
        """Return the only request that is written now."""
        (one,) = self.requests()
        assert one.method == method
        return one

    def answer(self, request: Request, data: bytes, server: str = "a") -> None:
        """Answer a request."""
        self.reader.receive(server, frame(request.serial, answer(request.method, data)))
        assert self.reader.balances

    def give(self, *bodies: bytes, **fields: Any) -> Any:
        """Let the reader ask for a pack, give it one, and return it as the application takes it."""
        self.answer(self.request(), got(bodies or (b"x",), **fields))
        pack = self.reader.take()
        assert pack is not None
        return pack
