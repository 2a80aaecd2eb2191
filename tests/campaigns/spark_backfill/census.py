"""Counting the readings of the backfill example in a durable store: each must be there, and once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataproxy.hub import open_store

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Census", "take_census"]


class Census(NamedTuple):
    """What a store holds of numbered readings."""

    stored: int
    missing: int
    doubled: int
    strange: int


def take_census(store: Path, rows: int, group: str, stream: str) -> Census:
    """Count the readings 0 to ``rows`` - 1 in a store; ``strange`` are those with another number."""
    seen = np.zeros(rows, np.uint8)
    stored = strange = doubled = 0
    with open_store(store) as reader:
        for batch in reader.record_batches(group, stream, max_rows=262_144):
            numbers = _numbers(batch.column("body"))
            stored += len(numbers)
            known = numbers[(numbers >= 0) & (numbers < rows)]
            strange += len(numbers) - len(known)
            found, times = np.unique(known, return_counts=True)
            doubled += int(times.sum()) - len(found) + int(seen[found].sum())
            seen[found] = 1
    return Census(stored, rows - int(seen.sum()), doubled, strange)


def _numbers(bodies: pa.Array) -> np.ndarray:
    """Return the second field of each ``device,number,degrees``."""
    fields = pc.split_pattern(bodies.cast(pa.string()), ",")
    return pc.list_element(fields, 1).cast(pa.int64()).to_numpy(zero_copy_only=False)
