"""``df.foreachPartition(dataproxy.spark.writer(...))``: all that Spark 3.5 has."""

import pytest

from dataproxy.errors import ConfigError
from dataproxy.hub import Hub
from dataproxy.spark import writer


def test_partitions_may_be_written_row_by_row(spark, sink):
    df = spark.range(0, 1000, 1, 2).selectExpr(
        "cast(id as string) as value", "map('k', 'v') as attrs", "timestamp '2013-01-01 05:00:00' as dt"
    )  # fmt: skip
    write = writer(df, **{**sink.options, "connectCheck": True})
    df.foreachPartition(write)
    assert len(set(sink.bodies())) == 1000
    assert {record.dt_ms for record in sink.records()} == {1357016400000}
    assert (write.report().acked, write.report().partitions) == (1000, 2)
    with pytest.raises(ConfigError, match="lingr"):
        writer(df, **sink.options, lingr="1s")


def test_a_writer_that_is_used_again_writes_new_messages(spark):
    df = spark.range(0, 100, 1, 2).selectExpr("cast(id as string) as value")
    with Hub(dedupe="ids") as hub:
        write = writer(df, target=hub.target, groupId="g", streamId="s")
        assert write.report().acked == 0
        for _ in range(2):
            df.foreachPartition(write)
        assert len(list(hub.records("g", "s"))) == 200
        assert len({record.message_id for record in hub.records("g", "s")}) == 200
        assert (write.report().acked, write.report().partitions) == (200, 4)
