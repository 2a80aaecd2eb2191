"""Small batches made large ones: Spark pays for each batch, and a pack has as few messages as its broker had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["BATCH_BYTES", "BATCH_ROWS", "joined"]

#: A batch for Spark is full with so many rows, or bytes.
BATCH_ROWS: Final = 10_000
BATCH_BYTES: Final = 4 << 20


def joined(
    batches: Iterable[pa.RecordBatch], rows: int = BATCH_ROWS, size: int = BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in the same order, in batches of at least ``rows`` rows or ``size`` bytes but for the last.

    A batch that is large enough by itself is passed on as it is; others are copied once, and those of nothing left out.
    """
    waiting: list[pa.RecordBatch] = []
    n = filled = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        n += batch.num_rows
        filled += batch.nbytes
        if n >= rows or filled >= size:
            yield _one_of(waiting)
            waiting = []
            n = filled = 0
    if waiting:
        yield _one_of(waiting)


def _one_of(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    # `size` keeps columns of bytes below the 2 GiB from which on a column would stay in chunks.
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
