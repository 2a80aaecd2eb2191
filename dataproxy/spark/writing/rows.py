"""Record batches from Row objects, for the interfaces of Spark that know no Arrow.

Spark hands a timestamp to Python as a datetime without a zone, in the local time of the worker's machine, at every
depth: in arrays, in structs, and among the values of maps.  Arrow would take such a datetime for UTC, so each
one gets the machine's zone back first.
"""

from __future__ import annotations

import calendar
import itertools
import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import MapType, TimestampType

from dataproxy.errors import ConfigError, InvalidMessageError
from dataproxy.spark.planning.bodytypes import nested_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import Row
    from pyspark.sql.types import StructType

__all__ = ["check_row_types", "rows_to_batches"]

_ROWS: Final = 1_000


def check_row_types(schema: StructType) -> None:
    """Raise ConfigError for maps whose keys hold timestamps.

    Spark makes a dict of a map, and two keys of the hour that clocks repeat are equal in Python: one entry would be
    lost before a row gets here.
    """
    for name, kind in nested_types(schema):
        if isinstance(kind, MapType) and any(
            isinstance(of, TimestampType) for of in (kind.keyType, *(of for _, of in nested_types(kind.keyType)))
        ):
            raise ConfigError(
                f"column {name!r} is a map with timestamps among its keys, and two keys with the same local time become"
                " one key in Python",
                hint="use df.write (Spark 4.0 and newer), or map_entries() on the column, or cast its keys to string",
            )


def rows_to_batches(
    rows: Iterable[Row], schema: StructType, size: int = _ROWS, *, has_folds: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield record batches of up to ``size`` rows with the Arrow types that Spark uses for ``schema``, times in UTC.

    ``has_folds`` tells whether datetimes say which one of two equal hours they mean (``datetime.fold``), as those of
    Spark's own rows do and those of Spark Connect do not.  Raises InvalidMessageError for one that could mean either.
    """
    import pyarrow as pa

    wanted = _arrow_schema(schema)
    moment = _as_local if has_folds else _as_certain
    converters = [_converter(pa, field.type, moment) for field in wanted]
    source = iter(rows)
    while chunk := list(itertools.islice(source, size)):
        arrays = []
        for column, field, convert in zip(zip(*chunk, strict=True), wanted, converters, strict=True):
            values = column if convert is None else [None if value is None else convert(value) for value in column]
            arrays.append(pa.array(values, type=field.type))
        yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow types of a schema, times in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # older versions know no other zone
        return to_arrow_schema(schema)


def _converter(pa: Any, kind: Any, moment: Callable[[datetime], datetime]) -> Callable[[Any], Any] | None:
    """Return a function that turns Spark's value into the value for Arrow, at any depth; None if they are equal.

    A map comes from Spark as a dict, Arrow wants pairs; a timestamp comes in the local time of the process.
    """
    if pa.types.is_timestamp(kind):
        return moment if kind.tz is not None else None
    if pa.types.is_map(kind):
        return _map_converter(_converter(pa, kind.key_type, moment), _converter(pa, kind.item_type, moment))
    if pa.types.is_struct(kind):
        return _struct_converter([_converter(pa, field.type, moment) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_converter(_converter(pa, kind.value_type, moment))
    return None


def _list_converter(part: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    if part is None:
        return None
    return lambda value: [None if item is None else part(item) for item in value]


def _map_converter(key: Callable[[Any], Any] | None, part: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if key is None and part is None:
        return lambda value: list(value.items())

    def convert(value: dict[Any, Any]) -> list[tuple[Any, Any]]:
        return [
            (name if key is None else key(name), item if part is None or item is None else part(item))
            for name, item in value.items()
        ]

    return convert


def _struct_converter(parts: list[Callable[[Any], Any] | None]) -> Callable[[Any], Any] | None:
    if not any(parts):
        return None

    def convert(value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            item if part is None or item is None else part(item) for item, part in zip(value, parts, strict=True)
        )

    return convert


def _as_local(value: datetime) -> datetime:
    """Return a datetime with the machine's zone at that moment."""
    try:
        return value.astimezone()
    except (ValueError, OverflowError):  # it looks a day ahead and back, beyond what a datetime can hold
        wall = value.timetuple()
        offset = calendar.timegm(wall) - round(time.mktime(wall))
        return value.replace(tzinfo=timezone(timedelta(seconds=offset)))


def _as_certain(value: datetime) -> datetime:
    """Return a datetime with the machine's zone.  Raises InvalidMessageError for one of two equal hours."""
    found = _as_local(value)
    if value.tzinfo is None and _as_local(value.replace(fold=1)).utcoffset() != found.utcoffset():
        raise InvalidMessageError(
            f"the timestamp {value.isoformat(' ')} ({found.tzname()}) occurs twice in the local time of this machine,"
            " and Spark Connect does not say which one it is",
            hint='use df.write.format("dataproxy"), or run the server with TZ=UTC',
        )
    return found
