"""Rows that cannot be sent: the job fails, skips them, or writes them down; and rows of very many streams."""

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark import TaskContext
from pyspark.errors import AnalysisException

NAMES = "case id % 10 when 0 then null when 1 then 'a&b' else concat('{}-', id % 3) end as stream_id"
BODIES = "case when id % 10 = 2 then repeat('x', 1000000) when id % 10 = 3 then null else cast(id as string) end"
GOOD = [n for n in range(100) if n % 10 > 3]


@pytest.fixture
def df(spark, sink):
    return spark.range(0, 100, 1, 2).selectExpr(f"{BODIES} as value", NAMES.format(sink.stream))


def arrived(sink):
    return sorted(int(body) for n in range(3) for body in sink.bodies(stream=f"{sink.stream}-{n}"))


def test_bad_rows_are_skipped_and_counted(sink, df):
    report = sink.write(df, without=("streamId",), badRecords="skip")
    assert (report["rows"], report["acked"], report["refused"], report["bad_files"]) == (100, 60, 40, [])
    assert report["reasons"] == {"BAD_NAME": 20, "BODY_TOO_LARGE": 10, "BAD_BODY": 10}
    assert arrived(sink) == GOOD


def test_bad_rows_end_the_task_by_default(sink, df):
    with pytest.raises(Exception, match=r"partition \d \(attempt 2\), row 0: the stream_id is null"):
        sink.write(df, without=("streamId",))


def test_bad_rows_are_written_with_their_reasons(spark, sink, df, tmp_path):
    report = sink.write(df, without=("streamId",), badRecords=str(tmp_path / "bad"))
    assert arrived(sink) == GOOD
    assert sorted(report["bad_files"]) == sorted(map(str, (tmp_path / "bad").iterdir()))
    assert len(report["bad_files"]) == 2
    rows = spark.read.json(str(tmp_path / "bad")).select("partition", "row", "code", "reason", "columns.*").collect()
    assert Counter(row.code for row in rows) == report["reasons"]
    assert {row.partition * 50 + row.row for row in rows} == set(range(100)) - set(GOOD)
    assert {len(row.value) for row in rows if row.code == "BODY_TOO_LARGE"} == {1000000}
    assert {row.stream_id for row in rows if row.reason == "the stream_id is null"} == {None}


def test_a_uri_is_a_path_or_is_refused_before_a_task_runs(sink, df, tmp_path):
    report = sink.write(df, without=("streamId",), badRecords=f"file://{tmp_path}/bad%20rows")
    assert sorted(report["bad_files"]) == sorted(map(str, (tmp_path / "bad rows").iterdir()))
    for text, what in {"s3a://bucket/bad": "write s3://", "dbfs:/bad": "write dbfs://"}.items():
        with pytest.raises(AnalysisException, match=what):
            sink.write(df, without=("streamId",), badRecords=text)


def test_names_and_attributes_are_named_by_row(sink, spark, tmp_path):
    df = spark.sql("select * from values ('y', map('ok', '1')), ('x', map('a&b', 'c')), ('w', null) t(value, attrs)")
    df = df.selectExpr("*", f"if(value = 'w', 'é', '{sink.stream}') as stream_id").coalesce(1)
    report = sink.write(df, without=("streamId",), badRecords=str(tmp_path / "bad"))
    (path,) = report["bad_files"]
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert [(line["row"], line["reason"]) for line in lines] == [
        (1, "attribute 'a&b'='c': its key holds '&'"),
        (2, "stream id 'é' is not ASCII"),
    ]
    with pytest.raises(Exception, match=r"partition 0 \(attempt 2\), row 1: attribute 'a&b'='c': its key holds '&'"):
        sink.write(df, without=("streamId",))


def test_lost_attempts_leave_no_files(spark, sink, tmp_path):
    def lost_at_first(batches):
        yield from batches
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("lost on purpose")

    df = spark.range(0, 100, 1, 2).selectExpr("if(id % 2 = 0, null, id) as x").selectExpr("cast(x as string) as value")
    report = sink.write(df.mapInArrow(lost_at_first, "value string"), badRecords=str(tmp_path))
    assert (report["refused"], report["resent_partitions"]) == (50, 2)
    files = sorted(path for path in tmp_path.iterdir() if path.name != "report.json" and not path.is_dir())
    assert sorted(map(str, files)) == sorted(report["bad_files"])
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    assert [line["attempt"] for line in lines] == [1] * 50


def test_a_failed_job_leaves_no_files(spark, sink, tmp_path):
    def broken(batches):
        yield from batches
        if TaskContext.get().partitionId() == 1:
            raise RuntimeError("broken on purpose")

    df = spark.range(0, 100, 1, 2).selectExpr("cast(null as string) as value").mapInArrow(broken, "value string")
    with pytest.raises(Exception, match="broken on purpose"):
        sink.write(df, badRecords=str(tmp_path / "bad"))
    assert list((tmp_path / "bad").iterdir()) == []


def test_rows_whose_text_cannot_be_masked_are_bad_records(spark, sink, tmp_path):
    df = spark.createDataFrame([("a,b", 1), ("c", 2)], "x string, n int")
    report = sink.write(df, format="csv", escape="", badRecords=str(tmp_path / "bad"))
    assert sink.bodies() == [b"c,2"]
    (path,) = report["bad_files"]
    assert json.loads(Path(path).read_text())["columns"] == {"x": "a,b", "n": 1}


def test_rows_without_a_stream_have_a_place(spark, sink):
    df = spark.range(4).selectExpr("cast(id as string) as value", f"if(id = 1, null, '{sink.stream}-0') as stream_id")
    sink.write(df, without=("streamId",), nullStreamId=sink.stream)
    assert sink.bodies() == [b"1"]
    assert sink.bodies(stream=f"{sink.stream}-0") == [b"0", b"2", b"3"]


def test_two_thousand_streams_in_one_job(spark, sink, hub):
    df = spark.range(0, 20_000, 1, 2).selectExpr(
        "cast(id as string) as value", "'many' as group_id", f"concat('{sink.stream}-', id % 2000) as stream_id"
    )
    report = sink.write(df, without=("groupId", "streamId"), bufferBytes="1MiB")
    assert (report["acked"], report["skipped"]) == (20_000, 0)
    counts = {key: count.records for key, count in hub.counts().items() if key[0] == "many"}
    assert counts == {("many", f"{sink.stream}-{n}"): 10 for n in range(2000)}
