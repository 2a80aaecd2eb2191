"""Record batches from rows."""

import datetime as dt
import time

import pytest
from pyspark.sql.types import MapType, StringType, StructField, StructType, TimestampType

from dataproxy.spark.writing.rows import rows_to_batches

SCHEMA = StructType(
    [
        StructField("value", StringType()),
        StructField("dt", TimestampType()),
        StructField("attrs", MapType(StringType(), StringType())),
    ]
)


def test_rows_become_batches_of_a_size():
    rows = [(str(number), None, None) for number in range(5)]
    assert [batch.num_rows for batch in rows_to_batches(rows, SCHEMA, 2)] == [2, 2, 1]
    assert list(rows_to_batches([], SCHEMA)) == []


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_time_is_that_of_the_process_s_zone(monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        moment = dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC)
        local = moment.astimezone().replace(tzinfo=None)  # as Spark hands it to Python
        (batch,) = rows_to_batches([("a", local, {"k": "v"}), ("b", None, None)], SCHEMA)
        found = batch.column(1).cast("int64").to_pylist()
        assert found == [int(moment.timestamp()) * 1_000_000, None]
        assert batch.column(2).to_pylist() == [[("k", "v")], None]
    finally:
        monkeypatch.undo()
        time.tzset()
