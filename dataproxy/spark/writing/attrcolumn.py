"""The column ``attrs`` with values of any text, as the option ``attributeEscape`` sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataproxy.escapes import ESCAPED_KEYS, NEEDS_ESCAPE, escape_entries

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["escape_column"]

_MARK: Final = ESCAPED_KEYS.encode()


def escape_column(batch: pa.RecordBatch, at: int) -> tuple[pa.RecordBatch, frozenset[int]]:
    """Escape a column; return the batch, and the rows that have the reserved key, which are not changed.

    In the batch returned, the attributes (a map of texts at column ``at``) can be sent with any text as values.

    It is the same batch if no value needs an escape; one search of the whole column finds this out.  Texts that are not
    UTF-8 are read as bytes.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = batch.column(at)
    values = column.items.cast(pa.binary())
    names = column.keys.cast(pa.binary())
    reserved = pc.any(pc.equal(names, _MARK)).as_py()
    if not reserved and not pc.any(pc.match_substring_regex(values, pattern=NEEDS_ESCAPE)).as_py():
        return batch, frozenset()
    keys, values = names.to_pylist(), values.to_pylist()
    places, there = column.offsets.to_pylist(), column.is_valid().to_pylist()
    entries: list[tuple[bytes, bytes | None]] = []
    offsets: list[int | None] = []
    given: set[int] = set()
    for row, is_there in enumerate(there):
        offsets.append(len(entries) if is_there else None)
        if is_there:
            part = slice(places[row], places[row + 1])
            if reserved and _MARK in keys[part]:
                given.add(row)
            entries += escape_entries(list(zip(keys[part], values[part], strict=True)))
    offsets.append(len(entries))
    escaped = pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.array([key for key, _ in entries], pa.binary()),
        pa.array([value for _, value in entries], pa.binary()),
    )
    return batch.set_column(at, batch.schema.field(at).name, escaped), frozenset(given)
