"""A hub that listens as RocketMQ, in a process of its own: prints its target, ends with its standard input.

``python -m benchmarks.servers.rockethub [FOLDER]``; without a folder it is in memory
"""

import sys

from dataproxy.hub import Hub

__all__ = ["main"]


def main() -> None:
    """Serve until standard input ends."""
    with Hub(*sys.argv[1:], rocketmq_port=0, max_store_bytes=8 << 30) as hub:
        print(hub.rocketmq_target, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
