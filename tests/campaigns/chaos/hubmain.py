"""One hub in a process of its own: ``python -m tests.campaigns.chaos.hubmain DIRECTORY PORT MANAGER_PORT``.

``-`` for the directory keeps entries in memory, the newest 64 MiB of them.  It prints a line when it is ready.  A line
of JSON on standard input is a fault and how long the hub has it; the hub ends when its standard input does.
"""

from __future__ import annotations

import json
import sys
import threading

from dataproxy.hub import Hub


def _misbehave(hub: Hub, text: str) -> None:
    wish = json.loads(text)
    seconds = wish.pop("for")
    armed = hub.faults.add(wish.pop("kind"), **wish)
    timer = threading.Timer(seconds, armed.remove)
    timer.daemon = True
    timer.start()


def main() -> None:
    """Run the hub."""
    store, port, manager_port = sys.argv[1:]
    where = {"max_store_bytes": "64MiB"} if store == "-" else {"store": store}
    with Hub(port=int(port), manager_port=int(manager_port), **where) as hub:
        print(hub.target, hub.manager_url, flush=True)
        for line in sys.stdin:
            _misbehave(hub, line)
        hub.faults.clear()


if __name__ == "__main__":
    main()
