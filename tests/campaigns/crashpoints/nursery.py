"""A process that has everything imported and forks one hub after the other.

It reads a line of JSON for each: store, port, event, passages.  Written are ``ready PORT PID`` by the hub and ``exit
STATUS`` when it has ended.  Its own end is that of its input.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any, NoReturn

from dataproxy.hub import Hub
from dataproxy.hub.web import manager
from tests.native import probe_crash

__all__ = ["main"]

#: Small, so that a run passes retention and the end of the window again and again.
OPTIONS: dict[str, Any] = {"dedupe": "ids", "dedupe_memory": 64 << 10, "retention_bytes": 3 << 20}


def main() -> None:
    """Fork hubs until the input ends."""
    assert manager is not None  # imported here, not in every child
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _live(order)
        _, status = os.waitpid(child, 0)
        _say(f"exit {os.waitstatus_to_exitcode(status)}")


def _live(order: dict[str, Any]) -> NoReturn:
    """Be a hub until something ends the process."""
    event = order["event"]
    if event in probe_crash.STAGES:
        probe_crash.arm(event, order["passages"])
    elif event != "any time":
        ctypes.CDLL(None).killer_arm(event.encode(), ctypes.c_long(order["passages"]))
    hub = Hub(order["store"], port=order["port"], **OPTIONS)
    _say(f"ready {hub.port} {os.getpid()}")
    while True:
        signal.pause()


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


if __name__ == "__main__":
    main()
