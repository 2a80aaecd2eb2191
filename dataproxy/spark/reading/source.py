"""The reader for Spark: ranges are planned on the driver, pages are fetched and decoded in tasks."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from dataproxy.errors import StoreError
from dataproxy.spark.reading.columns import READ_SCHEMA, record_columns
from dataproxy.spark.reading.hubclient import HubClient
from dataproxy.spark.reading.plan import LogRange, ReadPlan, tell_loss
from dataproxy.spark.shape import Shape
from dataproxy.spark.wording import sparks_words
from dataproxy.stored.arrow import ArrowRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["HubReader"]

#: Rows of a batch for Spark; the JVM and the worker each hold one batch at a time.
_BATCH_ROWS: Final = 10_000
_BATCH_BYTES: Final = 4 << 20


class HubReader(DataSourceReader):  # type: ignore[misc]  # mypy does not follow pyspark
    """Read the ranges of a plan, with the columns of a schema.

    Raises ConfigError for a column that a read does not have.  Thread rule: Spark pickles it into tasks and uses a copy
    of its own in each process.
    """

    def __init__(self, plan: ReadPlan, schema: StructType) -> None:
        with sparks_words():
            self._shape = Shape(schema, READ_SCHEMA, "a read")
        self._plan = plan

    def partitions(self) -> list[InputPartition]:
        """Return the ranges of the plan, the same ones each time."""
        return list(self._plan.ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one range, oldest first; all of them, or an error.

        Raises StoreError for entries that were dropped (code DATA_LOST) or are damaged, and if the hub now has another
        store than at planning; and TransportError, RemoteProtocolError and HubError, as `HubClient.entries` does.
        """
        if not isinstance(partition, LogRange):  # Spark's own object for a plan without ranges
            return iter(())
        return self._batches(partition)

    def _batches(self, wanted: LogRange) -> Iterator[pa.RecordBatch]:
        plan, rows, place = self._plan, ArrowRows(_BATCH_BYTES), wanted.start
        with sparks_words(), closing(HubClient(plan.hub)) as hub:
            while place < wanted.end:
                page = hub.entries(plan.group_id, plan.stream_id, wanted.partition, place, wanted.end)
                if page.store != plan.store:
                    raise StoreError(
                        f"the hub at {plan.hub.url} has a different store than when the read was planned",
                        hint="load() again",
                    )
                if page.lost is not None:
                    tell_loss(plan.group_id, plan.stream_id, wanted.partition, page.lost, fail=plan.fail_on_loss)
                for entry in page.entries:
                    yield from map(self._shaped, rows.add(entry, _BATCH_ROWS))
                    if rows.is_full(_BATCH_ROWS):
                        yield from map(self._shaped, rows.take(_BATCH_ROWS))
                place = page.follows
            yield from map(self._shaped, rows.take(_BATCH_ROWS))

    def _shaped(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return self._shape.batch(record_columns(records))
