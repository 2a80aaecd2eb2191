"""Client program for reading a hub's records back: it fills a store, then decodes everything in it.

``python -m benchmarks.clients.readback --mode record_batches --folder DIR``
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence

import pyarrow.compute as pc

from benchmarks import bodies
from benchmarks.clients.section import Section, report
from dataproxy import Producer
from dataproxy.hub import Hub, open_store

__all__ = ["MODES", "main"]

GROUP, STREAM = "b_bench", "s_bench"


def fill(hub: Hub, block: Sequence[bytes], messages: int) -> None:
    """Send the messages to the hub."""
    with Producer(hub.target, group_id=GROUP) as producer:
        for _ in range(messages // len(block)):
            producer.send_batch(STREAM, block)


def record_batches(path: str) -> tuple[int, int]:
    """Read the durable store as Arrow record batches; return the records and the bytes of their bodies."""
    records = size = 0
    with open_store(path) as store:
        for batch in store.record_batches(GROUP):
            records += batch.num_rows
            size += pc.sum(pc.binary_length(batch.column("body"))).as_py()
    return records, size


def records(path: str) -> tuple[int, int]:
    """Read the durable store as Record objects."""
    count = size = 0
    with open_store(path) as store:
        for record in store.records(GROUP):
            count += 1
            size += len(record.body)
    return count, size


MODES: dict[str, Callable[[str], tuple[int, int]]] = {"record_batches": record_batches, "records": records}


def main(argv: Sequence[str] | None = None) -> None:
    """Run one measurement and print it; AssertionError when something is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=sorted(MODES), required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--body", type=int, default=100)
    asked = parser.parse_args(argv)
    block = bodies.plain(asked.body)
    with tempfile.TemporaryDirectory(dir=asked.folder) as path:
        with Hub(path) as hub:
            fill(hub, block, asked.messages)
        section = Section()
        count, size = MODES[asked.mode](path)
        fields = section.end(count, asked.body)
    assert count == asked.messages, count
    assert size == count * asked.body, (size, count)
    report(fields)


if __name__ == "__main__":
    main()
