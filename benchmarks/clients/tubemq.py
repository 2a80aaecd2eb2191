"""One run of a consumer in a process of its own: packs from the first to the last, counted and confirmed.

``python -m benchmarks.clients.tubemq TARGET TOPIC GROUP MESSAGES bodies|arrow``
"""

from __future__ import annotations

import json
import resource
import sys
import time

from dataproxy import Consumer


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Read ``MESSAGES`` messages and print one JSON object."""
    target, topic, group, count, way = sys.argv[1:]
    wanted, seen, size, began, cpu = int(count), 0, 0, 0.0, 0.0
    with Consumer(target, group=group, topics=[topic], heartbeat_interval=3) as consumer:
        while seen < wanted:
            pack = consumer.poll(30)
            if pack is None:
                raise SystemExit(f"only {seen} of {wanted} messages came: {consumer.stats()}")
            if not seen:
                began, cpu = time.perf_counter(), _cpu()
            if way == "arrow":
                seen += len(pack.to_arrow())
                pack.to_arrow().__arrow_c_array__()
            else:
                bodies = pack.bodies()
                seen += len(bodies)
                size += sum(map(len, bodies))
            consumer.confirm(pack, wait=False)
        seconds, cpu = time.perf_counter() - began, _cpu() - cpu
        balanced = consumer.stats().messages
    assert balanced.fetched == balanced.confirmed + balanced.rolled_back + balanced.expired + balanced.held
    print(json.dumps({"messages": seen, "seconds": seconds, "cpu": cpu, "bytes": size}))


if __name__ == "__main__":
    main()
