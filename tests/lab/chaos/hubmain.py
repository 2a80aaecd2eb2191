"""One durable hub in a process of its own: ``python -m tests.lab.chaos.hubmain DIRECTORY PORT MANAGER_PORT``.

It prints a line when it is ready, and ends when its standard input does.
"""

from __future__ import annotations

import sys

from dataproxy.hub import Hub

if __name__ == "__main__":
    with Hub(sys.argv[1], port=int(sys.argv[2]), manager_port=int(sys.argv[3])) as hub:
        print(hub.target, hub.manager_url, flush=True)
        sys.stdin.read()
