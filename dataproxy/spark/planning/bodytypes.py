"""The types of columns that have a text form, so that bodies can be made from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
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
    YearMonthIntervalType,
)

from dataproxy.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_body_type", "check_carried_type", "check_kept_types", "nested_types"]

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
_DEPTH: Final = 60  # most levels of containers in each other


def check_body_type(name: str, kind: DataType, depth: int = 0) -> None:
    """Raise ConfigError for a column of a type without a text form; ``name`` is shown with its path in containers."""
    parts = _parts(name, kind)
    if "\0" in name:
        raise ConfigError(
            f"the column {name!r} has a NUL character in its name, which Spark cannot pass to Python", hint="rename it"
        )
    if not isinstance(kind, (ArrayType, MapType, StructType, *_SIMPLE)) and kind.typeName() != "time":
        raise ConfigError(
            f"column {name!r} has type {kind.simpleString()}, which cannot be sent as a body", hint="cast it to string"
        )
    if depth > _DEPTH:
        raise ConfigError(f"column {name!r} is nested deeper than {_DEPTH} levels", hint="use to_json on it")
    for part, of in parts:
        check_body_type(part, of, depth + 1)


def check_carried_type(name: str, kind: DataType) -> None:
    """Raise ConfigError for a column that is not part of a body and that Spark cannot hand to Python."""
    if isinstance(kind, YearMonthIntervalType):
        raise ConfigError(
            f"column {name!r} has type {kind.simpleString()}, which Spark cannot pass to Python",
            hint="drop it, or cast it to string",
        )
    for part, of in _parts(name, kind):
        check_carried_type(part, of)


def check_kept_types(schema: StructType) -> None:
    """Raise ConfigError for columns that files of bad records cannot hold."""

    def check(name: str, kind: DataType) -> None:
        if isinstance(kind, DayTimeIntervalType):
            raise ConfigError(
                f"column {name!r} has type {kind.simpleString()}, which files of bad records cannot store",
                hint="drop it, or cast it to string",
            )
        for part, of in _parts(name, kind):
            check(part, of)

    for field in schema.fields:
        check(field.name, field.dataType)


def nested_types(kind: DataType, name: str = "") -> Iterator[tuple[str, DataType]]:
    """Yield every type inside of a container at any depth, each with the path to it."""
    for part, of in _parts(name, kind):
        yield part.removeprefix("."), of
        yield from nested_types(of, part.removeprefix("."))


def _parts(name: str, kind: DataType) -> list[tuple[str, DataType]]:
    """Return the types directly inside of a container, each with the path to it."""
    if isinstance(kind, ArrayType):
        return [(f"{name}[]", kind.elementType)]
    if isinstance(kind, MapType):
        return [(f"{name}.key", kind.keyType), (f"{name}.value", kind.valueType)]
    if isinstance(kind, StructType):
        return [(f"{name}.{field.name}", field.dataType) for field in kind.fields]
    return []
