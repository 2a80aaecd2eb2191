"""Read orders from a topic of TubeMQ, transform them, write them to proxies or a hub, and then confirm them.

python examples/read_transform_write.py                                # against a hub in this process
python examples/read_transform_write.py tubemq://host:8715 tcp://host:46801

A pack is confirmed when all that was made of it is acknowledged.  A process that is killed before leaves a pack that
comes again; the ids are those of the orders, so a hub with ``dedupe`` stores what was made of them once.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import dataproxy

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERS = 10_000


@contextmanager
def servers(masters: str | None, proxies: str | None) -> Iterator[tuple[str, str]]:
    """Yield what was given; without it the targets of a hub that has some orders, and say at the end what it holds."""
    if masters is not None and proxies is not None:
        yield masters, proxies
        return
    from dataproxy.hub import Hub

    with Hub(tubemq_port=0, partitions=3, dedupe="ids") as hub:
        with dataproxy.Producer(hub.tubemq_target) as producer:
            for number in range(ORDERS):
                order = {"id": number, "channel": ("web", "shop")[number % 2], "cents": number * 5}
                producer.send_nowait("orders", json.dumps(order).encode())
        yield hub.tubemq_target, hub.target
        for (group, stream), count in sorted(hub.counts().items()):
            if group == "invoices":
                sys.stderr.write(f"hub has {count.records:,} records of {group}/{stream}\n")


def invoice(order: bytes) -> tuple[str, bytes]:
    """Return the stream and the body of what an order becomes."""
    found = json.loads(order)
    body = json.dumps({"order": found["id"], "total": f"{found['cents'] / 100:.2f}"})
    return found["channel"], body.encode()


def main() -> int:
    """Work until nothing comes any more, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("masters", nargs="?", help="where orders are, as tubemq://host:port")
    parser.add_argument("proxies", nargs="?", help="where invoices go, as tcp://host:port")
    parser.add_argument("--quiet", type=float, default=5, help="seconds without a message, then it ends (5)")
    given = parser.parse_args()
    if given.masters is not None and given.proxies is None:
        parser.error("give both targets, or none")
    read = again = 0
    with (
        servers(given.masters, given.proxies) as (masters, proxies),
        dataproxy.Consumer(masters, group="invoicing", topics=["orders"]) as consumer,
        dataproxy.Producer(proxies, group_id="invoices") as producer,
    ):
        report = producer.flush()
        consumer.wait_ready()
        while (pack := consumer.poll(timeout=given.quiet)) is not None:
            for record in pack:
                stream, body = invoice(record.body)
                producer.send_nowait(stream, body, message_id=f"{pack.partition}-{record.id}")
            report = producer.flush(timeout=30)
            if not report.ok:
                break  # the pack comes again; leaving the producer's block tells what is wrong
            read += len(pack)
            try:
                consumer.confirm(pack)
            except dataproxy.ConfirmError:
                again += len(pack)
    print(f"{read:,} orders read, {report.delivered:,} invoices acknowledged; {again:,} orders may come again")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except dataproxy.DataProxyError as error:
        sys.exit(f"{error}\nWhat is not confirmed comes again.")
