"""A member of a group in a process of its own; it prints what happens to it, a JSON object a line.

``python -m tests.campaigns.tubemq.member TARGET GROUP TOPIC``; a signal INT lets it leave in order.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from typing import Any

from dataproxy import Consumer, DataProxyError

_LOCK = threading.Lock()


def _say(**fields: Any) -> None:
    with _LOCK:
        print(json.dumps({"at": time.monotonic(), **fields}), flush=True)


def main() -> None:
    """Read and confirm packs until a signal comes."""
    target, group, topic = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
    with Consumer(
        target, group=group, topics=[topic], heartbeat_interval=1,
        on_assigned=lambda key: _say(assigned=key), on_revoked=lambda key, lost: _say(revoked=key, lost=lost),
    ) as consumer:  # fmt: skip
        _say(begins=consumer.client)
        try:
            for number, pack in enumerate(consumer):
                _say(pack=number, bodies=[body.decode() for body in pack.bodies()])
                try:
                    pack.confirm()
                except DataProxyError as error:
                    _say(end=number, outcome=str(error.code))
                else:
                    _say(end=number, outcome=pack.outcome)
        except KeyboardInterrupt:
            _say(leaves=True)
    _say(stats=str(consumer.stats().messages))


if __name__ == "__main__":
    main()
