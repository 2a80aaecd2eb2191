"""Failing tasks, proxies that never answer."""

import json
import os
import signal
import socket
import sys
from collections import Counter

import pytest
from pyspark import TaskContext, cloudpickle

from dataproxy.spark.sink import DataProxyWriter, plan_writer
from pyspark_dataproxy import DefaultSource


class FailsAfterWriting(DataProxyWriter):
    """Loses each partition's first attempt after its rows were acknowledged."""

    def write(self, iterator):
        report = super().write(iterator)
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("lost on purpose")
        return report


class FailingSource(DefaultSource):
    @classmethod
    def name(cls):
        return "dataproxy_failing"

    def writer(self, schema, overwrite):
        writer = plan_writer(self.options, schema, overwrite)
        return FailsAfterWriting(writer._plan)


class LostAfterWriting(DataProxyWriter):
    """Loses every attempt after its rows were acknowledged."""

    def write(self, iterator):
        super().write(iterator)
        raise RuntimeError("lost on purpose")


class KilledAfterWriting(DataProxyWriter):
    """Kills the worker of a first attempt once it has read all rows."""

    def write(self, iterator):
        return super().write(killed_at_the_end(iterator))


def killed_at_the_end(batches):
    yield from batches
    if TaskContext.get().attemptNumber() == 0:
        os.kill(os.getpid(), signal.SIGKILL)


class KilledSource(DefaultSource):
    @classmethod
    def name(cls):
        return "dataproxy_killed"

    def writer(self, schema, overwrite):
        return KilledAfterWriting(plan_writer(self.options, schema, overwrite)._plan)


class LostSource(DefaultSource):
    @classmethod
    def name(cls):
        return "dataproxy_lost"

    def writer(self, schema, overwrite):
        return LostAfterWriting(plan_writer(self.options, schema, overwrite)._plan)


@pytest.fixture(autouse=True)
def by_value():
    """Send what this module defines to workers whole, since they cannot import it."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_a_task_that_runs_again_sends_its_rows_again(spark, sink):
    spark.dataSource.register(FailingSource)
    df = spark.range(0, 1000, 1, 2).selectExpr("cast(id as string) as value")
    df.write.format("dataproxy_failing").mode("append").options(**sink.options).save()
    assert Counter(sink.bodies()) == Counter({str(number).encode(): 2 for number in range(1000)})
    ids = Counter((record.body, record.message_id) for record in sink.records())
    assert len(ids) == 1000
    assert set(ids.values()) == {2}
    accounting = json.loads(sink.report_file.read_text())
    assert (accounting["outcome"], accounting["resent_partitions"], accounting["acked"]) == ("committed", 2, 1000)
    others = {"attempts": 2, "acked": 1000, "possibly_stored": 0, "failed": {}, "silent": 0}
    assert accounting["uncommitted"] == others


def test_bad_records_of_attempts_that_were_not_committed_are_removed(spark, sink, tmp_path):
    spark.dataSource.register(FailingSource)
    df = spark.range(0, 100, 1, 2).selectExpr("cast(if(id % 2 = 0, null, id) as string) as value")
    options = {**sink.options, "badRecords": str(tmp_path / "bad")}
    df.write.format("dataproxy_failing").mode("append").options(**options).save()
    files = sorted((tmp_path / "bad").iterdir())
    report = json.loads(sink.report_file.read_text())
    assert sorted(map(str, files)) == sorted(report["bad_files"])
    assert [path.name.rpartition("-")[2] for path in files] == ["1.jsonl", "1.jsonl"]
    assert report["refused"] == sum(len(path.read_text().splitlines()) for path in files) == 50


def test_a_failing_source_loses_nothing(spark, sink):
    def flaky(batches):
        yield from batches
        context = TaskContext.get()
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            raise RuntimeError("lost on purpose")

    df = spark.range(0, 5000, 1, 2).selectExpr("cast(id as string) as value").mapInArrow(flaky, "value string")
    report = sink.write(df)
    assert (report["rows"], report["acked"], report["resent_partitions"]) == (5000, 5000, 1)
    lost = report["uncommitted"]
    assert lost["attempts"] + lost["silent"] == 1  # Spark kills the sink's worker at some moment
    assert set(sink.bodies()) == {str(number).encode() for number in range(5000)}


def test_a_proxy_that_never_answers_fails_the_job_with_counts(spark, sink):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        df = spark.range(0, 10, 1, 1).selectExpr("cast(id as string) as value")
        with pytest.raises(Exception, match="UndeliveredError") as caught:
            sink.write(df, target=f"tcp://127.0.0.1:{silent.getsockname()[1]}", deliveryTimeout="500ms")
    text = str(caught.value)
    assert "partition 0 (attempt 2): of 10 rows 0 were acknowledged" in text
    assert "10 not acknowledged in time" in text
    accounting = json.loads(sink.report_file.read_text())
    assert (accounting["outcome"], accounting["rows"], accounting["acked"]) == ("aborted", 0, 0)
    assert (accounting["unfinished_partitions"], accounting["unknown_partitions"]) == (1, 0)
    lost = accounting["uncommitted"]
    assert (lost["attempts"], lost["acked"], lost["possibly_stored"], lost["silent"]) == (3, 0, 30, 0)
    assert lost["failed"] == {"EXPIRED (not delivered within `deliveryTimeout`)": 30}


def test_a_write_that_fails_tells_what_all_its_attempts_left_at_the_proxies(spark, sink):
    """The last attempt alone does not tell: on a disk that fills up it may have had nothing acknowledged."""
    spark.dataSource.register(LostSource)
    df = spark.range(0, 1000, 1, 1).selectExpr("cast(id as string) as value")
    with pytest.raises(Exception, match="lost on purpose"):
        df.write.format("dataproxy_lost").mode("append").options(**sink.options).save()
    accounting = json.loads(sink.report_file.read_text())
    assert (accounting["outcome"], accounting["acked"], accounting["uncommitted"]["acked"]) == ("aborted", 0, 3000)
    assert len(sink.records()) == 3000


def test_of_an_attempt_whose_worker_was_killed_the_report_says_that_nothing_is_known(spark, sink):
    spark.dataSource.register(KilledSource)
    df = spark.range(0, 1000, 1, 2).selectExpr("cast(id as string) as value")
    df.write.format("dataproxy_killed").mode("append").options(**sink.options).save()
    accounting = json.loads(sink.report_file.read_text())
    assert (accounting["outcome"], accounting["acked"], accounting["resent_partitions"]) == ("committed", 1000, 2)
    assert accounting["uncommitted"] == {"attempts": 0, "acked": 0, "possibly_stored": 0, "failed": {}, "silent": 2}


def test_the_last_error_of_a_task_counts_all_attempts_before_it(spark, sink):
    df = spark.range(0, 500, 1, 1).selectExpr("repeat('x', case when id = 450 then 1000000 else 10 end) as value")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        with pytest.raises(Exception, match="InvalidMessageError") as caught:
            sink.write(df)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    lost = json.loads(sink.report_file.read_text())["uncommitted"]
    assert lost["acked"] + sum(lost["failed"].values()) == 3 * 256  # the block before that of the bad row
    told = f"all 3 attempts of this write that have ended so far: {lost['acked']} rows acknowledged, "
    assert f"{told}{lost['possibly_stored']} possibly stored" in str(caught.value)


def test_a_dead_proxy_is_named_with_the_reason(spark, sink):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        dead = f"127.0.0.1:{unused.getsockname()[1]}"
        df = spark.range(0, 10, 1, 1).selectExpr("cast(id as string) as value")
        with pytest.raises(Exception, match="UndeliveredError") as caught:
            sink.write(df, target=f"tcp://{dead}", deliveryTimeout="500ms")
    assert f"proxies: {dead} (Connection refused)" in str(caught.value)


def test_a_dead_proxy_behind_a_full_buffer_is_named_with_the_reason(spark, sink):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        dead = f"127.0.0.1:{unused.getsockname()[1]}"
        df = spark.range(0, 1000, 1, 1).selectExpr("repeat('x', 10000) as value")
        with pytest.raises(Exception, match="BufferFullError") as caught:
            sink.write(df, target=f"tcp://{dead}", maxBlock="100ms", bufferBytes="1MiB", batchBytes="64KiB")
    assert "no room came within maxBlock=0.1 s" in str(caught.value)
    assert f"proxies: {dead} (Connection refused)" in str(caught.value)
    assert "partition 0 (attempt 2), in the batch after row 0: " in str(caught.value)


def test_a_row_that_is_too_large_is_named(spark, sink):
    df = spark.range(0, 5, 1, 1).selectExpr("repeat('x', case when id = 3 then 1000000 else 10 end) as value")
    with pytest.raises(Exception, match=r"InvalidMessageError: partition 0 \(attempt 2\), row 3: .*1000000"):
        sink.write(df)
    assert sink.bodies() == []
