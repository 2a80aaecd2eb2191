"""A filter for consumers: of several messages with the same id only one stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from dataproxy.errors import ConfigError
from dataproxy.spark.interfaces import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["without_copies"]

_NAME: Final = ("group_id", "stream_id", "msg_id")
_OWN: Final = "_id_or_none_other"
_ARRIVED: Final = "_arrived"


def without_copies(df: DataFrame, *, within: str | None = None) -> DataFrame:
    """Return ``df`` with one row for each message, known by its columns ``group_id``, ``stream_id`` and ``msg_id``.

    Rows without an id (null or empty) all stay.  It is undefined which of several rows with the same id stays; copies
    of one row of the Spark sink are equal.  A streaming DataFrame needs ``within``, an interval such as ``"1 hour"``:
    a copy that comes later than that after its original stays, because Spark then has forgotten the id.  The time is
    that of arrival, not of a column, so no row is dropped because it is late.  Needs Spark 3.5.
    Raises ConfigError for missing columns and for a stream without ``within``.
    """
    schema_of(df)
    names = {name.lower() for name in df.columns}
    missing = [name for name in _NAME if name not in names]
    if missing:
        raise ConfigError(
            f"there is no column {missing[0]!r} among {df.columns!r}",
            hint="the columns group_id, stream_id and msg_id identify a message; add them, as constants if the data"
            " does not have them",
        )
    if df.isStreaming and within is None:
        raise ConfigError(
            "a stream has no end, so its ids cannot all be kept",
            hint='set the longest time between copies, such as within="1 hour"',
        )
    # A row without an id gets a unique one.  Filtering rows with and without ids apart would read a stream twice.
    keyed = df.withColumn(_OWN, f.expr("coalesce(nullif(msg_id, ''), uuid())"))
    key = ["group_id", "stream_id", _OWN]
    if not df.isStreaming:
        return keyed.dropDuplicates(key).drop(_OWN)
    arrived = keyed.withColumn(_ARRIVED, f.current_timestamp()).withWatermark(_ARRIVED, str(within))
    return arrived.dropDuplicatesWithinWatermark(key).drop(_OWN, _ARRIVED)
