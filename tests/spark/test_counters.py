"""What the driver learns of a write: report, latencies, counters; SQL."""

import io

import pytest
from pyspark.errors import AnalysisException

from dataproxy.spark import WriteProgress, register


def texts(spark, count, partitions=2):
    return spark.range(0, count, 1, partitions).selectExpr("cast(id as string) as value")


def test_the_report_has_the_latency_of_acks(spark, sink):
    report = sink.write(texts(spark, 1000))
    assert 0 < report["latency_p50"] <= report["latency_p99"] < 60
    assert (report["resent_rows"], report["duplicates_possible"]) == (0, 0)


def test_a_write_of_no_rows_has_no_latency(spark, sink):
    assert sink.write(texts(spark, 0))["latency_p50"] is None


def test_counters_of_a_registered_session(spark, sink):
    counters = register(spark)
    sink.write(texts(spark, 1000, 3))
    assert counters.counts() == (3, 1000, 1000, 2890, 0, 0, 0, 0)
    sink.write(texts(spark, 10, 1))
    assert counters.counts().acked == 1010
    assert "1010" in repr(counters)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_the_tasks_and_rows_of_a_write(spark, sink):
    terminal = Terminal()
    with WriteProgress(spark, register(spark), file=terminal, interval=0.02):
        sink.write(texts(spark, 1000, 3))
    lines = terminal.getvalue().split("\r\x1b[K")
    assert lines[-1].startswith("3 of 3 tasks, 1,000 rows acknowledged, ")
    assert len(lines) > 3


def test_a_callback_gets_the_report(spark, sink, tmp_path):
    found, source = tmp_path / "found", tmp_path / "sink_callback.py"
    source.write_text(f"""
def keep(report):
    with open({str(found)!r}, "w") as file:
        file.write(f"{{report.job}} {{report.acked}}")
    raise RuntimeError("the rows are delivered all the same")
""")
    spark.sparkContext.addPyFile(str(source))
    report = sink.write(texts(spark, 10), reportCallback="sink_callback:keep")
    assert found.read_text() == f"{report['job']} 10"


def test_a_session_keeps_its_limit_of_bytes_unless_it_is_told_otherwise(spark, sink):
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    session = spark.newSession()
    before = session.conf.get(name, None)  # Spark 4.0 does not know it
    register(session)
    assert session.conf.get(name, None) == before
    register(session, unmeasured_batches=True)
    assert session.conf.get(name) == "2147483647"
    assert sink.write(texts(session, 1000))["acked"] == 1000
    assert spark.conf.get(name, None) == before


def test_insert_into_a_temporary_view(spark, sink):
    texts(spark, 100).createOrReplaceTempView("source_rows")
    options = ", ".join(f"{name} '{value}'" for name, value in sink.options.items())
    spark.sql(f"create or replace temporary view sink_rows (value string) using dataproxy options ({options})")
    spark.sql("insert into sink_rows select * from source_rows")
    assert len(set(sink.bodies())) == 100


def test_a_permanent_table_takes_options_with_each_write(spark, sink):
    listed = ", ".join(f"{name} '{value}'" for name, value in sink.options.items())
    spark.sql(f"create table sink_table (value string) using dataproxy options ({listed})")
    try:
        with pytest.raises(AnalysisException, match="there is no target"):  # Spark keeps the table's options to itself
            spark.sql("insert into sink_table values ('lost')")
        spark.sql(f"insert into sink_table with ({listed}) values ('a')")
        texts(spark, 1).writeTo("sink_table").options(**sink.options).append()
    finally:
        spark.sql("drop table sink_table")
    assert sink.bodies() == [b"0", b"a"]


def test_a_view_without_columns_and_a_read_have_a_clear_error(spark):
    with pytest.raises(AnalysisException, match="CREATE TEMPORARY VIEW sink"):
        spark.sql("create temporary view no_columns using dataproxy")
    with pytest.raises(AnalysisException, match="no hub to read from"):
        spark.read.format("dataproxy").schema("value string").load().collect()
