"""Which types of columns have a text, so that bodies can be made of them."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from dataproxy.errors import ConfigError

__all__ = ["check_body_type"]

_SIMPLE: Final = (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
_DEPTH: Final = 60  # containers inside of each other


def check_body_type(name: str, kind: DataType, depth: int = 0) -> None:
    """Raise ConfigError for a column of a type that has no text; ``name`` is shown, with the way into containers."""
    parts: list[tuple[str, DataType]] = []
    if isinstance(kind, ArrayType):
        parts = [(f"{name}[]", kind.elementType)]
    elif isinstance(kind, MapType):
        parts = [(f"{name}.key", kind.keyType), (f"{name}.value", kind.valueType)]
    elif isinstance(kind, StructType):
        parts = [(f"{name}.{field.name}", field.dataType) for field in kind.fields]
    elif not isinstance(kind, _SIMPLE) and kind.typeName() != "time":
        raise ConfigError(
            f"column {name!r} has type {kind.simpleString()}, which no body can be made of", hint="cast it to string"
        )
    if depth > _DEPTH:
        raise ConfigError(f"column {name!r} is nested deeper than {_DEPTH} levels", hint="use to_json on it")
    for part, of in parts:
        check_body_type(part, of, depth + 1)
