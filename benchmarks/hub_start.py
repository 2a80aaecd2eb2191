"""How long a hub in memory takes from its constructor to the first answered heartbeat, and to close."""

from __future__ import annotations

import argparse
import socket
import time

from dataproxy.hub import Hub

HEARTBEAT = bytes.fromhex("0000000101")


def one_start() -> tuple[float, float]:
    """Return the seconds until a hub answered, and the seconds that its ``close`` took."""
    begin = time.perf_counter()
    hub = Hub()
    with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as peer:
        peer.sendall(HEARTBEAT)
        peer.recv(1)
        ready = time.perf_counter() - begin
    begin = time.perf_counter()
    hub.close()
    return ready, time.perf_counter() - begin


def main() -> None:
    """Print the distribution of the times of all starts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=100)
    starts = parser.parse_args().starts
    first = one_start()
    times = [one_start() for _ in range(starts)]
    print(f"first start with its imports done: {first[0] * 1e3:.1f} ms")
    for name, values in (("ready", sorted(t[0] for t in times)), ("close", sorted(t[1] for t in times))):
        p99 = values[max(0, -(-99 * len(values) // 100) - 1)]
        print(
            f"{name} over {starts} starts, ms: min {values[0] * 1e3:.1f}, median {values[len(values) // 2] * 1e3:.1f},"
            f" p99 {p99 * 1e3:.1f}, max {values[-1] * 1e3:.1f}"
        )


if __name__ == "__main__":
    main()
