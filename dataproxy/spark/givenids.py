"""Ids of a column ``msg_id`` that look like ids which the sink makes of rows.

A hub compares no bodies of such ids, since they name the row by what is in it.  That is not so any more where rows were
read from a hub, changed, and written under the id that they had: they would be taken for copies of what they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["own_ids"]

#: What ``hub/entryids`` takes for the id of a row: the write, the partition, six digits of number, eleven of digest.
_ROWS: Final = r"^[0-9A-Za-z_-]{8}\.([0-9]+\.)?[0-9]+\.[A-Z][0-9A-Za-z_-]{5}[A-P][0-9A-Za-z_-]{10}$"
_MARK: Final = "~"


def own_ids(batch: pa.RecordBatch, column: int) -> pa.RecordBatch:
    """Return a batch in which ids of that form end with ``~``; they are ids like any other then, with their bodies.

    The same id gets the same one whenever it is written.  ``column`` is the place of the ids, strings.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = batch.column(column)
    if not (pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)):
        return batch
    rows = pc.match_substring_regex(ids, _ROWS)
    if not pc.any(rows).as_py():
        return batch
    marked = pc.binary_join_element_wise(ids, pa.scalar(_MARK, ids.type), pa.scalar("", ids.type))
    return batch.set_column(column, batch.schema.field(column), pc.if_else(rows, marked, ids))
