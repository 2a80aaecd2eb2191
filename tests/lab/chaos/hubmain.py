"""One hub in a process of its own: ``python -m tests.lab.chaos.hubmain DIRECTORY PORT MANAGER_PORT``.

``-`` for the directory keeps entries in memory, the newest 64 MiB of them.

It prints a line when it is ready, and ends when its standard input does.
"""

from __future__ import annotations

import sys

from dataproxy.hub import Hub

if __name__ == "__main__":
    store, port, manager_port = sys.argv[1:]
    where = {"max_store_bytes": "64MiB"} if store == "-" else {"store": store}
    with Hub(port=int(port), manager_port=int(manager_port), **where) as hub:
        print(hub.target, hub.manager_url, flush=True)
        sys.stdin.read()
