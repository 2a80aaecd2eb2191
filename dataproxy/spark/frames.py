"""DataFrames of messages, made by Spark's own functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from dataproxy.errors import ConfigError
from dataproxy.spark.interfaces import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

__all__ = ["to_messages", "with_json_value"]

_ROUTES: Final = ("group_id", "stream_id", "dt", "attrs", "msg_id")


def with_json_value(df: DataFrame, options: Mapping[str, str] | None = None) -> DataFrame:
    """Return ``df`` with a column ``value``: a row's columns as JSON, without those that the sink uses.

    These (``group_id``, ``stream_id``, ``dt``, ``attrs``, ``msg_id``) stay beside it.  ``options`` are those of
    ``to_json``.  Raises ConfigError when no column is left for the body.
    """
    return to_messages(df, options=options)


def to_messages(
    df: DataFrame,
    *,
    group_id: str | Column | None = None,
    stream_id: str | Column | None = None,
    format: str = "json",  # noqa: A002 - the name of the sink's option
    key: str | Column | None = None,
    dt: str | Column | None = None,
    msg_id: str | Column | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the messages of ``df``: ``value`` beside the columns that say where each row goes.

    ``format`` is ``json`` or ``csv`` by ``to_json`` and ``to_csv`` with their ``options``, or ``raw`` for a DataFrame
    that has ``value``.  ``group_id`` and ``stream_id`` are names (text) or columns; ``dt`` and ``msg_id`` are columns
    or their names.  A column of these names in ``df`` is used if the argument is left out, and is then not part of
    the body; if the argument is given, the column is data like any other.  ``key`` (a column or its name) brings rows
    of the same key into one partition, in which each stream's order is kept.  Raises ConfigError.
    """
    schema_of(df)
    if key is not None:
        df = df.repartition(f.col(key) if isinstance(key, str) else key)
    names = {name.lower(): name for name in df.columns}
    given = {"group_id": group_id, "stream_id": stream_id, "dt": dt, "msg_id": msg_id}
    routes: list[Column] = []
    data = [name for name in df.columns if _is_data(name.lower(), given)]
    for name in _ROUTES:
        choice = given.get(name)
        if isinstance(choice, str):
            choice = f.lit(choice) if name in ("group_id", "stream_id") else f.col(choice)
        if choice is None and name in names:
            choice = df[names[name]]
        if choice is not None:
            routes.append(choice.alias(name))
    return df.select(_body(df, data, format, options).alias("value"), *routes)


def _is_data(name: str, given: Mapping[str, str | Column | None]) -> bool:
    """Tell whether a column is part of the body: its name has no meaning, or an argument replaces that column."""
    choice = given.get(name)
    if name not in _ROUTES or choice is None:
        return name not in _ROUTES
    return not (isinstance(choice, str) and name in ("dt", "msg_id") and choice.lower() == name)


def _body(df: DataFrame, names: list[str], form: str, options: Mapping[str, str] | None) -> Column:
    """Return the body, made from the columns ``names``.  Raises ConfigError."""
    if form == "raw":
        if "value" not in [name.lower() for name in names]:
            raise ConfigError(f"there is no column 'value' among {df.columns!r}", hint='use format="json" or "csv"')
        return df["value"]
    if form not in ("json", "csv"):
        raise ConfigError(f"format={form!r} is not among json, csv and raw", hint="use the sink's option format=kv")
    if not names:
        raise ConfigError(f"no column of {df.columns!r} is left for the body", hint="rename the body's columns")
    row = f.struct(*(df[f"`{name.replace('`', '``')}`"] for name in names))
    make = f.to_json if form == "json" else f.to_csv
    return make(row, dict(options)) if options else make(row)  # Spark Connect refuses an empty map
