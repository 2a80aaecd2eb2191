"""Fuzz target: bytes for the hub's port of RocketMQ, over a socket, compared with the plain reference.

What the reference reads as requests is answered, each once and in its form; what it does not read ends the connection.
"""

from __future__ import annotations

import atexit
import itertools
from collections import Counter
from functools import cache

from dataproxy.hub import Hub
from tests.fuzz.engine import main
from tests.native import probe_rocketmq as wire
from tests.support.reference import rocketmq as plain
from tests.support.reference.rocketvectors import CAPTURED, FRAMES
from tests.support.remoting import Remote, batch, properties

__all__ = ["SEEDS", "check", "repair"]

SEEDS = [bytes.fromhex(one["hex"]) for one in CAPTURED if one["direction"] == "client->server"]
SEEDS += [bytes.fromhex(one[form]) for one in FRAMES if one["kind"] != "response"
          for form in ("hex_json", "hex_rocketmq")]  # fmt: skip
_CODE = 106
_MARK = itertools.count(1 << 30)
#: Their answers may come when the client has answered, or when there are messages.
_LATER = frozenset((11, 223, 307, 309, 324, 325))


_HEAD = {"form": 0, "language": 0, "version": 407, "flag": 0, "opaque": 5, "remark": b"", "fields": ()}
_SENT = {
    "producerGroup": b"p", "topic": b"T", "defaultTopic": b"TBW102", "defaultTopicQueueNums": 4, "queueId": 0,
    "sysFlag": 0, "bornTimestamp": 1, "flag": 0, "properties": b"", "reconsumeTimes": 0, "unitMode": False,
    "maxReconsumeTimes": 0, "batch": False, "bname": b"", "body": b"body",
}  # fmt: skip
_PULLED = {
    "consumerGroup": b"g", "topic": b"T", "queueId": 0, "queueOffset": 0, "maxMsgNums": 32, "sysFlag": 4,
    "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": b"*", "subVersion": 0, "expressionType": b"TAG",
    "bname": b"",
}  # fmt: skip


def _sends() -> list[bytes]:
    """Return sends to a topic that is there, and pulls, with headers of both forms."""
    items = batch((1, b"one", b""), (2, b"two", b"a\x01b"))
    sends = [(310, {}), (10, {"properties": properties(KEYS="a b", TAGS="t")}), (320, {"body": items}),
             (310, {"properties": properties(DELAY="1")})]  # fmt: skip
    pulls = [{}, {"subscription": b"a || b"}, {"subscription": b"a > 3", "expressionType": b"SQL92"}]
    found = []
    for form in (0, 1):
        found += [wire.put("send", {**_HEAD, "form": form, "code": code}, _SENT | given) for code, given in sends]
        found += [wire.put("pull", {**_HEAD, "form": form, "code": 11}, _PULLED | given) for given in pulls]
    return found


@cache
def _hub() -> Hub:
    hub = Hub(rocketmq_port=0)
    atexit.register(hub.close)
    with Remote(hub.rocketmq_port) as remote:
        remote.send("T", b"m")
    return hub


def repair(data: bytes) -> bytes:
    """Return bytes with the length that they have, so that changes reach what is in a frame."""
    if len(data) < 8:
        return b""
    room = len(data) - 8
    size = min(int.from_bytes(data[5:8]), room)
    if data[4] & 1 == 0:
        end = data.rfind(b"}", 8, 8 + min(room, 1500))
        size = max(end - 7, 0)
    return (len(data) - 4).to_bytes(4) + bytes((data[4] & 1,)) + size.to_bytes(3) + data[8:]


def check(data: bytes) -> None:
    """Send the bytes as they are, and as one frame."""
    _send(data)
    _send(repair(data))


def _send(data: bytes) -> None:
    frames, is_broken = _frames(data)
    commands = [plain.read_frame(one) for one in frames]
    with Remote(_hub().rocketmq_port) as remote:
        mark = next(_MARK)
        last = wire.write(remote.head(_CODE) | {"opaque": mark})
        remote.socket.settimeout(20)
        remote.socket.sendall((data if is_broken else b"".join(frames)) + last)
        answers, is_closed = _answers(remote, mark, None if is_broken else _owed(commands))
    assert is_closed == is_broken, f"the connection is {'closed' if is_closed else 'open'}"
    asked = Counter((one["opaque"], one["form"]) for one in commands if not one["flag"] & 3)
    assert not answers - asked, f"answers that nobody asked for: {answers - asked}"


def _owed(commands: list[dict]) -> Counter:
    """Return number and form of the requests whose answer comes at once."""
    return Counter(
        (one["opaque"], one["form"]) for one in commands if not one["flag"] & 3 and one["code"] not in _LATER
    )


def _frames(data: bytes) -> tuple[list[bytes], bool]:
    """Return the frames before what is none, and whether there is such a thing."""
    found: list[bytes] = []
    at = 0
    while True:
        try:
            frame = plain.take_frame(data, at)
            if frame is None:
                return found, False
            if plain.read_frame(frame)["opaque"] is None:
                return found, True
        except plain.WireError:
            return found, True
        found.append(frame)
        at += len(frame)


def _answers(remote: Remote, mark: int, owed: Counter | None) -> tuple[Counter, bool]:
    """Return (number, form) of all answers, and whether the hub has closed; ``owed``: those to wait for."""
    found: Counter = Counter()
    data, is_marked = bytearray(), False
    while owed is None or not is_marked or owed - found:
        try:
            part = remote.socket.recv(1 << 16)
        except ConnectionError:
            part = b""
        if not part:
            return found, True
        data += part
        while (frame := plain.take_frame(bytes(data))) is not None:
            del data[: len(frame)]
            head = plain.read_frame(frame)
            if not head["flag"] & 1:
                continue  # a request of the hub's own
            if head["opaque"] == mark:
                is_marked = True
            else:
                found[head["opaque"], head["form"]] += 1
    return found, False


SEEDS += _sends()


if __name__ == "__main__":
    main(check, SEEDS)
