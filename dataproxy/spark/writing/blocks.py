"""Record batches cut at the blocks of a partition's rows, for ids that depend on whole blocks.

The sizes of Arrow batches depend on Spark's settings, the sizes of rows and the plan's operators; blocks are counted
from the partition's first row.  So the rows after a batch's last whole block wait for the next batch, or for the end of
the partition.  They wait only for the task's own input, like the rows of a batch that Spark is still filling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataproxy.errors import InvalidMessageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["BLOCK_ROWS", "whole_blocks"]

BLOCK_ROWS: Final = 256
"""Rows of a block; the last one of a partition may have fewer."""


def whole_blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of whole blocks; the last batch ends with the last row.

    Rows are copied only into blocks that lie in more than one batch.  Raises InvalidMessageError for a block that is
    larger than an Arrow column can be (2 GiB).
    """
    held: list[pa.RecordBatch] = []  # together less than a block
    missing = BLOCK_ROWS  # rows that complete the block in ``held``
    for batch in batches:
        start = 0
        if held:
            start = min(missing, batch.num_rows)
            held.append(batch.slice(0, start))
            missing -= start
            if missing:
                continue
            yield _joined(held)
            held, missing = [], BLOCK_ROWS
        whole = (batch.num_rows - start) // BLOCK_ROWS * BLOCK_ROWS
        if whole:
            yield batch.slice(start, whole)
        rest = batch.num_rows - start - whole
        if rest:
            held, missing = [batch.slice(start + whole)], BLOCK_ROWS - rest
    if held:
        yield _joined(held)


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of all parts as one batch.  Raises InvalidMessageError if they are too large for one."""
    import pyarrow as pa

    if len(parts) == 1:
        return parts[0]
    joined = pa.Table.from_batches(parts).combine_chunks().to_batches()
    if len(joined) == 1:
        return joined[0]
    raise InvalidMessageError(
        f"{BLOCK_ROWS} rows of this partition are larger than an Arrow column can be",
        hint="set the option rowIds=false, or give rows their own ids in a column msg_id",
    )
