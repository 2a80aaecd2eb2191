"""``df.foreachPartition(dataproxy.spark.writer(...))``: all that Spark 3.5 has."""

import pytest

from dataproxy.errors import ConfigError
from dataproxy.hub import Hub
from dataproxy.spark import writer
from dataproxy.spark.interfaces import HAS_DATA_SOURCES


def test_partitions_may_be_written_row_by_row(spark, sink):
    df = spark.range(0, 1000, 1, 2).selectExpr(
        "cast(id as string) as value", "map('k', 'v') as attrs", "timestamp '2013-01-01 05:00:00' as dt"
    )  # fmt: skip
    write = writer(df, **{**sink.options, "rowIds": True})
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


NESTED = """
    select t, array(t, null) as a, struct(t as u) as s, map('k', t) as m,
           array(struct(map('k', array(t)) as n)) as d
    from (select explode(array(timestamp'2024-07-01 12:00:00Z', timestamp'2024-03-10 07:30:00Z',
                               timestamp'2024-11-03 05:30:00Z', timestamp'2024-11-03 06:30:00Z')) as t)
"""  # the last two are 01:30 by the clocks of New York


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
@pytest.mark.parametrize("machine", ["America/New_York", "Asia/Tokyo"])
def test_times_at_every_depth_are_those_of_arrow_writers(spark, sink, monkeypatch, machine, zone):
    monkeypatch.setitem(spark.sparkContext.environment, "TZ", machine)  # for the workers of these jobs
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        df = spark.sql(NESTED).coalesce(1)
        wanted = sorted(row.v.encode() for row in df.selectExpr("to_json(struct(t, a, s, m, d)) as v").collect())
        df.foreachPartition(writer(df, **sink.options, format="json"))
        assert sink.bodies() == wanted
        if HAS_DATA_SOURCES:
            df.write.format("dataproxy").mode("append").options(**sink.options, format="json").save()
            assert sink.bodies() == sorted(wanted * 2)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_map_that_python_would_cut_is_refused(spark, sink):
    df = spark.sql("select map(timestamp'2024-11-03 05:30:00Z', 1) as m")
    with pytest.raises(ConfigError, match="timestamps among its keys"):
        writer(df, **sink.options, format="json")
