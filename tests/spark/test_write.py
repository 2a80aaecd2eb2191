"""Rows arrive as they were: types, columns, policies."""

import datetime as dt
from collections import Counter

import pytest


def texts(spark, count, partitions=2):
    return spark.range(0, count, 1, partitions).selectExpr("cast(id as string) as value")


def test_every_row_arrives_once(spark, sink):
    report = sink.write(texts(spark, 50_000))
    assert Counter(sink.bodies()) == Counter(str(number).encode() for number in range(50_000))
    assert (report["rows"], report["acked"], report["skipped"], report["partitions"]) == (50_000, 50_000, 0, 2)
    assert report["resent_partitions"] == 0


def test_options_have_no_case(spark, sink):
    loud = {name.upper(): value for name, value in sink.options.items()}
    texts(spark, 10).write.format("DataProxy").mode("append").options(**loud).option("LINGER", "1ms").save()
    assert len(sink.bodies()) == 10


def test_partitions_without_rows_report_zero(spark, sink):
    report = sink.write(texts(spark, 2, partitions=6))
    assert (report["partitions"], report["rows"]) == (6, 2)
    assert sink.bodies() == [b"0", b"1"]


def test_a_frame_without_rows_is_written(spark, sink):
    assert sink.write(texts(spark, 0))["rows"] == 0
    assert sink.bodies() == []


def test_binary_and_text_arrive_byte_for_byte(spark, sink):
    bodies = [b"\x00", b"\xff" * 300, bytes(range(256)), "żółw".encode()]
    sink.write(spark.createDataFrame([(bytearray(body),) for body in bodies], "body binary"))
    assert sink.bodies() == sorted(bodies)


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_large_types_arrive(spark, sink, kind):
    key = "spark.sql.execution.arrow.useLargeVarTypes"
    spark.conf.set(key, "true")
    try:
        sink.write(spark.range(100).selectExpr(f"cast(cast(id as string) as {kind}) as value"))
    finally:
        spark.conf.unset(key)
    assert Counter(sink.bodies()) == Counter(str(number).encode() for number in range(100))


def test_small_record_batches_arrive(spark, sink):
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(key, "7")
    try:
        assert sink.write(texts(spark, 1000))["acked"] == 1000
    finally:
        spark.conf.unset(key)
    assert len(set(sink.bodies())) == 1000


def test_group_and_stream_may_come_with_each_row(spark, sink):
    df = spark.range(0, 3000, 1, 2).selectExpr(
        "cast(id as string) as value",
        "concat('g', id % 3) as group_id",
        f"concat('{sink.stream}-', id % 5) as stream_id",
    )
    assert sink.write(df, without=("groupId", "streamId"))["acked"] == 3000
    found = Counter()
    for group in range(3):
        for stream in range(5):
            wanted = sorted(str(n).encode() for n in range(3000) if n % 3 == group and n % 5 == stream)
            assert sink.bodies(f"g{group}", f"{sink.stream}-{stream}") == wanted
            found[group, stream] = len(wanted)
    assert found.total() == 3000


def test_an_option_overrides_the_column(spark, sink):
    sink.write(texts(spark, 4).selectExpr("value", "'elsewhere' as stream_id", "'nowhere' as group_id"))
    assert len(sink.bodies()) == 4


def test_data_times_are_kept_to_the_second(spark, sink):
    df = spark.range(4).selectExpr(
        "cast(id as string) as value", "timestamp '2013-01-01 05:00:00' + make_dt_interval(0, 0, 0, id) as dt"
    )
    sink.write(df)
    start = int(dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC).timestamp())
    assert {record.body: record.dt_ms // 1000 for record in sink.records()} == {
        str(number).encode(): start + number for number in range(4)
    }


def test_data_times_may_be_milliseconds(spark, sink):
    sink.write(spark.range(2).selectExpr("cast(id as string) as value", "1700000000000 + id * 60000 as dt"))
    assert sorted(record.dt_ms for record in sink.records()) == [1700000000000, 1700000060000]


def test_attributes_travel_with_their_rows(spark, sink):
    df = spark.range(100).selectExpr(
        "cast(id as string) as value",
        "case when id % 4 = 0 then null else map('tier', concat('t', id % 4)) end as attrs",
    )
    sink.write(df)
    records = sink.records()
    assert len(records) == 100
    for record in records:
        number = int(record.body)
        assert record.attrs.get("tier") == (f"t{number % 4}" if number % 4 else None)


NULLS = "case when id % 10 = 0 then null when id % 10 = 1 then '' else cast(id as string) end as value"


def test_null_and_empty_values_are_skipped_and_counted_on_demand(spark, sink):
    report = sink.write(spark.range(100).selectExpr(NULLS), nullValue="skip", emptyValue="skip")
    assert (report["rows"], report["acked"], report["skipped"]) == (100, 80, 20)
    assert len(sink.bodies()) == 80


@pytest.mark.parametrize(("option", "problem"), [({"emptyValue": "skip"}, "null"), ({"nullValue": "skip"}, "empty")])
def test_null_and_empty_values_fail_by_default(spark, sink, option, problem):
    with pytest.raises(Exception, match=rf"InvalidMessageError: partition 0 \(attempt 2\), row [01]: .*{problem}"):
        sink.write(spark.range(0, 100, 1, 1).selectExpr(NULLS), **option)


def test_whole_rows_travel_as_json(spark, sink):
    sink.write(spark.range(3).selectExpr("to_json(struct(id, id * 2 as twice)) as value"))
    assert sink.bodies() == [b'{"id":0,"twice":0}', b'{"id":1,"twice":2}', b'{"id":2,"twice":4}']


def test_compressed_packs_arrive(spark, sink):
    sink.write(spark.range(2000).selectExpr("concat(repeat('abc', 50), id) as value"), compression="snappy")
    assert len(set(sink.bodies())) == 2000


def test_attributes_of_any_text(spark, sink):
    df = spark.sql(
        "select cast(id as string) as value, map('city', if(id < 2, 'Zürich & Köln=100%41', 'Bonn')) as attrs"
        " from range(3)"
    )
    with pytest.raises(Exception, match=r"attribute 'city'=.*; attributeEscape='percent' sends any text"):
        sink.write(df)
    assert sink.write(df, attributeEscape="percent")["acked"] == 3
    found = {record.body: record.attrs["city"] for record in sink.records()}
    assert found == {b"0": "Zürich & Köln=100%41", b"1": "Zürich & Köln=100%41", b"2": "Bonn"}
