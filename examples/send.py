"""Send single messages and learn the fate of each.

python examples/send.py                                # against a hub in this process
python examples/send.py tcp://host1:46801,host2:46801  # against InLong DataProxy nodes
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from local_hub import target_or_hub

import dataproxy

ORDERS = 1000


def main() -> int:
    """Send in four ways and print the report."""
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with target_or_hub(given) as target, dataproxy.Producer(target, group_id="shop") as producer:
        # One message and its result: a Delivery is a lazy future.
        delivery = producer.send("orders", b'{"id": 1, "total": 9.99}')
        done = delivery.result(timeout=10)
        print(f"acknowledged by {done.node} after {done.latency * 1000:.1f} ms, attempt {done.attempts}")

        # Attributes and the data time of one message.
        producer.send("orders", b'{"id": 2}', attrs={"tier": "gold"}, dt=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))

        # Without an object for each message; the report at the end counts them all.
        for number in range(3, ORDERS + 1):
            producer.send_nowait("orders", b'{"id": %d}' % number)

        # A handle bound to one stream is the fastest way for single messages.
        clicks = producer.stream("clicks", attrs={"app": "web"})
        for number in range(ORDERS):
            clicks.send_nowait(b"u%d|click|/home" % number)

        report = producer.flush(timeout=30)
        print(
            f"counts: {report.accepted:,} accepted = {report.delivered:,} delivered + {report.failed:,} failed "
            f"+ {report.expired:,} expired + {report.dropped:,} dropped + {report.pending:,} pending"
        )
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
