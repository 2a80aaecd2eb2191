"""One hub in a process of its own: ``python -m tests.campaigns.chaos.hubmain DIRECTORY PORTS [TLS ...]``.

The ports are those of TCP, HTTP report, Manager, TubeMQ and RocketMQ.  With two files for TLS, one with certificate and
key, one with an authority, it speaks TLS with clients whose certificate this authority has signed.
``-`` for the directory keeps entries in memory, the newest 64 MiB of them.  It prints a line when it is ready.  A line
of JSON on standard input is a fault and how long the hub has it; the hub ends when its standard input does.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

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
    store, port, http_port, manager_port, tubemq_port, rocketmq_port, *identity = sys.argv[1:]
    where: dict[str, Any] = {"max_store_bytes": "64MiB"} if store == "-" else {"store": store}
    if identity:
        where["tls_certificate"], where["tls_client_ca"] = identity
    ports = {
        "port": port, "http_port": http_port, "manager_port": manager_port, "tubemq_port": tubemq_port,
        "rocketmq_port": rocketmq_port,
    }  # fmt: skip
    with Hub(**{name: int(number) for name, number in ports.items()}, **where) as hub:
        print(hub.target, hub.manager_url, flush=True)
        for line in sys.stdin:
            _misbehave(hub, line)
        hub.faults.clear()


if __name__ == "__main__":
    main()
