"""A TubeMQ master and broker whose packs are made beforehand: one partition, the same messages again and again.

``python -m benchmarks.servers.tubemq_canned --rows 4000000 --size 100`` prints its target as a JSON object, and ends
with its standard input.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import socket
import sys
from typing import Any, Final

from dataproxy.wire.tubemq import messages
from tests.support.reference import tubemq as wire
from tests.support.tubeserver import TubeServer, service
from tests.support.tubeserver.answers import success
from tests.support.tubeserver.broker import Broker
from tests.support.tubeserver.listener import Listener
from tests.support.tubeserver.store import Progress, Store

__all__ = ["ATTRIBUTE", "PACK", "TASKS", "main"]

TOPIC: Final = "bench"
PACK: Final = 4_000  # messages
ATTRIBUTE: Final = "$msgType$=bench,$msgTime$=202601010000"
TASKS: Final = 4
_INDEX: Final = 28
_GET, _COMMIT = 17, 18
_END: Final = 64  # bytes of a frame in which its offsets are


class Canned:
    """An answer whose frame is ready: nearly all of its bytes are those of many others."""

    errCode = 200  # noqa: N815 - protobuf's name

    def __init__(self, same: memoryview, end: bytes) -> None:
        self._same, self._end = same, end

    def SerializePartialToString(self) -> Canned:  # noqa: N802 - protobuf's name
        """Return the answer itself, of which `Wire` makes a frame."""
        return self

    def frame(self, serial: int) -> list[bytes | memoryview]:
        """Return the parts of the frame."""
        return [self._same[:4].tobytes() + serial.to_bytes(4), self._same[8:], self._end]


class Wire:
    """What the server's calls need of frames; those of packs are not made anew."""

    WireError, split_call, read_message, failed = wire.WireError, wire.split_call, wire.read_message, wire.failed

    @staticmethod
    def answered(method: int, data: bytes | Canned) -> bytes | Canned:
        """Return the payload of an answer."""
        return data if isinstance(data, Canned) else wire.answered(method, data)

    @staticmethod
    def cut(serial: int, payload: bytes | Canned) -> list[bytes | memoryview]:
        """Return the parts of a frame."""
        return payload.frame(serial) if isinstance(payload, Canned) else [wire.cut(serial, payload)]


class Shortcut:
    """Answers to requests for packs and confirms that came before: the same bytes, but for their number."""

    def __init__(self, made: dict[int, Canned], end: int) -> None:
        self._made, self._end = made, end
        self._known: dict[bytes, tuple[Progress, bool | None]] = {}
        self._confirmed: dict[int, bytes] = {}  # by where the next pack begins

    def note(self, payload: bytes, broker: Broker) -> None:
        """Remember what a request that was answered asks for; its reader keeps the partition while it is connected."""
        call = wire.split_call(payload)
        name = {_GET: "GetMessageRequestC2B", _COMMIT: "CommitOffsetRequestC2B"}.get(call["method"])
        if name is None:
            self._known.clear()  # a registration begins elsewhere
        else:
            request = wire.read_message(name, call["request"])
            progress = broker.progress[request.groupName, request.topicName, request.partitionId]
            self._known[bytes(payload)] = progress, None if call["method"] == _GET else request.lastPackConsumed

    def answer(self, serial: int, payload: bytes) -> list[bytes | memoryview] | None:
        """Return the parts of the answer's frame, None for a request that is new."""
        progress, consumed = self._known.get(payload, (None, None))
        if progress is None:
            return None
        if consumed is None:
            progress.pending = PACK * _INDEX
            return self._made[progress.confirmed].frame(serial)
        at = progress.commit(consumed)
        if at not in self._confirmed:
            done = success("CommitOffsetRequestC2B", currOffset=at, maxOffset=self._end)
            self._confirmed[at] = wire.cut(0, wire.answered(_COMMIT, done.SerializeToString()))
        frame = self._confirmed[at]
        return [frame[:4] + serial.to_bytes(4) + frame[8:]]


async def converse(self: Any, made: dict[int, Canned], end: int, connection: socket.socket) -> None:
    """Answer the requests of a connection, without a copy of packs."""
    loop, received, shortcut = asyncio.get_running_loop(), bytearray(), Shortcut(made, end)
    while data := await loop.sock_recv(connection, 1 << 16):
        received += data
        while (frame := wire.take_frame(received)) is not None:
            serial, payload, end = frame
            del received[:end]
            parts = shortcut.answer(serial, payload)
            if parts is None:
                parts = await self._service.answer(serial, payload)
                shortcut.note(payload, self._service._work.__self__)
            views = [memoryview(part) for part in parts]
            try:
                sent = connection.sendmsg(views)
            except BlockingIOError:
                sent = 0
            for view in views:
                if sent < len(view):
                    await loop.sock_sendall(connection, view[sent:])
                sent = max(sent - len(view), 0)


def answers(rows: int, size: int) -> dict[int, Canned]:
    """Return the answers by the offsets at which their packs begin."""
    text = ATTRIBUTE.encode()
    payload = len(text).to_bytes(4) + text + bytes(size)
    found = [
        messages.TransferedMessage(messageId=n, checkSum=wire.checksum_of(payload), payLoadData=payload, flag=1)
        for n in range(PACK)
    ]
    body = messages.GetMessageResponseB2C(success=True, errCode=200, messages=found).SerializeToString()
    made: dict[int, Canned] = {}
    shared: dict[int, memoryview] = {}  # by the size of the frame, which grows with the offset
    for begin in range(0, rows * _INDEX, PACK * _INDEX):
        rest = messages.GetMessageResponseB2C(currOffset=begin, maxOffset=rows * _INDEX, currDataDlt=0, minLimitTime=0)
        frame = wire.cut(0, wire.answered(_GET, body + rest.SerializePartialToString()))
        same = shared.setdefault(len(frame), memoryview(frame)[:-_END])
        assert same == memoryview(frame)[:-_END]
        made[begin] = Canned(same, frame[-_END:])
    return made


def main() -> None:
    """Serve until the standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--size", type=int, default=100)
    given = parser.parse_args()
    rows = given.rows // (PACK * TASKS) * PACK * TASKS  # tasks begin where packs do
    made = answers(rows, given.size)

    def get(self: Broker, request: Any, now: float) -> Any:
        progress = self.progress[request.groupName, request.topicName, request.partitionId]
        self.locks.use((request.groupName, request.topicName, request.partitionId), request.clientId, now)
        progress.pending = PACK * _INDEX
        return made[progress.confirmed]

    Broker._get = get  # type: ignore[method-assign]
    Listener._converse = functools.partialmethod(converse, made, rows * _INDEX)  # type: ignore[assignment]
    service.wire = Wire  # type: ignore[misc,assignment]
    Store.end = property(lambda _: rows * _INDEX)  # type: ignore[assignment,method-assign]
    with TubeServer({TOPIC: 1}) as server:
        print(json.dumps({"target": server.target, "topic": TOPIC, "rows": rows}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
