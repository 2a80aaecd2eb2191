"""A hub that listens as RocketMQ, in a process of its own: prints its target, ends with its standard input.

``python -m benchmarks.servers.rockethub [--store FOLDER] [--room BYTES]``; without a folder it is in memory
"""

import argparse
import sys

from dataproxy.hub import Hub

__all__ = ["main"]


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store")
    parser.add_argument("--room", type=int, default=8 << 30)
    given = parser.parse_args()
    with Hub(given.store, rocketmq_port=0, max_store_bytes=given.room) as hub:
        print(hub.rocketmq_target, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
