"""Ids in a column ``msg_id`` that have the form of ids that the sink makes from rows.

For such ids a hub does not compare bodies, since the id is made from the content of the row.  This is no longer true
for rows that were read from a hub, changed, and written with their old id: the hub would take them for copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["own_ids"]

#: The form that ``server/entries`` takes for the id of a row: write, partition, 6 digits of number, 11 of digest.
_ROWS: Final = r"^[0-9A-Za-z_-]{8}\.([0-9]+\.)?[0-9]+\.[A-Z][0-9A-Za-z_-]{5}[A-P][0-9A-Za-z_-]{10}$"
_MARK: Final = "~"


def own_ids(batch: pa.RecordBatch, column: int) -> pa.RecordBatch:
    """Return a batch in which ids of that form end with ``~``, so that the hub compares their bodies.

    The same id always becomes the same id.  ``column`` is the place of the ids (strings).
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
