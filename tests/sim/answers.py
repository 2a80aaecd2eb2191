"""Answers of one connection come in the order of its requests, and none is left out: a judge of raw bytes."""

from __future__ import annotations

import re
from collections import deque

from tests.sim.proxy import is_http, message_size
from tests.support.reference.v1 import read_infos, read_pack

__all__ = ["AnswerOrder"]

_NUMBER = re.compile(rb"(?:^|&)(?:mid|messageId)=([^&]*)")


class AnswerOrder:
    """What one connection asked and was not answered yet; ``wrong`` tells the first answer that was not its turn."""

    def __init__(self) -> None:
        self.wrong = ""
        self._open: deque[tuple[int, bytes]] = deque()
        self._parts = [b"", b""]

    def asked(self, data: bytes) -> None:
        """Take bytes that reached the server."""
        for frame in self._frames(0, data):
            if b"&isAck=false" not in frame:
                self._open.append(_name(frame, 17))

    def answered(self, data: bytes) -> None:
        """Take bytes that the server wrote."""
        for frame in self._frames(1, data):
            name = _name(frame, 5)
            due = self._open.popleft() if self._open else None
            if name != due and not self.wrong:
                self.wrong = f"{name} was answered when it was the turn of {due}"

    def _frames(self, way: int, data: bytes) -> list[bytes]:
        data = self._parts[way] + data
        found = []
        while size := message_size(data):
            found.append(data[:size])
            data = data[size:]
        self._parts[way] = data
        return found


def _name(frame: bytes, number_at: int) -> tuple[int, bytes]:
    """Return the type of a frame and what an answer has in common with its request; over HTTP it is nothing."""
    if is_http(frame):
        return 0, b""
    if frame[:1] == b"\x08":
        return 0, b"%d" % read_infos(frame)[0][1]
    if frame[4] == 0:
        return 0, b"%d" % read_pack(frame)[0].packId
    kind = frame[4] & 0x1F
    if kind in (1, 8):
        return kind, b""
    if kind == 7:
        return kind, frame[number_at : number_at + 4]
    body = int.from_bytes(frame[5:9], "big")
    found = _NUMBER.search(frame[13 + body :])
    return kind, found[1] if found else b""
