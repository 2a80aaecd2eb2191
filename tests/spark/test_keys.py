"""Rows with keys: those of one key of a task arrive in the order of the rows."""

from collections import defaultdict

import pytest

from dataproxy.spark import writer

SMALL = {"ordering": "key", "batchMessages": "5", "connections": "4", "keyBuckets": "4"}  # many frames under way


def check_order(sink, rows):
    """Check that bodies ``key:part:number`` are all there, and those of one key of a partition in their order."""
    last = defaultdict(lambda: -1)
    for record in sink.records():
        key, part, number = record.body.decode().split(":")
        if key:
            assert last[key, part] < int(number)
            last[key, part] = int(number)
    assert len(set(sink.bodies())) == len(sink.bodies()) == rows


def keyed(df, kind="string"):
    """Return messages of ``id`` in the order of the rows; each eighth has no key."""
    made = df.selectExpr(
        "id", f"cast(nullif(concat('k', id % 8), 'k7') as {kind}) as key", "spark_partition_id() as part"
    )
    return made.selectExpr("concat_ws(':', coalesce(cast(key as string), ''), part, id) as value", "key")


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_a_batch_keeps_the_order_of_keys(spark, sink, kind):
    report = sink.write(keyed(spark.range(0, 2000, 1, 2), kind), **SMALL)
    assert report["acked"] == 2000
    check_order(sink, 2000)


def test_a_row_with_a_key_that_cannot_be_one_is_a_bad_record(spark, sink, tmp_path):
    rows = spark.range(0, 4, 1, 1).selectExpr("cast(id as string) as value", "if(id = 2, '', 'k') as key")
    with pytest.raises(Exception, match=r"row 2: a key is empty; .*give bytes or text of 1 to 1024 bytes"):
        sink.write(rows, **SMALL)
    report = sink.write(rows, **SMALL, badRecords=str(tmp_path / "bad"))
    assert (report["acked"], report["reasons"]) == (3, {"BAD_KEY": 1})
    assert sink.bodies() == [b"0", b"1", b"3"]


def test_a_stream_keeps_the_order_of_keys(spark, sink, tmp_path):
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "1").write_text("".join(f"{number}\n" for number in range(1000)))
    stream = keyed(spark.readStream.text(str(tmp_path / "lines")).selectExpr("cast(value as bigint) as id"))
    query = (
        stream.writeStream.format("dataproxy").options(**sink.options, **SMALL)
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination(250)
    check_order(sink, 1000)


def test_rows_of_python_keep_the_order_of_keys(spark, sink):
    df = keyed(spark.range(0, 1000, 1, 2), "binary")
    write = writer(df, **sink.options, **SMALL)
    df.foreachPartition(write)
    assert write.report().acked == 1000
    check_order(sink, 1000)


def test_whole_rows_are_ordered_by_a_column_that_is_named(spark, sink):
    rows = spark.range(0, 1000, 1, 1).selectExpr("id", "concat('k', id % 8) as country", "'data' as key")
    sink.write(rows, **SMALL, format="csv", columns="key=country")
    last = defaultdict(lambda: -1)
    for record in sink.records():
        number, data = record.body.split(b",")
        assert data == b"data"
        assert last[int(number) % 8] < int(number)
        last[int(number) % 8] = int(number)
    assert len(last) == 8
