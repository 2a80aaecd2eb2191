"""Record batches from Row objects, for the interfaces of Spark that know no Arrow."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import Row
    from pyspark.sql.types import StructType

__all__ = ["rows_to_batches"]

_ROWS: Final = 1_000


def rows_to_batches(rows: Iterable[Row], schema: StructType, size: int = _ROWS) -> Iterator[pa.RecordBatch]:
    """Yield record batches of up to ``size`` rows with the Arrow types that Spark uses for ``schema``."""
    import pyarrow as pa

    wanted = _arrow_schema(schema)
    source = iter(rows)
    while chunk := list(itertools.islice(source, size)):
        columns = zip(*chunk, strict=True)
        arrays = [_array(pa, column, field.type) for column, field in zip(columns, wanted, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow types of a schema, times in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # older versions know no other zone
        return to_arrow_schema(schema)


def _array(pa: Any, values: tuple[Any, ...], kind: Any) -> Any:
    """Return a column.

    A map comes from Spark as a dict, Arrow wants pairs; a timestamp comes in the local time of the process.
    """
    if pa.types.is_map(kind):
        return pa.array([None if value is None else list(value.items()) for value in values], type=kind)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.array([None if value is None else value.astimezone() for value in values], type=kind)
    return pa.array(values, type=kind)
