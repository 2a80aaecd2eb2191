"""The columns of the option ``idFrom``, whose values together identify a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.types import StructType

__all__ = ["find_id_columns"]

_EXACT: Final = (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)


def find_id_columns(schema: StructType, names: Sequence[str]) -> tuple[int, ...]:
    """Return the places of the columns of the option ``idFrom``, in its order; names are compared without case.

    Raises ConfigError for a column that does not exist, is named twice or has the name of another column, and for a
    type whose equal values may differ in their bytes.
    """
    places: list[int] = []
    for name in names:
        found = [at for at, field in enumerate(schema.fields) if field.name.lower() == name.lower()]
        if not found:
            raise ConfigError(
                f"option idFrom names {name!r}, the columns are {schema.fieldNames()!r}", hint=_way_to(schema, name)
            )
        if len(found) > 1 or found[0] in places:
            raise ConfigError(f"option idFrom names {name!r}, and another column has the same name", hint="keep one")
        field = schema.fields[found[0]]
        if not isinstance(field.dataType, _EXACT):
            raise ConfigError(
                f"option idFrom names {field.name!r}, of type {field.dataType.simpleString()}, whose equal values may"
                " have different bytes",
                hint="cast it to string, or name columns of integers, string, binary, boolean, date or timestamp",
            )
        places.append(found[0])
    return tuple(places)


def _way_to(schema: StructType, name: str) -> str:
    """Return a hint how to make a column from one that is inside of another column, or that Spark hides."""
    if "." not in name:
        return "select it too: without a format it is not sent, and with one bodyColumns can leave it out"
    last = name.rpartition(".")[2]
    return f'add it by select("*", "{name}") and name it as idFrom={last}'
