"""The filter for consumers whose server does not filter: one row for each message."""

from datetime import UTC, datetime, timedelta

import pytest

from dataproxy.errors import ConfigError
from dataproxy.hub import Hub
from dataproxy.spark import without_copies

SCHEMA = "group_id string, stream_id string, msg_id string, value string, dt timestamp"
AT = datetime(2024, 7, 1, 12, tzinfo=UTC)


@pytest.fixture
def received(spark):
    """Return messages as a consumer has them: copies, equal ids of other streams, and rows without an id."""
    rows = [
        ("g", "s", "a", "1", AT),
        ("g", "s", "b", "2", AT),
        ("g", "s", "a", "1", AT),
        ("g", "t", "a", "1", AT),
        ("h", "s", "a", "1", AT),
        ("g", "s", None, "3", AT),
        ("g", "s", None, "3", AT),
        ("g", "s", "", "4", AT),
        ("g", "s", "", "4", AT),
    ]
    return spark.createDataFrame(rows, SCHEMA)


EXPECTED = sorted(
    [("g", "s", "a"), ("g", "s", "b"), ("g", "t", "a"), ("h", "s", "a"), *[("g", "s", ""), ("g", "s", None)] * 2],
    key=str,
)


def names(df):
    return sorted(((row.group_id, row.stream_id, row.msg_id) for row in df.collect()), key=str)


def test_one_row_for_each_message_and_all_without_an_id(received):
    once = without_copies(received)
    assert names(once) == EXPECTED
    assert once.columns == received.columns


def test_sql_says_the_same(spark, received):
    """The statement of docs/once.md."""
    received.createOrReplaceTempView("received")
    once = spark.sql(
        """select * except (copy) from (
             select *, row_number() over (partition by group_id, stream_id, msg_id order by dt) as copy from received
           ) where copy = 1 or coalesce(msg_id, '') = ''"""
    )
    assert names(once) == EXPECTED


def test_a_stream_forgets_ids_in_the_end(spark, received, tmp_path):
    source, sink = str(tmp_path / "in"), str(tmp_path / "out")
    received.write.parquet(source)
    stream = without_copies(spark.readStream.schema(SCHEMA).parquet(source), within="1 hour")
    for _ in range(2):
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .option("path", sink)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        received.where("msg_id = 'a'").write.mode("append").parquet(source)  # once more, in a later micro-batch
    assert names(spark.read.parquet(sink)) == EXPECTED


def test_a_row_of_a_stream_that_is_late_stays(spark, tmp_path):
    """Late by its data time: behind a day of other rows it is still the only one of its id."""
    source, sink = str(tmp_path / "in"), str(tmp_path / "out")
    late = AT - timedelta(days=1)
    stream = None
    for rows in (
        [("g", "s", "a", "1", AT)],
        [
            ("g", "s", "b", "late", late),
            ("g", "s", None, "late", late),
            ("g", "s", "a", "1", AT),
            ("g", "s", "c", "2", AT),
        ],
    ):
        spark.createDataFrame(rows, SCHEMA).write.mode("append").parquet(source)
        stream = stream or without_copies(spark.readStream.schema(SCHEMA).parquet(source), within="1 hour")
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .option("path", sink)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    found = spark.read.parquet(sink)
    assert found.columns == SCHEMA.replace(" string", "").replace(" timestamp", "").split(", ")
    assert sorted(row.value for row in found.collect()) == ["1", "2", "late", "late"]


def test_what_it_needs_is_named(spark, received, tmp_path):
    with pytest.raises(ConfigError, match="no column 'msg_id'"):
        without_copies(received.drop("msg_id"))
    received.write.parquet(str(tmp_path / "in"))
    with pytest.raises(ConfigError, match="a stream has no end"):
        without_copies(spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in")))


def test_copies_of_a_sink_without_a_filter_behind_it(spark):
    """What a real InLong DataProxy leaves: every row of both attempts, and ids by which they are one."""
    with Hub() as hub:
        rows = spark.range(0, 1000, 1, 2).selectExpr("cast(id as string) as value")
        for _ in range(2):
            options = {"target": hub.target, "groupId": "g", "streamId": "s", "runId": "again"}
            rows.write.format("dataproxy").mode("append").options(**options).save()
        stored = [(one.group_id, one.stream_id, one.message_id, one.body) for one in hub.records("g", "s")]
    assert len(stored) == 2000
    found = spark.createDataFrame(stored, "group_id string, stream_id string, msg_id string, value binary")
    assert without_copies(found).count() == 1000
