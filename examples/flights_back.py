"""The flights as they come back: from the hub's store, from its topics into Spark, from a group; and the comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flights_group import rows_of

from dataproxy.hub import Hub, open_store

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


@dataclass(frozen=True)
class Outcome:
    """The result of the comparison, in rows.

    `duplicates` are rows of the source that were found more often than there; `unexplained` those of them that were
    not read without an answer to their confirm.
    """

    source: int
    stored: int
    missing: int
    changed: int
    duplicates: int
    unexplained: int
    streams: int

    @property
    def ok(self) -> bool:
        """Tell whether every row of the source was found and no other."""
        return self.missing == 0 and self.changed == 0


def stored(spark: SparkSession, store: Path, group: str) -> DataFrame:
    """Return a group's records from the hub's store, read by one task for each stream."""
    folder = str(store)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with open_store(folder) as reader:
            for batch in batches:
                for stream in batch.column("stream_id").to_pylist():
                    for found in reader.record_batches(group, stream):
                        columns = [found.column("stream_id"), found.column("body").cast(pa.string())]
                        yield pa.RecordBatch.from_arrays(columns, names=["stream_id", "value"])

    with open_store(folder) as reader:
        streams = sorted(stream for owner, stream in reader.counts() if owner == group)
    names = spark.createDataFrame([(stream,) for stream in streams], "stream_id string")
    return names.repartition(max(1, len(streams))).mapInArrow(read, "stream_id string, value string")


def from_topic(spark: SparkSession, hub: Hub, topic: str) -> DataFrame:
    """Return the records of a topic, read by Spark's source for TubeMQ from the hub as it listens."""
    return as_rows(spark.read.format("tubemq").options(**reading(hub, topic)).load())


def follow_topic(spark: SparkSession, hub: Hub, topic: str, folder: Path) -> StreamingQuery:
    """Begin a stream of the records of a topic into files of Parquet in a folder, and return its query."""
    stream = spark.readStream.format("tubemq").options(**reading(hub, topic), startingOffsets="earliest").load()
    writer = as_rows(stream).writeStream.format("parquet").option("path", str(folder / "rows"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def reading(hub: Hub, topic: str) -> dict[str, Any]:
    """Return the source's options for the records of DataProxy's containers in a topic."""
    return {"target": hub.tubemq_target, "topics": topic, "group": "spark", "records": "inlong"}


def as_rows(records: DataFrame) -> DataFrame:
    """Return records with the columns of the comparison."""
    return records.selectExpr("stream_id", "cast(body as string) as value")


def from_group(spark: SparkSession, folder: Path, lost: Collection[str]) -> DataFrame:
    """Return the rows that a group's members have written; `lost` are the packs without an answer to their confirm."""
    from pyspark.sql import functions as f

    lines = spark.read.text([str(path) for number in range(2) if (path := rows_of(folder, number)).exists()])
    parts = lines.select(f.split("value", "\t", 3).alias("parts"))
    return parts.select(
        f.col("parts")[1].alias("stream_id"),
        f.col("parts")[2].alias("value"),
        f.col("parts")[0].isin(*lost).cast("int").alias("unconfirmed"),
    )


def compare(sent: DataFrame, found: DataFrame) -> Outcome:
    """Compare two multisets of (stream, row); `found` may say of each row whether its confirm was `unconfirmed`."""
    from pyspark.sql import functions as f

    if "unconfirmed" not in found.columns:
        found = found.withColumn("unconfirmed", f.lit(0))
    tagged = sent.withColumns({"sent": f.lit(1), "found": f.lit(0), "unconfirmed": f.lit(0)}).unionByName(
        found.withColumns({"sent": f.lit(0), "found": f.lit(1)})
    )
    counts = [f.sum(name).alias(name) for name in ("sent", "found", "unconfirmed")]
    surplus = f.col("found") - f.col("sent")
    known = f.col("sent") > 0
    row = (
        tagged.groupBy("stream_id", "value")
        .agg(*counts)
        .agg(
            f.sum("sent"),
            f.sum("found"),
            f.sum(f.greatest(-surplus, f.lit(0))),
            f.sum(f.when(~known, f.col("found")).otherwise(0)),
            f.sum(f.when(known, f.greatest(surplus, f.lit(0))).otherwise(0)),
            f.sum(f.when(known, f.greatest(surplus - f.col("unconfirmed"), f.lit(0))).otherwise(0)),
            f.countDistinct("stream_id"),
        )
        .first()
    )
    return Outcome(*(int(value or 0) for value in row))
