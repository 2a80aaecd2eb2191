"""One run of a consumer in a process of its own: packs from the first to the last, counted and confirmed.

``python -m benchmarks.clients.tubemq TARGET TOPIC GROUP bodies|arrow [--messages N] [--seconds S] [--warmup S]``

The measured section begins with the first pack that comes after the warm-up, and ends behind ``--messages`` or after
``--seconds``.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from benchmarks.clients.section import Section, report
from dataproxy import Consumer

if TYPE_CHECKING:
    from dataproxy._core.consumer.pack import Pack


def _use(pack: Pack, way: str) -> int:
    """Take a pack's messages out in one of the ways, and return how many they are."""
    if way == "arrow":
        pack.to_arrow().__arrow_c_array__()
        return len(pack)
    bodies = pack.bodies()
    sum(map(len, bodies))
    return len(bodies)


def _next(consumer: Consumer) -> Pack:
    pack = consumer.poll(60)
    if pack is None:
        raise SystemExit(f"no messages came: {consumer.stats()}")
    return pack


def main() -> None:
    """Read, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("target", "topic", "group", "way"):
        parser.add_argument(name)
    parser.add_argument("--messages", type=int, default=1 << 62)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--warmup", type=float, default=0.0)
    parser.add_argument("--size", type=int, default=100, help="bytes of a body, for the bytes in the result")
    given = parser.parse_args()
    with Consumer(given.target, group=given.group, topics=[given.topic], heartbeat_interval=3) as consumer:
        pack = _next(consumer)
        warm_until = time.perf_counter() + given.warmup
        while time.perf_counter() < warm_until:
            _use(pack, given.way)
            consumer.confirm(pack, wait=False)
            pack = _next(consumer)
        section, seen, until = Section(), 0, time.perf_counter() + given.seconds
        while True:
            seen += _use(pack, given.way)
            consumer.confirm(pack, wait=False)
            if seen >= given.messages or time.perf_counter() >= until:
                break
            pack = _next(consumer)
        result = section.end(seen, given.size)
        balanced = consumer.stats().messages
    assert balanced.fetched == balanced.confirmed + balanced.rolled_back + balanced.expired + balanced.held
    report({**result, "limit_kb": consumer.config.prefetch_bytes >> 10})


if __name__ == "__main__":
    main()
