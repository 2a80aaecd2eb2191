"""Messages made by Spark's own functions."""

import pytest

from dataproxy.errors import ConfigError
from dataproxy.spark import to_messages, with_json_value


@pytest.fixture
def df(spark):
    return spark.createDataFrame([(1, "x", "t1"), (2, None, "t2")], "n int, `a b` string, Stream_ID string")


def test_rows_become_json_beside_their_columns(df):
    messages = with_json_value(df)
    assert messages.columns == ["value", "stream_id"]
    assert [tuple(row) for row in messages.collect()] == [('{"n":1,"a b":"x"}', "t1"), ('{"n":2}', "t2")]


def test_names_and_columns_are_given(df):
    messages = to_messages(
        df, group_id="g", stream_id=df["a b"], msg_id="n", format="csv", options={"sep": "|"}
    )  # fmt: skip
    assert messages.columns == ["value", "group_id", "stream_id", "msg_id"]
    # beside the argument the column Stream_ID is data
    assert [tuple(row) for row in messages.collect()] == [("1|x|t1", "g", "x", 1), ("2||t2", "g", None, 2)]


def test_a_key_brings_its_rows_together(spark):
    df = spark.range(0, 1000, 1, 4).selectExpr("id % 10 as k", "id")
    from pyspark.sql import functions as f

    placed = to_messages(df, key="k", stream_id="s").withColumn("p", f.spark_partition_id())
    keys = placed.selectExpr("get_json_object(value, '$.k') as k", "p").distinct().groupBy("k").count().collect()
    assert {row["count"] for row in keys} == {1}
    assert len(keys) == 10


def test_what_cannot_be_made_is_refused(df):
    with pytest.raises(ConfigError, match="'value'"):
        to_messages(df, format="raw")
    with pytest.raises(ConfigError, match="'kv'"):
        to_messages(df, format="kv")
    with pytest.raises(ConfigError, match="no column"):
        with_json_value(df.select("Stream_ID"))
    assert to_messages(df.selectExpr("cast(n as string) as value"), format="raw").columns == ["value"]


def test_the_sink_takes_them(spark, sink, df):
    sink.write(with_json_value(df.drop("Stream_ID")))
    assert sink.bodies() == [b'{"n":1,"a b":"x"}', b'{"n":2}']
