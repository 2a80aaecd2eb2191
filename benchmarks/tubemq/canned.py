"""The broker in C, which serves ready packs and takes what is sent, on the core of servers."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.floors import BUILT
from benchmarks.servers.pinned import Server, started
from dataproxy.wire.tubemq import messages
from tests.support.reference.tubemq import answered, checksum_of, cut

__all__ = ["PARTITIONS", "SENDS", "TOPIC", "answers", "files", "floor"]

SENDS = "sends"  # a topic that benchmarks send to
TOPIC, PARTITIONS, _PACK_BYTES, _RECORD_HEAD = "bench", 3, 524_288, 52  # packs as large as TubeMQ's broker makes them


def answers(size: int) -> tuple[dict[str, bytes], int]:
    """Return the frames that the broker serves, by option, and how many messages its pack has."""
    kinds: Any = messages
    count = _PACK_BYTES // (_RECORD_HEAD + size)
    body = bytes(ord("a") + i % 26 for i in range(size))
    found = [
        kinds.TransferedMessage(messageId=i, checkSum=checksum_of(body), payLoadData=body, flag=0) for i in range(count)
    ]
    pack = kinds.GetMessageResponseB2C(
        success=True, errCode=200, errMsg="OK!", messages=found, currOffset=0, minLimitTime=0, escFlowCtrl=False,
        currDataDlt=0, requireSlow=False, maxOffset=1 << 40,
    )  # fmt: skip
    fine = {"success": True, "errCode": 200, "errMsg": "OK!"}
    served = {
        "register": (15, kinds.RegisterResponseB2C(currOffset=0, maxOffset=1 << 40, **fine)),
        "heartbeat": (16, kinds.HeartBeatResponseB2C(requireAuth=False, hasPartFailure=False, **fine)),
        "get": (17, pack),
        "commit": (18, kinds.CommitOffsetResponseB2C(currOffset=0, **fine)),
        "send": (13, kinds.SendMessageResponseB2P(success=True, errCode=200, errMsg="1", messageId=1)),
    }
    return {name: cut(0, answered(method, one.SerializeToString())) for name, (method, one) in served.items()}, count


def files(folder: Path, frames: dict[str, bytes], kind: str) -> list[str]:
    """Write frames to files, and return the options that name them."""
    words = []
    for name, frame in frames.items():
        path = folder / f"{kind}-{name}"
        path.write_bytes(frame)
        words += [f"--{name}", str(path)]
    return words


@contextmanager
def floor(home: Path, size: int) -> Iterator[tuple[Server, int]]:
    """Run the broker in C, with a master that names it; give the master's target, and the broker's port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    served, _ = answers(size)
    broker = (str(BUILT / "tubebroker"), "--port", str(port), *files(home, served, "answer"))
    master = (sys.executable, "-m", "benchmarks.servers.tubemaster", str(port), str(PARTITIONS), TOPIC, SENDS)
    with started(*broker) as (pid, _), started(*master) as (_, port_of_master):
        yield Server(f"tubemq://127.0.0.1:{port_of_master}", pid), port
