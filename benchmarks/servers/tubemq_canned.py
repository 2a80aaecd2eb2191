"""A TubeMQ master and broker whose packs are made beforehand: one partition, the same messages again and again.

``python -m benchmarks.servers.tubemq_canned --rows 4000000 --size 100`` prints its target as a JSON object, and ends
with its standard input.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

from dataproxy.wire.tubemq import messages
from tests.support.reference.tubemq import checksum_of
from tests.support.tubeserver import TubeServer
from tests.support.tubeserver.broker import Broker
from tests.support.tubeserver.store import Store

__all__ = ["ATTRIBUTE", "PACK", "TASKS", "main"]

TOPIC: Final = "bench"
PACK: Final = 4_000  # messages
ATTRIBUTE: Final = "$msgType$=bench,$msgTime$=202601010000"
TASKS: Final = 4
_INDEX: Final = 28


class Canned:
    """An answer as bytes."""

    errCode = 200  # noqa: N815 - protobuf's name

    def __init__(self, data: bytes) -> None:
        self._data = data

    def SerializePartialToString(self) -> bytes:  # noqa: N802 - protobuf's name
        """Return the bytes."""
        return self._data


def answers(rows: int, size: int) -> dict[int, Canned]:
    """Return the answers by the offsets at which their packs begin."""
    text = ATTRIBUTE.encode()
    payload = len(text).to_bytes(4) + text + bytes(size)
    found = [
        messages.TransferedMessage(messageId=n, checkSum=checksum_of(payload), payLoadData=payload, flag=1)
        for n in range(PACK)
    ]
    body = messages.GetMessageResponseB2C(success=True, errCode=200, messages=found).SerializeToString()
    made = {}
    for begin in range(0, rows * _INDEX, PACK * _INDEX):
        rest = messages.GetMessageResponseB2C(currOffset=begin, maxOffset=rows * _INDEX, currDataDlt=0, minLimitTime=0)
        made[begin] = Canned(body + rest.SerializePartialToString())
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
    Store.end = property(lambda _: rows * _INDEX)  # type: ignore[assignment,method-assign]
    with TubeServer({TOPIC: 1}) as server:
        print(json.dumps({"target": server.target, "topic": TOPIC, "rows": rows}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
