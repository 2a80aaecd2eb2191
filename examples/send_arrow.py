"""Send an Arrow column: pyarrow, Polars, pandas or anything else that speaks Arrow's C interface.

python examples/send_arrow.py [tcp://host:46801]
"""

from __future__ import annotations

import sys

import pyarrow as pa
from local_hub import target_or_hub

import dataproxy

ROWS = 50_000


def main() -> int:
    """Send a table's column, a slice of an array, and a column with nulls."""
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with (
        target_or_hub(given) as target,
        dataproxy.Producer(target, group_id="web", null_value="skip") as producer,
    ):
        table = pa.table(
            {
                "id": pa.array(range(ROWS)),
                "value": pa.array([f'{{"user": {number}}}' for number in range(ROWS)]),
            }
        )
        whole = producer.send_arrow("users", table)  # the column `value` is found by its name
        part = producer.send_arrow("users", table.column("value").chunk(0)[100:200])  # no copy of the slice
        gaps = producer.send_arrow("notes", pa.array([b"one", None, b"three"], pa.large_binary()))
        done = [batch.result(timeout=30) for batch in (whole, part, gaps)]
        for name, result in zip(("table", "slice", "with nulls"), done, strict=True):
            print(f"{name}: {result.delivered:,} acknowledged, {result.skipped} skipped")
    return 0 if all(result.ok for result in done) else 1


if __name__ == "__main__":
    sys.exit(main())
